"""Tables: LRCs and their rivals on event-based XOR, PhysioNet 2012 and event-based MNIST, beside published numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table, minus_signs
from lrcnet_paper import tasks
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.beyond import Score, longest_budget, published_rows, score_runs
from lrcnet_paper.artefacts.irregular.figure import draw_shares, share_scores
from lrcnet_paper.artefacts.irregular.gaps import describe_use
from lrcnet_paper.artefacts.irregular.rates import is_search, rate_table
from lrcnet_paper.artefacts.irregular.runs import BENCHMARKS, FIGURE, FURTHER, MODELS, plan_runs
from lrcnet_paper.artefacts.irregular.scarce import score_cell, share_table
from lrcnet_paper.artefacts.irregular.sentences import which_model
from lrcnet_paper.artefacts.long_sequences.table import scores as long_scores
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.models.padded import PADDED
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Beyond the paper: irregular sampling"
OPTIMISERS = {"adam": "Adam", "rmsprop": "RMSprop"}

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
# A test counts the streams.
REPEATED = "38.5 % of the test streams also occur among the training streams, because there are few short ones."
METRICS = {"xor": "test accuracy (%)", "physionet": "test AUC (%)", "event-mnist": "test accuracy (%)"}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the search for rates, the models on every task, and the models on thinned oscillations."""
    return plan_runs(check_budget(budget), seeds)


def scores(runs: Sequence[FinishedRun]) -> dict[str, list[Score]]:
    """Return the scores of each task, best first, further models after the others; those that diverged are last.

    Runs of the search for rates are left out.
    """
    return {
        task: sorted(
            score_runs([run for run in longest_budget(runs, task) if not is_search(run)], attrgetter("task")),
            key=lambda one: (one.spec.model in FURTHER, -one.value.mean if one.value else math.inf),
        )
        for task in BENCHMARKS
    }


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our numbers beside the published ones; nothing here is a claim of the LRC paper."""
    by_task = scores(runs)
    shares = share_scores([run for run in longest_budget(runs, FIGURE) if not is_search(run)])
    skipped = [f"scores on {BENCHMARKS[task].title}: no finished run" for task, own in by_task.items() if not own]
    pooled = [palette.model_label(model) for model in MODELS if PADDED[model].pooling == "mean"]
    if not shares:
        skipped.append("accuracy over the share of dropped readings: no finished run")
    return Rendered(
        tables=[
            which_model(by_task, shares, long_scores(runs)),
            *(table for task, own in by_task.items() for table in _score_table(task, own)),
        ],
        pictures=[draw_shares(shares)] if shares else [],
        skipped=skipped,
        differences=(
            "Liquid models start from the library's default values. A gap is divided by the median gap of the first "
            "training batch, for every model alike.",
            "Missing values of PhysioNet are the last value and a mask, for every model alike; GRU-D lets the last "
            "value decay. Where no values are missing, it takes the gap as an input too.",
            f"{join_words(pooled)}: the label is read from the mean of all outputs; the other models read it from the "
            "last output.",
        ),
        sensitivities=[*share_table(shares), *rate_table(runs), *_person_table(runs)],
    )


def _score_table(task: str, own: Sequence[Score]) -> list[Table]:
    """Tabulate the scores of a task above the published numbers; no table if there are neither."""
    columns = (
        "model", METRICS[task], "source", "gap as", "seeds", "budget", "rate", "epochs", "minutes", "parameters",
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            f"{one.label} (further model)" if one.spec.model in FURTHER else one.label,
            score_cell(one),
            "ours",
            describe_use(one.spec),
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
    benchmark = BENCHMARKS[task]
    notes = tasks.find(task, benchmark.variants[0]).notes
    note = (
        f"{notes[0].upper()}{notes[1:]}{_describe_folds(task, own)}. {_describe_training(task)} Mean and standard "
        f"deviation over {'folds' if len(benchmark.variants) > 1 else 'seeds'}, of the epoch of best validation. Every "
        f"network has about {benchmark.parameters:,} parameters. The gap is the step of the model's equation, one more "
        f"input, or both.{f' {REPEATED}' if task == 'xor' else ''}{_describe_published(task, own)}"
    )
    if any(one.spec.model in FURTHER for one in own):
        note += " Further models have one seed, are listed last and are not compared."
    return [Table(task, f"{benchmark.title}: {METRICS[task]}", columns, rows, note)] if rows else []


def _describe_folds(task: str, own: Sequence[Score]) -> str:
    """Say which folds the seeds are; "" for a task without folds."""
    folds = BENCHMARKS[task].variants
    used = {run.result.variant for one in own for run in one.runs}
    if len(folds) == 1 or not used:
        return ""
    which = "the first " if used == set(folds[: len(used)]) else ""
    used_folds = f"{which}{len(used)} of {len(folds)} folds are used"
    return f" by the first seed; each further seed has the next fold, so that {used_folds}"


def _describe_training(task: str) -> str:
    """Name optimiser, batch size, largest length and early stopping of a task."""
    benchmark = BENCHMARKS[task]
    recipe = tasks.find(task, benchmark.variants[0]).recipe
    text = f"{OPTIMISERS[recipe.optimizer]}, batches of {recipe.batch_size}, at most {benchmark.epochs} epochs at the "
    return f"{text}paper budget; a run stops after {recipe.patience} epochs without a better validation."


def _describe_published(task: str, own: Sequence[Score]) -> str:
    """Say how far our numbers are from the published ones of the same models; "" if there are none."""
    parts = [
        f"{one.label} {one.value.mean - CLAIMED[task][one.label].mean:+.1f}"
        for one in own
        if one.value and one.label in CLAIMED[task]
    ]
    if not parts:
        return ""
    return (
        f" Ours minus published, in points: {minus_signs(', '.join(parts))}. Sizes, searches and lengths differ; where "
        "ours is far lower, the comparison may be too easy for the other models."
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
