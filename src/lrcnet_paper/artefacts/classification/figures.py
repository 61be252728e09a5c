"""Figures of the classification artefact: the paper's accuracies beside ours, learning curves, learning rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet_paper.artefacts import curves
from lrcnet_paper.artefacts.classification.claims import accuracy
from lrcnet_paper.artefacts.classification.rates import RateTrial
from lrcnet_paper.artefacts.curves import Dot
from lrcnet_paper.results.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_accuracies(panels: Mapping[str, Sequence[Dot]]) -> Figure:
    """Draw one panel per task and variant, two in a row."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = -(-len(panels) // 2)
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 0.5 + 2.3 * rows), layout="constrained")
        grid = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes, (title, dots) in zip(grid, panels.items(), strict=False):
            curves.draw_dots(axes, dots)
            axes.set(title=title, xlabel="test accuracy (%)")
        for axes in grid[len(panels) :]:
            axes.axis("off")
        hollow = Line2D([], [], color=palette.GREY, marker="o", markerfacecolor=palette.PAPER, linestyle="none")
        filled = Line2D([], [], color=palette.INK, marker="s", linestyle="none")
        figure.legend([hollow, filled], ["paper", "ours"], loc="outside lower center", ncols=2)
    return figure


def draw_learning_curves(groups: Sequence[Group], split: str) -> Figure:
    """Draw the training loss, and the accuracy on the split that is measured after each epoch."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.3), layout="constrained")
        left, right = figure.subplots(1, 2)
        curves.draw_curves(left, groups, ("train_loss",))
        curves.draw_curves(right, groups, (f"{split}_accuracy",), 100.0)
        left.set(title="Training loss", xlabel="epoch", ylabel="cross-entropy (nats)")
        right.set(title=f"{split.capitalize()} accuracy", xlabel="epoch", ylabel="accuracy (%)")
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        curves.legend_below(figure, [left])
    return figure


def draw_rates(trials: Sequence[RateTrial]) -> Figure:
    """Draw accuracy over the learning rate, one panel per variant; a ring marks the rate that the search picks."""
    from matplotlib.figure import Figure

    variants = list(dict.fromkeys(trial.variant for trial in trials))
    models = list(dict.fromkeys(trial.model for trial in trials))
    with palette.figure_style():
        figure = Figure(figsize=(3.6 * max(2, len(variants)), 3.4), layout="constrained")
        grid = figure.subplots(1, len(variants), squeeze=False).ravel()
        for axes, variant in zip(grid, variants, strict=True):
            axes.set_xscale("log")
            for position, model in enumerate(models):
                _draw_rate_line(axes, [t for t in trials if (t.variant, t.model) == (variant, model)], position)
            ticks = sorted({trial.rate for trial in trials if trial.faithful is not None})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
            axes.set(title=variant, xlabel="learning rate", ylabel="test accuracy (%)")
        curves.legend_below(figure, list(grid))
    return figure


def _draw_rate_line(axes: Axes, trials: Sequence[RateTrial], position: int) -> None:
    points = [(t, number) for t in trials if (number := accuracy(t.faithful)) is not None]
    if not points:
        return
    style = palette.model_style(points[0][0].model)
    # Shift the models sideways, so that their error bars at one rate do not hide each other.
    where = [trial.rate * 1.2 ** (position - 2) for trial, _ in points]
    axes.errorbar(
        where,
        [number.mean for _, number in points],
        yerr=[number.std or 0.0 for _, number in points],
        color=style.colour,
        linestyle=style.dashes,
        marker=style.marker,
        markersize=5,
        capsize=2,
        label=style.label,
    )
    picked = [(x, number.mean) for x, (trial, number) in zip(where, points, strict=True) if trial.picked]
    axes.plot(
        [x for x, _ in picked],
        [y for _, y in picked],
        linestyle="none",
        marker="o",
        markersize=9.5,
        markerfacecolor="none",
        markeredgecolor=palette.INK,
    )
