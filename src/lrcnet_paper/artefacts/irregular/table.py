"""Tables: LRCs and their rivals on event-based XOR, PhysioNet 2012 and event-based MNIST, beside published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper import tasks
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.beyond import Score, longest_budget, published_rows, rank, score_runs
from lrcnet_paper.artefacts.irregular.figure import draw_shares, share_scores
from lrcnet_paper.artefacts.irregular.rates import is_search, rate_table
from lrcnet_paper.artefacts.irregular.runs import BENCHMARKS, FIGURE, FURTHER, plan_runs
from lrcnet_paper.artefacts.irregular.sentences import which_model
from lrcnet_paper.artefacts.long_sequences.table import scores as long_scores
from lrcnet_paper.models.padded import PADDED
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Beyond the paper: irregular sampling"

# From the CfC paper: accuracy (%) of XOR, AUC (%) of PhysioNet.
CLAIMED: Mapping[str, Mapping[str, Estimate]] = {
    "xor": {
        "GRU-D": Estimate(97.9, digits=1),
        "ODE-LSTM": Estimate(98.9, digits=1),
        "LTC": Estimate(49.1, digits=1),
        "CfC": Estimate(99.4, digits=1),
    },
    "physionet": {
        "GRU-D": Estimate(81.8, digits=1),
        "ODE-RNN": Estimate(83.3, digits=1),
        "LTC": Estimate(64.8, digits=1),
        "CfC": Estimate(83.9, digits=1),
    },
    "event-mnist": {},
}
METRICS = {"xor": "test accuracy (%)", "physionet": "test AUC (%)", "event-mnist": "test accuracy (%)"}
USES = {"step": "step", "feature": "input", "none": "unknown"}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the search for rates, the models on every task, and the models on thinned oscillations."""
    return plan_runs(check_budget(budget), seeds)


def scores(runs: Sequence[FinishedRun]) -> dict[str, list[Score]]:
    """Return the scores of each task, best first; runs of the search for rates are left out."""
    return {
        task: rank(score_runs([run for run in longest_budget(runs, task) if not is_search(run)], attrgetter("task")))
        for task in BENCHMARKS
    }


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our numbers beside the published ones; nothing here is a claim of the LRC paper."""
    by_task = scores(runs)
    shares = share_scores([run for run in longest_budget(runs, FIGURE) if not is_search(run)])
    skipped = [f"scores on {BENCHMARKS[task].title}: no finished run" for task, own in by_task.items() if not own]
    if not shares:
        skipped.append("accuracy over the share of dropped readings: no finished run")
    return Rendered(
        tables=[
            which_model(by_task, shares, long_scores(runs)),
            *(_table(task, own) for task, own in by_task.items()),
        ],
        pictures=[draw_shares(shares)] if shares else [],
        skipped=skipped,
        differences=(
            "Liquid models start from the library's default values. A gap is divided by the median gap of the first "
            "training batch, for every model alike.",
            "Missing values of PhysioNet are the last value and a mask, for every model alike; GRU-D lets the last "
            "value decay.",
        ),
        sensitivities=[*rate_table(runs), *_person_table(runs)],
    )


def _table(task: str, own: Sequence[Score]) -> Table:
    columns = (
        "model", METRICS[task], "source", "gap as", "seeds", "budget", "rate", "epochs", "minutes", "parameters",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            f"{one.label} (one seed, further model)" if one.spec.model in FURTHER else one.label,
            one.value,
            "ours",
            USES[str(one.spec.options.get("gaps", PADDED[one.spec.model].gaps))],
            len(one.runs),
            one.spec.budget,
            f"{one.spec.rate:g}",
            f"{one.epochs:.0f} of {one.spec.epochs}",
            one.minutes,
            one.parameters,
        )
        for one in own
    ]
    rows += published_rows(CLAIMED[task], len(columns))
    if not rows:
        rows = [("no finished run", *[None] * (len(columns) - 1))]
    benchmark = BENCHMARKS[task]
    notes = tasks.find(task, benchmark.variants[0]).notes
    folds = " by the first seed, the next folds by the others" if len(benchmark.variants) > 1 else ""
    return Table(
        task,
        f"{benchmark.title}: {METRICS[task]}",
        columns,
        rows,
        f"{notes[0].upper()}{notes[1:]}{folds}. Mean and standard deviation over seeds, of the epoch of best "
        f"validation. Every network has about {benchmark.parameters:,} parameters. The gap is the step of the model's "
        "equation, or one more input.",
    )


def _person_table(runs: Sequence[FinishedRun]) -> list[Table]:
    """Tabulate the reproduction's longest runs on person activity with true timestamps; no table without any."""
    groups = [group for group in group_runs(runs, "person") if group.variant == "a01-a04" and not group.spec.options]
    longest = (groups[0].budget, groups[0].epochs) if groups else None
    rows: list[tuple[Cell, ...]] = [
        (
            palette.model_label(group.model),
            group.change.label() or "the recipe's",
            group.metric("accuracy", 100, digits=1),
            len(group.runs),
            group.epochs,
            group.budget,
        )
        for group in groups
        if (group.budget, group.epochs) == longest
    ]
    columns = ("model", "solver and rate", "test accuracy (%)", "seeds", "epochs", "budget")
    note = "Runs of the reproduction, with the paper's initial values and split; gaps are those of the timestamps."
    return [Table("person", "Person activity A01-A04 with its true times", columns, rows, note)] if rows else []


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, part="sensitivity")
