"""Drawings that several artefacts share: learning curves with their spread over seeds; paper and ours as dots."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Dot(NamedTuple):
    """One row of a dot plot: a model with the paper's estimate and ours."""

    model: str
    paper: Estimate | None
    ours: Estimate | None
    label: str = ""


def mean_curve(
    group: Group, column: str, scale: float = 1.0
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the positions that all seeds have, and mean, minimum and maximum there; empty lists without a curve."""
    curves = [run.curve(column) for run in group.runs]
    values: dict[float, list[float]] = {}
    for xs, ys in curves:
        for x, y in zip(xs, ys, strict=True):
            values.setdefault(x, []).append(scale * y)
    count = sum(1 for xs, _ in curves if xs)
    where = sorted(x for x, ys in values.items() if len(ys) == count)
    return (
        where,
        [math.fsum(values[x]) / count for x in where],
        [min(values[x]) for x in where],
        [max(values[x]) for x in where],
    )


def draw_curves(axes: Axes, groups: Sequence[Group], columns: Sequence[str], scale: float = 1.0) -> bool:
    """Draw one line per group, of the first column that it has, with a band from the worst to the best seed.

    Returns:
        Whether there was anything to draw.
    """
    any_points = False
    for group in groups:
        column = next((c for c in columns if any(run.curve(c)[0] for run in group.runs)), None)
        if column is None:
            continue
        where, mean, low, high = mean_curve(group, column, scale)
        style = palette.model_style(group.model)
        label = f"{style.label}, {group.change.label()}" if group.change else style.label
        # A line through few points is hard to see, so they get markers.
        marker = style.marker if len(where) < 15 else ""
        axes.plot(where, mean, color=style.colour, linestyle=style.dashes, marker=marker, markersize=4, label=label)
        if len(group.runs) > 1:
            axes.fill_between(where, low, high, color=style.colour, alpha=0.18, linewidth=0)
        any_points = any_points or bool(where)
    return any_points


def legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    """Put one legend with every label below all panels, where it hides no curve."""
    handles: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        columns = min(len(handles), 6)
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=columns, handlelength=3.0
        )


# Characters of a title that fit into an inch of a figure at the size of titles.
_CHARACTERS_PER_INCH = 13.5


def write_finding(figure: Figure, text: str) -> None:
    """Write the finding of a figure above its panels, broken into lines that fit its width."""
    width = int(_CHARACTERS_PER_INCH * figure.get_figwidth())
    figure.suptitle("\n".join(textwrap.wrap(text, width)), x=0.01, ha="left", fontsize=10.5, fontweight="bold")


def draw_dots(axes: Axes, dots: Sequence[Dot]) -> None:
    """Draw the paper (hollow) above ours (filled) with standard deviations, one row per model, the first on top."""
    for row, dot in enumerate(dots):
        style = palette.model_style(dot.model)
        for estimate, offset, hollow in ((dot.paper, -0.14, True), (dot.ours, 0.14, False)):
            if estimate is None:
                continue
            axes.errorbar(
                estimate.mean,
                row + offset,
                xerr=estimate.std or 0.0,
                color=palette.GREY if hollow else style.colour,
                marker="o" if hollow else style.marker,
                markerfacecolor=palette.PAPER if hollow else style.colour,
                markersize=5.5,
                capsize=2.5,
                linewidth=1.3,
            )
    axes.set_yticks(range(len(dots)), [dot.label or palette.model_label(dot.model) for dot in dots])
    axes.set_ylim(len(dots) - 0.5, -0.5)
    axes.grid(False, axis="y")
