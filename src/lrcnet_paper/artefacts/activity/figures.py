"""The drawing of the activity artefact, and how a drive is kept as a little JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrcnet.pages import palette
from lrcnet_paper.results.provenance import Provenance, format_seed_and_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from lrcnet_paper.interpret import WatchedDrive

POINTS = 301
MAP = "viridis"


def thinned_drive(driven: WatchedDrive, cells: Mapping[str, int], r: Tensor) -> dict[str, Any]:
    """A drive's path in 0.1 m, and the activity of some cells from 0 (lowest) to 255 (highest), as base64.

    Args:
        driven: the drive.
        cells: what a cell is called -> its number, from 0.
        r: correlation of every neuron.
    """
    kept = np.unique(np.linspace(0, len(driven.x) - 1, min(POINTS, len(driven.x))).round().astype(int))
    found: dict[str, Any] = {
        "x": [round(v, 1) for v in driven.x[kept].tolist()],
        "y": [round(v, 1) for v in driven.y[kept].tolist()],
        "cells": {},
    }
    for name, number in cells.items():
        values = driven.activity[:, number].numpy()
        low, high = float(values.min()), float(values.max())
        parts = (values[kept] - low) / (high - low if high > low else 1.0)
        found["cells"][name] = {
            "number": number + 1,
            "r": round(float(r[number]), 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "values": base64.b64encode((parts * 255).round().astype(np.uint8).tobytes()).decode(),
        }
    return found


def activity_of(cell: Mapping[str, Any]) -> NDArray[np.float64]:
    """The kept activity of a cell, 0 at its lowest and 1 at its highest."""
    return np.frombuffer(base64.b64decode(cell["values"]), np.uint8) / 255


def _box(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The smallest and the largest number of all columns, with some room."""
    low, high = min(map(min, columns)), max(map(max, columns))
    room = 0.06 * (high - low) + 0.5
    return low - room, high + room


def draw_roads(found: Mapping[str, tuple[Mapping[str, Any], Provenance]]) -> Figure:
    """model -> (thinned drive, source): a map per model (across) and cell (down)."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    roles = list(next(iter(found.values()))[0]["cells"])
    (left, right), (low, high) = (_box([drive[axis] for drive, _ in found.values()]) for axis in "xy")
    # A road that hardly bends still gets a panel that can be seen.
    spare = max(0.0, 0.35 * (right - left) - (high - low)) / 2, max(0.0, 0.35 * (high - low) - (right - left)) / 2
    low, high, left, right = low - spare[0], high + spare[0], left - spare[1], right + spare[1]
    tall = 1.25 * min((high - low) / (right - left), 1.6)
    with palette.figure_style():
        figure = Figure(figsize=(1.55 * len(found) + 1.2, (tall + 0.35) * len(roles) + 0.9), layout="compressed")
        grid = figure.subplots(len(roles), len(found), sharex=True, sharey=True, squeeze=False)
        for column, (model, (drive, came_from)) in enumerate(found.items()):
            points = np.column_stack([drive["x"], drive["y"]])
            segments = np.stack([points[:-1], points[1:]], 1)
            for row, role in enumerate(roles):
                panel, cell = grid[row, column], drive["cells"][role]
                values = activity_of(cell)
                # Ink below, so that a bright line can be seen on a bright page. Lines with soft edges, or in vectors,
                # would make a file of a megabyte.
                panel.plot(*points[::3].T, color=palette.INK, linewidth=3.2, solid_capstyle="round")
                lines = LineCollection(
                    list(segments), cmap=MAP, linewidths=2.2, rasterized=True, capstyle="round", antialiaseds=False
                )
                lines.set_array((values[:-1] + values[1:]) / 2)
                lines.set_clim(0, 1)
                drawn = panel.add_collection(lines)
                panel.plot(*points[0], "o", color=palette.INK, markersize=5)
                name = role if role.startswith("cell") else f"{role}:\ncell {cell['number']}"
                head = f"{palette.model_label(model)}\n{format_seed_and_loss(came_from)}\n" if row == 0 else ""
                panel.set_title(f"{head}{name}, r = {cell['r']:+.2f}", fontsize=6.5)
                panel.set(xlim=(left, right), ylim=(low, high))
                panel.set_aspect("equal")
                panel.tick_params(labelsize=6.5)
                panel.locator_params(nbins=4)
                panel.grid(False)
                if row == len(roles) - 1:
                    panel.set_xlabel("x (m)", fontsize="small")
                if column == 0:
                    panel.set_ylabel("y (m)", fontsize="small")
        bar = figure.colorbar(drawn, ax=grid, label="activity of the cell", pad=0.01, aspect=30, shrink=0.6)
        bar.set_ticks([0, 0.5, 1], labels=["lowest", "middle", "highest"])
        bar.outline.set_visible(False)
    return figure
