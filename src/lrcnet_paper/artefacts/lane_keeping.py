"""Table: validation loss and curvature-weighted validation loss of the five lane-keeping policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Cell, Claim, Picture, Rendered, Table
from lrcnet_paper.artefacts.driving_runs import POLICIES, Model
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import judge_comparison
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished import Finished
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Lane keeping: validation loss"

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
    """The five policies in our own world."""
    return driving.planned(POLICIES, check_budget(budget), seeds)


def render(runs: Sequence[Finished]) -> Rendered:
    """Losses beside the paper's, and whether the LRCUs' weighted loss is the smallest."""
    found = driving.found(runs, POLICIES)
    return Rendered(
        tables=[_table(found)],
        pictures=[_picture(found)] if found else [],
        claims=[_claim(found, model, other) for model in ("lrcu-a", "lrcu-s") for other in ("lstm", "gru", "mgu")],
        skipped=[] if found else ["lane-keeping losses: no policy has been trained"],
    )


def _table(found: Mapping[Model, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in POLICIES:
        group = found.get(model)
        cells: list[Cell] = [driving.label(model)]
        for loss, metric in METRICS.items():
            cells += [CLAIMED[loss][model.name], None if group is None else group.metric(metric)]
        cells += [None] * 5 if group is None else _how(group)
        rows.append(tuple(cells))
    budget = next(iter(found.values())).budget if found else "paper"
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
            "seeds",
            "best epoch",
            "budget",
            "parameters, head included",
        ),
        rows,
        f"{driving.WORLD} The weighted loss weighs each step by the curvature that the driver took, in 1/100 m; the "
        f"paper does not give its weights. {driving.describe(budget)}",
    )


def _how(group: Group) -> list[Cell]:
    best = [run.result.best_epoch for run in group.finished]
    return [
        group.metric("curvature_loss"),
        len(group.runs),
        f"{sum(best) / len(best):.1f} of {group.epochs}" if best else None,
        group.budget_label,
        group.parameters,
    ]


def _claim(found: Mapping[Model, Group], model: str, other: str) -> Claim:
    first, second = (found.get(Model(name)) for name in (model, other))
    numbers = tuple(None if g is None else g.metric(METRICS["weighted"]) for g in (first, second))
    claimed = CLAIMED["weighted"][model], CLAIMED["weighted"][other]
    # The paper's losses are on another scale than ours, so the margin is taken in parts of the other model's loss.
    relative = tuple(e.over(claimed[1].mean) for e in claimed)
    ours = tuple(None if e is None or numbers[1] is None else e.over(numbers[1].mean) for e in numbers)
    return Claim(
        f"The weighted validation loss of {palette.look(model).label} is below that of {palette.look(other).label}.",
        f"{_change(*claimed)} %",
        "–" if None in numbers else f"{_change(*numbers)} %",  # type: ignore[arg-type]
        judge_comparison(
            (relative[0], relative[1]),
            (ours[0], ours[1]),
            larger_is_better=False,
            under=driving.conditions(*[g for g in (first, second) if g is not None]),
        ),
    )


def _change(first: Estimate, second: Estimate) -> str:
    return f"{100 * (first.mean / second.mean - 1):+.0f}"


def _picture(found: Mapping[Model, Group]) -> Picture:
    from matplotlib.figure import Figure

    with palette.style():
        figure = Figure(figsize=(7.2, 2.6), layout="constrained")
        for axes, (loss, metric) in zip(figure.subplots(1, 2, sharey=True), METRICS.items(), strict=True):
            for place, (model, group) in enumerate(reversed(list(found.items()))):
                look = palette.look(model.name)
                values = [run.result.metrics[metric] for run in group.finished]
                axes.plot(values, [place] * len(values), look.marker, color=look.colour, alpha=0.55, markersize=5)
                axes.plot([sum(values) / len(values)], [place], "|", color=palette.INK, markersize=16)
            axes.set(title=NAMES[loss], xlabel="mean squared error of curvature, (1/100 m)²")
            axes.set_yticks(range(len(found)), [driving.label(m) for m in reversed(list(found))])
            axes.set_ylim(-0.6, len(found) - 0.4)
            axes.set_xlim(left=0)
    return Picture(
        "losses",
        "Validation losses of the policies: one marker per seed, the bar is their mean.",
        "Two dot plots of losses by model, validation and weighted validation.",
        figure,
    )


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render)
