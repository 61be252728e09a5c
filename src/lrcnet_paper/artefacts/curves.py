"""Drawings that several artefacts share: learning curves with their spread over seeds; titles and legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.figures import write_finding as write_finding
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


def draw_curves(
    axes: Axes, groups: Sequence[Group], columns: Sequence[str], scale: float = 1.0, *, minutes: bool = False
) -> bool:
    """Draw one line per group, of the first column that it has, with a band from the worst to the best seed.

    Args:
        axes: the panel.
        groups: one line each.
        columns: names of columns, the preferred one first.
        scale: factor of all values.
        minutes: draw over the minutes of training instead of epochs or iterations.

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
        if minutes:
            where = [x * group.seconds_per_epoch() / 60 for x in where]
        axes.plot(where, mean, color=style.colour, linestyle=style.dashes, marker=marker, markersize=4, label=label)
        if len(group.runs) > 1:
            draw_band(axes, where, low, high, style.colour, WORST_TO_BEST)
        any_points = any_points or bool(where)
    return any_points


WORST_TO_BEST, ONE_DEVIATION = "worst to best seed", "one standard deviation"
_BAND = "_band: "
"""Begins the label of a band; matplotlib leaves labels that begin with "_" out of a legend."""


def draw_band(
    axes: Axes, where: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, meaning: str
) -> None:
    """Draw a band about a curve; `legend_below` explains once what all bands of the figure mean."""
    axes.fill_between(where, low, high, color=colour, alpha=0.16, linewidth=0, label=f"{_BAND}{meaning}")


def legend_below(figure: Figure, axes: Sequence[Axes], further: Sequence[Any] = ()) -> None:
    """Put one legend with every label, further handles and the bands below all panels, where it hides no curve."""
    from matplotlib.patches import Patch

    handles: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    handles |= {handle.get_label(): handle for handle in further}
    for label in (str(band.get_label()) for panel in axes for band in panel.collections):
        if label.startswith(_BAND):
            meaning = label.removeprefix(_BAND)
            handles[meaning] = Patch(color=palette.GREY, alpha=0.3, linewidth=0, label=meaning)
    if handles:
        # About this many characters fit beside each other, with the marks of the legend.
        columns = max(1, min(len(handles), int(12 * figure.get_figwidth() / (7 + max(map(len, handles))))))
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=columns, handlelength=3.0
        )
