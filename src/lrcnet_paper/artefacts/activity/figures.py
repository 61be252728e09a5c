"""Drawing of the activity artefact, and the reduction of a drive to a small JSON value."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrcnet.pages import palette
from lrcnet.pages.content import minus_signs
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.results.provenance import Provenance, format_seed_and_loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from lrcnet_paper.interpret import WatchedDrive

POINTS, ROAD_POINTS = 301, 120
# Activity is scaled by this percentile of its distance from rest, so that one spike does not bleach the rest.
PERCENTILE = 95.0
STRAIGHT = 1 / 400
"""Largest curvature of a straight road, 1/m."""


def thin_drive(drive: WatchedDrive, cells: Mapping[str, int], r: Tensor) -> dict[str, Any]:
    """Return a drive's path and its whole road to 0.1 m, and the activity of some cells as base64.

    A cell rests at its median on straight road. Its activity is stored from 0 (the scale below rest) over 128 (rest) to
    255 (the scale above rest); the scale is the 95th percentile of its distance from rest.

    Args:
        drive: the watched drive.
        cells: name of a cell -> its number, from 0.
        r: correlation of every neuron with the steered curvature.
    """
    indices = np.unique(np.linspace(0, len(drive.x) - 1, min(POINTS, len(drive.x))).round().astype(int))
    thinned: dict[str, Any] = {
        "x": [round(v, 1) for v in drive.x[indices].tolist()],
        "y": [round(v, 1) for v in drive.y[indices].tolist()],
        "road": [[round(v, 1) for v in point] for point in _thin_road(drive).tolist()],
        "cells": {},
    }
    straight = (drive.road_curvature.abs() < STRAIGHT).numpy()
    for name, number in cells.items():
        values = drive.activity[:, number].numpy()
        rest = float(np.median(values[straight] if straight.any() else values))
        scale = float(np.percentile(np.abs(values - rest), PERCENTILE)) or 1.0
        scaled = np.clip((values[indices] - rest) / scale, -1, 1)
        thinned["cells"][name] = {
            "number": number + 1,
            "r": round(float(r[number]), 4),
            "rest": round(rest, 4),
            "scale": round(scale, 4),
            "values": base64.b64encode((128 + 127 * scaled).round().astype(np.uint8).tobytes()).decode(),
        }
    return thinned


def _thin_road(drive: WatchedDrive) -> Tensor:
    return drive.road[:: max(1, len(drive.road) // ROAD_POINTS)]


def unpack_activity(cell: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the activity of a cell that `thin_drive` packed, from -1 to 1; 0 is rest."""
    return (np.frombuffer(base64.b64decode(cell["values"]), np.uint8).astype(np.float64) - 128) / 127


def _limits(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the smallest and the largest number of all columns, with a margin."""
    low, high = min(map(min, columns)), max(map(max, columns))
    margin = 0.06 * (high - low) + 0.5
    return low - margin, high + margin


def draw_roads(drives: Mapping[str, tuple[Mapping[str, Any], Provenance]], finding: str = "") -> Figure:
    """Draw model -> (thinned drive, provenance) as one map per model (across) and cell (down)."""
    from matplotlib.figure import Figure

    roles = list(next(iter(drives.values()))[0]["cells"])
    (left, right), (low, high) = (
        _limits([[*drive[axis], *(point[i] for point in drive["road"])] for drive, _ in drives.values()])
        for i, axis in enumerate("xy")
    )
    # Widen the shorter side, so that the panel of a nearly straight road is not too narrow to see.
    spare = max(0.0, 0.35 * (right - left) - (high - low)) / 2, max(0.0, 0.35 * (high - low) - (right - left)) / 2
    low, high, left, right = low - spare[0], high + spare[0], left - spare[1], right + spare[1]
    # Few models get wider panels, so that their headings do not run into each other.
    panel_width = max(1.55, 4.6 / len(drives))
    panel_height = (panel_width - 0.3) * min((high - low) / (right - left), 1.6)
    with palette.figure_style():
        figure = Figure(
            figsize=(panel_width * len(drives) + 1.2, (panel_height + 0.35) * len(roles) + 1.3), layout="compressed"
        )
        grid = figure.subplots(len(roles), len(drives), sharex=True, sharey=True, squeeze=False)
        for column, (model, (drive, provenance)) in enumerate(drives.items()):
            for row, role in enumerate(roles):
                panel, cell = grid[row, column], drive["cells"][role]
                coloured = _draw_drive(panel, drive, cell)
                name = role if role.startswith("cell") else f"{role}:\ncell {cell['number']}"
                # The loss on a line of its own, so that the headings of neighbours do not run into each other.
                source = format_seed_and_loss(provenance).replace(", ", ",\n")
                heading = f"{palette.model_label(model)}\n{source}\n" if row == 0 else ""
                panel.set_title(minus_signs(f"{heading}{name}, r = {cell['r']:+.2f}"), fontsize=6.5)
                panel.set(xlim=(left, right), ylim=(low, high))
                panel.set_aspect("equal")
                panel.tick_params(labelsize=6.5)
                panel.locator_params(nbins=4)
                panel.grid(False)
                if row == len(roles) - 1:
                    panel.set_xlabel("x (m)", fontsize="small")
                if column == 0:
                    panel.set_ylabel("y (m)", fontsize="small")
        bar = figure.colorbar(coloured, ax=grid, label="activity of the cell", pad=0.01, aspect=30, shrink=0.6)
        bar.set_ticks([-1, 0, 1], labels=["95th percentile\nbelow rest", "at rest", "95th percentile\nabove rest"])
        bar.outline.set_visible(False)
        figure.legend(handles=_marks(), loc="outside lower center", ncols=4, fontsize=7.5)
        write_finding(figure, finding)
    return figure


def _draw_drive(panel: Axes, drive: Mapping[str, Any], cell: Mapping[str, Any]) -> Any:
    """Draw the road, the driven path coloured by a cell's activity, its start and, if it crashed, its end."""
    from matplotlib.collections import LineCollection

    points = np.column_stack([drive["x"], drive["y"]])
    values = unpack_activity(cell)
    if drive["road"]:
        panel.plot(*zip(*drive["road"], strict=True), color=palette.GREY, linewidth=1.0, linestyle=(0, (2, 1.5)))
    # A line of ink below makes a bright line visible on a bright page. Antialiased lines or vector graphics would make
    # a file of a megabyte.
    panel.plot(*points[::3].T, color=palette.INK, linewidth=3.2, solid_capstyle="round")
    lines = LineCollection(
        list(np.stack([points[:-1], points[1:]], 1)),
        cmap=palette.DIVERGING,
        linewidths=2.2,
        rasterized=True,
        capstyle="round",
        antialiaseds=False,
    )
    lines.set_array((values[:-1] + values[1:]) / 2)
    lines.set_clim(-1, 1)
    panel.add_collection(lines)
    panel.plot(*points[0], **_START)
    panel.plot(*points[-1], **(_ARRIVED if drive["arrived"] else _CRASHED))
    return lines


_START: Mapping[str, Any] = {"marker": "o", "color": palette.INK, "markersize": 4, "linestyle": "none"}
_ARRIVED: Mapping[str, Any] = {"marker": "s", "color": palette.INK, "markersize": 4, "linestyle": "none"}
_CRASHED: Mapping[str, Any] = {
    "marker": "X",
    "color": palette.VERMILION,
    "markersize": 7,
    "markeredgecolor": palette.PAPER,
    "linestyle": "none",
}


def _marks() -> list[Any]:
    """Return the handles of the legend."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], label="start", **_START),
        Line2D([], [], label="arrived", **_ARRIVED),
        Line2D([], [], label="crashed", **_CRASHED),
        Line2D([], [], label="road, not driven", color=palette.GREY, linewidth=1.0, linestyle=(0, (2, 1.5))),
    ]
