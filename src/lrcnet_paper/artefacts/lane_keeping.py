"""Table: validation loss and curvature-weighted validation loss of the five lane-keeping policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Claim, Comparison, Rendered
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.driving_runs import POLICIES, Model
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import judge_comparison
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Lane keeping: validation loss"
SAYS = "LRCUs have the smallest curvature-weighted validation loss."

CLAIMED: Mapping[str, Any] = {
    "validation": {
        "lstm": Estimate(0.139, 0.008, 3),
        "gru": Estimate(0.145, 0.006, 3),
        "mgu": Estimate(0.139, 0.007, 3),
        "lrcu-a": Estimate(0.154, 0.005, 3),
        "lrcu-s": Estimate(0.142, 0.004, 3),
    },
    "weighted": {
        "lstm": Estimate(0.013, 0.0010, 3),
        "gru": Estimate(0.013, 0.0010, 3),
        "mgu": Estimate(0.012, 0.0010, 3),
        "lrcu-a": Estimate(0.010, 0.0003, 3),
        "lrcu-s": Estimate(0.011, 0.0010, 3),
    },
}
METRICS = {"validation": "validation_curvature_loss", "weighted": "validation_weighted_loss"}
NAMES = {"validation": "validation loss", "weighted": "weighted validation loss"}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the five policies in our own world."""
    return driving.plan_runs(POLICIES, check_budget(budget), seeds)


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set the losses beside the paper's, and judge whether the LRCUs have the smallest weighted loss."""
    groups = driving.find_groups(runs, POLICIES)
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups)] if groups else [],
        claims=[_claim(groups, model) for model in ("lrcu-a", "lrcu-s")],
        skipped=[] if groups else ["lane-keeping losses: no policy has been trained"],
        differences=(*driving.end_to_end_differences(groups), driving.LOSSES),
    )


def _table(groups: Mapping[Model, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in POLICIES:
        group = groups.get(model)
        cells: list[Cell] = [driving.label(model)]
        for loss, metric in METRICS.items():
            cells += [CLAIMED[loss][model.name], None if group is None else group.metric(metric)]
        cells += [None] * 6 if group is None else _training_cells(group)
        rows.append(tuple(cells))
    return Table(
        "lane-keeping",
        "Lane keeping: loss at the epoch of best validation",
        (
            "model",
            "paper: validation",
            "ours: validation",
            "paper: weighted",
            "ours: weighted",
            "ours: test",
            "gain in sharp bends",
            "seeds",
            "best epoch",
            "budget",
            "parameters, head included",
        ),
        rows,
        "The weighted loss weights each step by the expert's curvature in 1/100 m; the paper does "
        f"not state its weights. The gain is the slope of predictions on labels where |label| is in its top decile. "
        f"{driving.describe(groups)}",
    )


def _training_cells(group: Group) -> list[Cell]:
    """Return the cells on how a group was trained, and its test loss."""
    best = [run.result.best_epoch for run in group.finished]
    return [
        group.metric("curvature_loss"),
        driving.sharp_bend_gain(group),
        len(group.runs),
        f"{sum(best) / len(best):.1f} of {group.epochs}" if best else None,
        group.budget_label,
        group.parameters,
    ]


def _claim(groups: Mapping[Model, Group], model: str) -> Claim:
    return Claim.against_all(
        f"The weighted validation loss of {palette.model_label(model)} is below those of LSTM, GRU and MGU.",
        {palette.model_label(other): _compare(groups, model, other) for other in ("lstm", "gru", "mgu")},
    )


def _compare(groups: Mapping[Model, Group], model: str, other: str) -> Comparison:
    first, second = (groups.get(Model(name)) for name in (model, other))
    numbers = tuple(None if g is None else g.metric(METRICS["weighted"]) for g in (first, second))
    claimed = CLAIMED["weighted"][model], CLAIMED["weighted"][other]
    return Comparison(
        f"{_percent_change(*claimed)} %",
        "–" if None in numbers else f"{_percent_change(*numbers)} %",  # type: ignore[arg-type]
        judge_comparison(
            claimed,
            (numbers[0], numbers[1]),
            larger_is_better=False,
            under=driving.conditions(*[g for g in (first, second) if g is not None]),
            by_ratio=True,
        ),
    )


def _percent_change(first: Estimate, second: Estimate) -> str:
    return f"{100 * (first.mean / second.mean - 1):+.0f}"


def _picture(groups: Mapping[Model, Group]) -> Picture:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.3), layout="constrained")
        for axes, (loss, metric) in zip(figure.subplots(1, 2, sharey=True), METRICS.items(), strict=True):
            means = [e.mean for group in groups.values() if (e := group.metric(metric)) is not None]
            # The paper's losses are on another scale: its unit is chosen so that the means of all models agree.
            claimed = [CLAIMED[loss][model.name].mean for model in groups]
            unit = sum(means) / sum(claimed)
            for row, (model, group) in enumerate(reversed(list(groups.items()))):
                style = palette.model_style(model.name)
                values = [run.result.metrics[metric] for run in group.finished]
                axes.plot(values, [row] * len(values), style.marker, color=style.colour, alpha=0.55, markersize=5)
                axes.plot([sum(values) / len(values)], [row], "|", color=palette.INK, markersize=16)
                axes.plot(
                    unit * CLAIMED[loss][model.name].mean, row - 0.28, "D", markerfacecolor=palette.PAPER,
                    markeredgecolor=palette.INK, markersize=4,
                )  # fmt: skip
            axes.set(title=NAMES[loss], xlabel="mean squared error, (1/100 m)²")
            axes.set_yticks(range(len(groups)), [driving.label(m) for m in reversed(list(groups))])
            axes.set_ylim(-0.6, len(groups) - 0.4)
            drawn = [run.result.metrics[metric] for group in groups.values() for run in group.finished]
            axes.set_xlim(0, 1.08 * max([*drawn, *[unit * mean for mean in claimed]]))
        marks = [
            Line2D([], [], color=palette.GREY, marker="o", linestyle="none", label="one seed"),
            Line2D([], [], color=palette.INK, marker="|", markersize=12, linestyle="none", label="mean"),
            Line2D(
                [], [], marker="D", markerfacecolor=palette.PAPER, markeredgecolor=palette.INK, markersize=4,
                linestyle="none", label="the paper's mean, scaled to ours",
            ),
        ]  # fmt: skip
        figure.legend(handles=marks, loc="outside lower center", ncols=3)
        write_finding(figure, _finding(groups))
    return Picture(
        "losses",
        "Validation losses of the policies. The paper's are on another scale: they are multiplied by the number that "
        "makes the mean over all models agree, so that only their order and spread can be compared.",
        "Two dot plots by model: the validation loss and the weighted validation loss, the paper's beside ours.",
        figure,
    )


def _finding(groups: Mapping[Model, Group]) -> str:
    if note := driving.incomplete(groups):
        return note
    losses = {m: e for m, group in groups.items() if (e := group.metric(METRICS["weighted"])) is not None}
    paper = {m: CLAIMED["weighted"][m.name].mean for m in groups}
    best, claimed = min(losses, key=lambda m: losses[m].mean), min(paper, key=lambda m: paper[m])
    same = "as in the paper" if best == claimed else f"in the paper {driving.label(claimed)} does"
    return (
        f"{driving.label(best)} has the smallest weighted validation loss"
        f"{driving.within_spread(losses, largest=False, by_ratio=True)} ({same}){driving.too_few_seeds(groups)}"
    )


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, says=SAYS)
