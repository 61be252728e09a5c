"""Pictures of the classification table: the paper's accuracies beside ours, and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lrcnet.paper import curves, palette
from lrcnet.paper.curves import Dot
from lrcnet.paper.groups import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_accuracies(panels: Mapping[str, Sequence[Dot]]) -> Figure:
    """One panel per task and variant, two in a row."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    rows = -(-len(panels) // 2)
    with palette.style():
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
    """Training loss, and accuracy on the split that is measured after each epoch."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with palette.style():
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
