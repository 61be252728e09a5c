"""Closed race tracks given by points, made into roads: a smooth centre line with its direction, curvature and speed."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet_paper.driving.road import GRID, SIGHT, Road, roads_from_curvature

_FINE = 0.25
# Rounds off the corners between straight pieces of a track; a bend of 11 m radius becomes 0.3 m narrower.
_SMOOTHING = 2.5


def road_along_loop(points: NDArray[np.float64], *, length: float, cruise: float, before: float = 0.0) -> Road:
    """Make a road along a closed track, over as many laps as its length needs.

    Args:
        points: points of the centre line in driving order, (point, 2), m; the first one is not repeated at the end.
        length: distance to drive, m.
        cruise: speed on a straight, m/s; bends are taken with at most 2.5 m/s² sideways.
        before: distance before the first point at which the road begins, m.

    Returns:
        One road, (1, grid), in the coordinates of the points.
    """
    fine = _resample(points, _FINE)
    rate = np.fft.fftfreq(len(fine), _FINE)
    blur = np.exp(-2 * (np.pi * rate * _SMOOTHING) ** 2)
    smooth = np.fft.ifft(np.fft.fft(fine[:, 0] + 1j * fine[:, 1]) * blur)
    fine = np.stack([smooth.real, smooth.imag], 1)
    around = np.linalg.norm(np.roll(fine, -1, 0) - fine, axis=1)
    arc, lap = np.concatenate([[0.0], around.cumsum()[:-1]]), float(around.sum())
    step = np.roll(fine, -1, 0) - np.roll(fine, 1, 0)
    direction = np.unwrap(np.arctan2(step[:, 1], step[:, 0]))
    turn = 2 * np.pi * round((direction[-1] - direction[0]) / (2 * np.pi))
    grid = np.arange(int(length / GRID) + SIGHT + 1) * GRID - before
    laps, within = np.divmod(grid, lap)

    def at_grid(column: NDArray[np.float64], gain: float = 0.0) -> NDArray[np.float64]:
        """Interpolate a quantity that grows by `gain` per lap."""
        once: NDArray[np.float64] = np.interp(within, np.append(arc, lap), np.append(column, column[0] + gain))
        return once + gain * laps

    heading = at_grid(direction, turn)
    curvature = np.gradient(heading, GRID)
    road = roads_from_curvature(_as_table(curvature), cruise=cruise)
    return dataclasses.replace(
        road,
        direction=_as_table(heading),
        x=_as_table(at_grid(fine[:, 0])),
        y=_as_table(at_grid(fine[:, 1])),
        length=float(length),
    )


def join_roads(roads: list[Road]) -> Road:
    """Join roads of one length and batch size 1 into a batch."""
    tables = {
        field.name: torch.cat([getattr(road, field.name) for road in roads])
        for field in dataclasses.fields(Road)
        if field.name != "length"
    }
    return Road(roads[0].length, **tables)


class RoadTracker:
    """Finds the places of cars on their roads, searching near the last place of each.

    Args:
        road: roads under the cars.
        reach: largest distance that a car moves between two calls, m.
    """

    def __init__(self, road: Road, *, reach: int = 4) -> None:
        self._road, self._reach = road, reach
        self._last = torch.zeros(len(road), dtype=torch.long)

    def find(self, x: Tensor, y: Tensor, direction: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Find arc length (m), offset (m) and heading error (rad) of cars at places on the map, all (batch,)."""
        road = self._road
        window = self._last[:, None] + torch.arange(-self._reach, self._reach + 1)
        window = window.clamp(0, road.x.shape[1] - 2)
        gap = (road.x.gather(1, window) - x[:, None]) ** 2 + (road.y.gather(1, window) - y[:, None]) ** 2
        self._last = window.gather(1, gap.argmin(1, keepdim=True))[:, 0]
        arc = self._last.double() * GRID
        for _ in range(2):
            # Move along the tangent; the step is scaled because a bend is narrower or wider where the car is.
            nearest = [road.at(table, arc) for table in (road.x, road.y, road.direction, road.curvature)]
            cos, sin = nearest[2].cos(), nearest[2].sin()
            beyond = (x - nearest[0]) * cos + (y - nearest[1]) * sin
            offset = (y - nearest[1]) * cos - (x - nearest[0]) * sin
            arc = arc + beyond / (1 - nearest[3] * offset).clamp_min(0.2)
        ahead = road.at(road.direction, arc)
        offset = (y - road.at(road.y, arc)) * ahead.cos() - (x - road.at(road.x, arc)) * ahead.sin()
        return arc, offset, torch.remainder(direction - ahead + torch.pi, 2 * torch.pi) - torch.pi


def _as_table(values: NDArray[np.float64]) -> Tensor:
    """Convert numbers over the grid to a table of one road, (1, grid)."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64))[None]


def _resample(points: NDArray[np.float64], spacing: float) -> NDArray[np.float64]:
    """Return points of a closed line about `spacing` apart."""
    closed = np.concatenate([points, points[:1]])
    arc = np.concatenate([[0.0], np.linalg.norm(np.diff(closed, axis=0), axis=1).cumsum()])
    count = round(float(arc[-1]) / spacing)
    at = np.arange(count) * (arc[-1] / count)
    return np.stack([np.interp(at, arc, closed[:, 0]), np.interp(at, arc, closed[:, 1])], 1)
