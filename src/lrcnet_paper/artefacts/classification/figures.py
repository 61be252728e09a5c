"""Figures of the classification artefact: differences to the paper's accuracies, learning curves, learning rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet_paper.artefacts import curves
from lrcnet_paper.artefacts.classification.rates import RateTrial
from lrcnet_paper.artefacts.curves import Dot
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_accuracies(panels: Mapping[str, Sequence[Dot]], finding: str) -> Figure:
    """Draw our accuracies minus the paper's, one row per model, all tasks and variants on one axis."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    rows = sum(len(dots) + 1 for dots in panels.values())
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 0.19 * rows + 1.6), layout="constrained")
        axes = figure.subplots()
        axes.axvline(0.0, color=palette.INK, linewidth=1.0)
        labels: list[str] = []
        for title, dots in panels.items():
            axes.annotate(
                title, (0.0, len(labels)), xycoords=("axes fraction", "data"), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=8, fontweight="bold",
            )  # fmt: skip
            labels.append("")
            for dot in dots:
                _draw_difference(axes, dot, len(labels))
                labels.append(dot.label)
        axes.set_yticks(range(len(labels)), labels, fontsize=8)
        axes.tick_params(axis="y", length=0)
        axes.set(xlabel="ours minus the paper's test accuracy (points)", ylim=(len(labels) - 0.4, -0.8))
        axes.grid(False, axis="y")
        marks = [
            Patch(color=palette.GREY, alpha=0.35, label="paper, mean ± standard deviation"),
            Line2D([], [], color=palette.INK, marker="s", linestyle="-", label="ours, likewise over our seeds"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=2)
        curves.write_finding(figure, finding)
    return figure


def _draw_difference(axes: Axes, dot: Dot, row: int) -> None:
    """Draw one model: the paper's spread about 0, and our difference with its own."""
    if dot.paper is None or dot.ours is None:
        return
    style = palette.model_style(dot.model)
    spread = dot.paper.std or 0.0
    axes.barh(row, 2 * spread, left=-spread, height=0.8, color=palette.GREY, alpha=0.35)
    axes.errorbar(
        dot.ours.mean - dot.paper.mean,
        row,
        xerr=dot.ours.std or 0.0,
        color=style.colour,
        marker=style.marker,
        markersize=5,
        capsize=2.5,
        linewidth=1.3,
    )


def draw_learning_curves(groups: Sequence[Group], split: str, paper: Mapping[str, Estimate], finding: str) -> Figure:
    """Draw the training loss, and the accuracy on the measured split over epochs and over the time of training."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    with palette.figure_style():
        figure = Figure(figsize=(7.6, 3.6), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        column = (f"{split}_accuracy",)
        curves.draw_curves(left, groups, ("train_loss",))
        curves.draw_curves(middle, groups, column, 100.0)
        curves.draw_curves(right, groups, column, 100.0, minutes=True)
        left.set(title="Training loss", xlabel="epoch", ylabel="cross-entropy (nats)")
        middle.set(title=f"{split.capitalize()} accuracy", xlabel="epoch", ylabel="accuracy (%)")
        right.set(title="The same over time", xlabel="training time (min)")
        right.sharey(middle)
        right.tick_params(labelleft=False)
        for axes in (left, middle):
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))  # more labels of 680 epochs would touch
        last = max((group.epochs for group in groups), default=1)
        for model in dict.fromkeys(group.model for group in groups if group.model in paper):
            middle.plot(
                last, paper[model].mean, "D", markerfacecolor=palette.PAPER, clip_on=False, markersize=5,
                markeredgecolor=palette.model_style(model).colour,
            )  # fmt: skip
        diamond = Line2D([], [], marker="D", markerfacecolor=palette.PAPER, markeredgecolor=palette.INK, markersize=5,
                         linestyle="none", label="paper, at the end of its training")  # fmt: skip
        curves.legend_below(figure, [left], [diamond])
        curves.write_finding(figure, finding)
    return figure


# The rate of the protocol, at which the paper's accuracies are drawn.
PAPERS_RATE = 1e-3


def draw_rates(trials: Sequence[RateTrial], paper: Mapping[str, Estimate], finding: str) -> Figure:
    """Draw accuracy over the learning rate, one panel per variant; a ring marks the rate that the search picks."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    variants = list(dict.fromkeys(trial.variant for trial in trials))
    models = list(dict.fromkeys(trial.model for trial in trials))
    with palette.figure_style():
        figure = Figure(figsize=(3.6 * max(2, len(variants)), 3.9), layout="constrained")
        grid = figure.subplots(1, len(variants), squeeze=False).ravel()
        for axes, variant in zip(grid, variants, strict=True):
            axes.set_xscale("log")
            for model in models:
                _draw_rate_line(axes, [t for t in trials if (t.variant, t.model) == (variant, model)], paper)
            ticks = sorted({trial.rate for trial in trials if trial.faithful is not None})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
            axes.set(title=variant, xlabel="learning rate", ylabel="test accuracy (%)")
        diamond = Line2D([], [], marker="D", markerfacecolor=palette.PAPER, markeredgecolor=palette.INK, markersize=5,
                         linestyle="none", label="paper")  # fmt: skip
        curves.legend_below(figure, list(grid), [diamond])
        curves.write_finding(figure, finding)
    return figure


def _draw_rate_line(axes: Axes, trials: Sequence[RateTrial], paper: Mapping[str, Estimate]) -> None:
    points = [(t, number) for t in trials if (number := t.accuracy) is not None]
    if not points:
        return
    model = points[0][0].model
    style = palette.model_style(model)
    rates, means = [trial.rate for trial, _ in points], [number.mean for _, number in points]
    spreads = [number.std or 0.0 for _, number in points]
    axes.plot(
        rates, means, color=style.colour, linestyle=style.dashes, marker=style.marker, markersize=5, label=style.label
    )
    # Five error bars at one rate would hide each other; bands do not.
    curves.draw_band(
        axes,
        rates,
        [m - spread for m, spread in zip(means, spreads, strict=True)],
        [m + spread for m, spread in zip(means, spreads, strict=True)],
        style.colour,
        curves.ONE_DEVIATION,
    )
    picked = [(trial.rate, number.mean) for trial, number in points if trial.picked]
    axes.plot(
        [x for x, _ in picked],
        [y for _, y in picked],
        linestyle="none",
        marker="o",
        markersize=9.5,
        markerfacecolor="none",
        markeredgecolor=palette.INK,
        label="picked by validation loss",
    )
    if model in paper:
        axes.plot(
            PAPERS_RATE, paper[model].mean, "D", markerfacecolor=palette.PAPER, markeredgecolor=style.colour,
            markersize=5,
        )  # fmt: skip
