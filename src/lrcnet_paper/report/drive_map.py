"""The road and the drives on it from above, turned so that the map is wider than high."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.report.drive_charts import round_length
from lrcnet_paper.report.replay import Replay

Floats = NDArray[np.float64]

FLATTEST, TALLEST = 2.6, 1.5
"""Largest and smallest ratio of a map's width to its height."""


@dataclass(frozen=True)
class RoadMap:
    """The road of one season on a map; in m, y downwards as on a screen.

    Attributes:
        box: left, top, width and height of the map, the same for all seasons.
        turned: whether the y axis of the world points to the right of the map.
        points: the expert's path, one point per metre, (point, 2).
        direction: its direction, counter-clockwise, rad, (point,).
        curvature, speed: of the road, 1/m and m/s, (point,).
    """

    box: tuple[float, float, float, float]
    turned: bool
    points: Floats
    direction: Floats
    curvature: Floats
    speed: Floats

    @property
    def bar(self) -> float:
        """Length of the scale bar, m."""
        return round_length(self.box[2] / 8)

    def place(self, x: Floats, y: Floats, direction: Floats) -> tuple[Floats, Floats, Floats]:
        """Return positions and directions of the world on this map."""
        return (y, x, direction - math.pi / 2) if self.turned else (x, -y, direction)


def make_road_maps(replays: Mapping[str, Sequence[Replay]]) -> dict[str, RoadMap]:
    """Lay out one map for the drives of all seasons, given by season."""
    every = [replay for drives in replays.values() for replay in drives]
    points = np.concatenate(
        [part for one in every for part in (one.centre_line, np.stack([one.x, one.y], 1)[np.isfinite(one.x)])]
    )
    turned = bool(np.ptp(points[:, 1]) > np.ptp(points[:, 0]))
    points = points[:, ::-1] if turned else points * (1, -1)
    (left, top), (right, bottom) = points.min(0), points.max(0)
    edge = max(0.06 * (right - left), 6.0)
    wide, high = right - left + 2 * edge, bottom - top + 2 * edge
    wide, high = max(wide, TALLEST * high), max(high, wide / FLATTEST)
    box = tuple(float(v) for v in ((left + right - wide) / 2, (top + bottom - high) / 2, wide, high))
    assert len(box) == 4
    return {season: _road_map(drives[0], box, turned) for season, drives in replays.items()}


def _road_map(replay: Replay, box: tuple[float, float, float, float], turned: bool) -> RoadMap:
    steps = np.hypot(*np.diff(replay.centre_line, axis=0).T)
    arc = np.concatenate([[0.0], steps.cumsum()])
    metres = np.arange(max(3, int(arc[-1]) + 1), dtype=np.float64)
    x, y = (np.interp(metres, arc, replay.centre_line[:, k]) for k in (0, 1))
    direction = np.unwrap(np.arctan2(np.gradient(y, edge_order=2), np.gradient(x, edge_order=2)))
    known = replay.road_curvature
    curvature = np.gradient(direction) if known is None else np.interp(metres, arc, known)
    speed = np.interp(metres, arc, replay.road_speed)
    across, down, angle = RoadMap(box, turned, np.empty(0), direction, curvature, speed).place(x, y, direction)
    return RoadMap(box, turned, np.stack([across, down], 1), angle, curvature, speed)
