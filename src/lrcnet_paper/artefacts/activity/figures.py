"""Drawing of the activity artefact, and the reduction of a drive to a small JSON value."""

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
COLOUR_MAP = "viridis"


def thin_drive(drive: WatchedDrive, cells: Mapping[str, int], r: Tensor) -> dict[str, Any]:
    """Return a drive's path to 0.1 m, and the activity of some cells from 0 (lowest) to 255 (highest) as base64.

    Args:
        drive: the watched drive.
        cells: name of a cell -> its number, from 0.
        r: correlation of every neuron with the steered curvature.
    """
    indices = np.unique(np.linspace(0, len(drive.x) - 1, min(POINTS, len(drive.x))).round().astype(int))
    thinned: dict[str, Any] = {
        "x": [round(v, 1) for v in drive.x[indices].tolist()],
        "y": [round(v, 1) for v in drive.y[indices].tolist()],
        "cells": {},
    }
    for name, number in cells.items():
        values = drive.activity[:, number].numpy()
        low, high = float(values.min()), float(values.max())
        scaled = (values[indices] - low) / (high - low if high > low else 1.0)
        thinned["cells"][name] = {
            "number": number + 1,
            "r": round(float(r[number]), 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "values": base64.b64encode((scaled * 255).round().astype(np.uint8).tobytes()).decode(),
        }
    return thinned


def unpack_activity(cell: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the activity of a cell that `thin_drive` packed, from 0 (lowest) to 1 (highest)."""
    return np.frombuffer(base64.b64decode(cell["values"]), np.uint8) / 255


def _limits(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the smallest and the largest number of all columns, with a margin."""
    low, high = min(map(min, columns)), max(map(max, columns))
    margin = 0.06 * (high - low) + 0.5
    return low - margin, high + margin


def draw_roads(drives: Mapping[str, tuple[Mapping[str, Any], Provenance]]) -> Figure:
    """Draw model -> (thinned drive, provenance) as one map per model (across) and cell (down)."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    roles = list(next(iter(drives.values()))[0]["cells"])
    (left, right), (low, high) = (_limits([drive[axis] for drive, _ in drives.values()]) for axis in "xy")
    # Widen the shorter side, so that the panel of a nearly straight road is not too narrow to see.
    spare = max(0.0, 0.35 * (right - left) - (high - low)) / 2, max(0.0, 0.35 * (high - low) - (right - left)) / 2
    low, high, left, right = low - spare[0], high + spare[0], left - spare[1], right + spare[1]
    panel_height = 1.25 * min((high - low) / (right - left), 1.6)
    with palette.figure_style():
        figure = Figure(
            figsize=(1.55 * len(drives) + 1.2, (panel_height + 0.35) * len(roles) + 0.9), layout="compressed"
        )
        grid = figure.subplots(len(roles), len(drives), sharex=True, sharey=True, squeeze=False)
        for column, (model, (drive, provenance)) in enumerate(drives.items()):
            points = np.column_stack([drive["x"], drive["y"]])
            segments = np.stack([points[:-1], points[1:]], 1)
            for row, role in enumerate(roles):
                panel, cell = grid[row, column], drive["cells"][role]
                values = unpack_activity(cell)
                # A line of ink below makes a bright line visible on a bright page. Antialiased lines or vector
                # graphics would make a file of a megabyte.
                panel.plot(*points[::3].T, color=palette.INK, linewidth=3.2, solid_capstyle="round")
                lines = LineCollection(
                    list(segments),
                    cmap=COLOUR_MAP,
                    linewidths=2.2,
                    rasterized=True,
                    capstyle="round",
                    antialiaseds=False,
                )
                lines.set_array((values[:-1] + values[1:]) / 2)
                lines.set_clim(0, 1)
                collection = panel.add_collection(lines)
                panel.plot(*points[0], "o", color=palette.INK, markersize=5)
                name = role if role.startswith("cell") else f"{role}:\ncell {cell['number']}"
                heading = f"{palette.model_label(model)}\n{format_seed_and_loss(provenance)}\n" if row == 0 else ""
                panel.set_title(f"{heading}{name}, r = {cell['r']:+.2f}", fontsize=6.5)
                panel.set(xlim=(left, right), ylim=(low, high))
                panel.set_aspect("equal")
                panel.tick_params(labelsize=6.5)
                panel.locator_params(nbins=4)
                panel.grid(False)
                if row == len(roles) - 1:
                    panel.set_xlabel("x (m)", fontsize="small")
                if column == 0:
                    panel.set_ylabel("y (m)", fontsize="small")
        bar = figure.colorbar(collection, ax=grid, label="activity of the cell", pad=0.01, aspect=30, shrink=0.6)
        bar.set_ticks([0, 0.5, 1], labels=["lowest", "middle", "highest"])
        bar.outline.set_visible(False)
    return figure
