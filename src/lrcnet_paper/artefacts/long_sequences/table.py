"""Table: LrcSSM, dense LRCU, GRU and LSTM on SelfRegulationSCP1 and SCP2, beside published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.beyond import PUBLISHED, Score, describe, longest_budget, published_rows, rank, score_runs
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.long_sequences.runs import CONTRACTION, SETS, TASK, plan_runs
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Beyond the paper: long sequences"

# Test accuracy (%) over the five splits, from the LrcSSM paper; it prints a spread for its own model.
CLAIMED: Mapping[str, Mapping[str, Estimate]] = {
    "scp1": {
        "LrcSSM": Estimate(85.2, 2.1, 5, digits=1),
        "S5": Estimate(87.1, None, 5, digits=1),
        "LinOSS-IM": Estimate(87.8, None, 5, digits=1),
        "Mamba": Estimate(80.7, None, 5, digits=1),
    },
    "scp2": {
        "LrcSSM": Estimate(53.9, 7.2, 5, digits=1),
        "S5": Estimate(55.1, None, 5, digits=1),
        "LinOSS-IM": Estimate(58.2, None, 5, digits=1),
        "Mamba": Estimate(48.2, None, 5, digits=1),
    },
}
COLUMNS = ("model", "test accuracy (%)", "source", "splits", "budget", "rate", "epochs", "minutes", "parameters")


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan every model on both sets; seed k has the k-th published split."""
    return plan_runs(check_budget(budget), seeds)


def scores(runs: Sequence[FinishedRun]) -> dict[str, list[Score]]:
    """Return the scores of each set, best first."""
    published = [run for run in longest_budget(runs, TASK) if "-" in run.result.variant]
    every = score_runs(published, lambda spec: spec.variant.partition("-")[0])
    return {name: rank(one for one in every if one.spec.variant.startswith(name)) for name in SETS}


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our numbers beside the published ones; nothing here is a claim of the LRC paper."""
    by_set = scores(runs)
    measured = {name: own for name, own in by_set.items() if own}
    return Rendered(
        tables=[_table(name, own) for name, own in by_set.items()],
        pictures=[_picture(measured)] if measured else [],
        skipped=[f"accuracies of {SETS[name]}: no finished run" for name in SETS if name not in measured],
        differences=(
            "Channels are standardised by the training rows, the norm of a block is a LayerNorm, and time is no input; "
            "the published numbers are of the authors' programs in JAX.",
            "Validation is evaluated after every ten epochs (about 1000 steps of SCP1, 670 of SCP2), and a run stops "
            "after ten evaluations without a better accuracy.",
        ),
    )


def _table(name: str, own: Sequence[Score]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            one.label,
            one.value,
            "ours",
            len(one.runs),
            one.spec.budget,
            f"{one.spec.rate:g}",
            f"{one.epochs:.0f}",
            one.minutes,
            one.parameters,
        )
        for one in own
    ]
    rows += published_rows(CLAIMED[name], len(COLUMNS))
    return Table(
        name,
        f"{SETS[name]}: test accuracy (%)",
        COLUMNS,
        rows,
        "Mean and standard deviation over the published splits, of the epoch of best validation. GRU, LSTM and LRCU "
        "are one layer, as wide as it takes to have about as many parameters as LrcSSM. The rate is the protocol's for "
        f"all. 'contraction' is LrcSSM whose steps contract by construction (contraction={CONTRACTION:g}).",
    )


def _picture(by_set: Mapping[str, Sequence[Score]]) -> Picture:
    findings = " ".join(f"{SETS[name]}: {describe(own[0])} is first of ours." for name, own in by_set.items())
    return Picture(
        "accuracies",
        "Test accuracy on the published splits: ours (filled, with the standard deviation over splits) and published "
        "numbers (open).",
        f"One panel per set with a point for each model. {findings}",
        _draw(by_set, findings),
    )


def _draw(by_set: Mapping[str, Sequence[Score]], finding: str) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.7), layout="constrained")
        panels = figure.subplots(1, len(by_set), squeeze=False)[0]
        for axes, (name, own) in zip(panels, by_set.items(), strict=True):
            points = [(one.label, one.value, palette.model_style(one.spec.model).colour, True) for one in own]
            points += [(label, value, palette.GREY, False) for label, value in CLAIMED[name].items()]
            for place, (_, value, colour, filled) in enumerate(points):
                assert value is not None
                face = colour if filled else palette.PAPER
                axes.errorbar(value.mean, place, xerr=value.std, marker="o", color=colour, markerfacecolor=face)
            names = [label if filled else f"{label} ({PUBLISHED.split(',')[0]})" for label, _, _, filled in points]
            axes.set_yticks(range(len(names)), names, fontsize=8)
            axes.set(title=SETS[name], xlabel="test accuracy (%)")
            axes.invert_yaxis()
        marks = [
            Line2D([], [], color=palette.INK, marker="o", label="ours ± standard deviation over splits"),
            Line2D([], [], color=palette.GREY, marker="o", markerfacecolor=palette.PAPER, label="published"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=2)
        write_finding(figure, finding)
    return figure


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, part="sensitivity")
