"""Roads: a curvature that is piecewise linear in arc length (clothoids), with worn and snowy stretches and a speed.

Axes: batch, then grid (points 1 m apart along the centre line of the car's lane). Lengths are in metres, angles in
radians, curvature in 1/m; left turns are positive.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet_paper.driving.drivable import check_length
from lrcnet_paper.driving.seeded_random import between, uniforms

LANE_WIDTH = 3.5
# VISTA ends an episode at half the width of its 4 m road, measured from the recorded path.
ROAD_WIDTH = 4.0
SMALLEST_RADIUS, LARGEST_RADIUS = 25.0, 350.0
# The camera sees this far, so the tables extend beyond the end of the road by this much.
SIGHT = 160
GRID = 1.0
_STREAM_SHAPE, _STREAM_STATE = 1, 2
# Each section has one worn and one snowy stretch, so the share of bad road does not depend on the length.
_SECTION = 200.0


@dataclass(frozen=True)
class Road:
    """A batch of roads as tables over a grid of arc lengths.

    Attributes:
        length: arc length of the end of the road, m.
        curvature, direction: of the centre line, 1/m and rad, (batch, grid), float64.
        x, y: position of the centre line on the map, m, (batch, grid), float64.
        speed: speed of the traffic, m/s, (batch, grid), float64.
        wear: share of the paint that is worn off, 0 to 1, (batch, grid), float64.
        snow: cover of snow in winter, 0 to 1, (batch, grid), float64.
        hand: 1 for traffic on the right, -1 for traffic on the left, (batch,), float64.
    """

    length: float
    curvature: Tensor
    direction: Tensor
    x: Tensor
    y: Tensor
    speed: Tensor
    wear: Tensor
    snow: Tensor
    hand: Tensor

    def __len__(self) -> int:
        return len(self.curvature)

    def at(self, table: Tensor, arc: Tensor) -> Tensor:
        """Interpolate a table at arc lengths, linearly between grid points; (batch, ...), of the shape of `arc`."""
        flat = arc.reshape(len(arc), -1) / GRID
        low = flat.floor().clamp(0, table.shape[1] - 2)
        index = low.long()
        left, right = table.gather(1, index), table.gather(1, index + 1)
        return torch.lerp(left, right, (flat - low).clamp(0, 1)).reshape(arc.shape)

    def pose(self, arc: Tensor, offset: Tensor, heading: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return position (m) and direction (rad) on the map of cars at arc lengths, offsets and headings, (batch,)."""
        low = (arc / GRID).floor().clamp(0, self.x.shape[1] - 2)
        index = low.long()[:, None]
        along = arc - low * GRID
        here = self.curvature.gather(1, index)[:, 0]
        slope = (self.curvature.gather(1, index + 1)[:, 0] - here) / GRID
        start = self.direction.gather(1, index)[:, 0]
        # With the direction in the middle of the chord, the position is off by micrometres only.
        middle = start + (here / 2 + slope * along / 6) * along
        direction = start + (here + slope * along / 2) * along
        x = self.x.gather(1, index)[:, 0] + along * middle.cos() - offset * direction.sin()
        y = self.y.gather(1, index)[:, 0] + along * middle.sin() + offset * direction.cos()
        return x, y, direction + heading

    def mirror(self) -> Road:
        """Mirror the roads: left bends become right bends, and the traffic changes sides."""
        return dataclasses.replace(
            self, curvature=-self.curvature, direction=-self.direction, y=-self.y, hand=-self.hand
        )


def roads_from_curvature(curvature: Tensor, *, wear: float = 0.0, snow: float = 0.0, cruise: float = 13.0) -> Road:
    """Make roads of a given curvature.

    Args:
        curvature: 1/m at every metre, (batch, grid); the last `SIGHT` metres are only seen, never driven.
        wear, snow: constant along the road, 0 to 1.
        cruise: speed on a straight, m/s.

    Raises:
        ValueError: if the curvature is too short for a road to drive on.

    >>> roads_from_curvature(torch.zeros(2, 500)).length
    339.0
    """
    if curvature.ndim != 2 or curvature.shape[1] < SIGHT + 2:
        raise ValueError(
            f"curvature must have shape (batch, grid) with more than {SIGHT + 1} grid points, but is "
            f"{tuple(curvature.shape)}; make the road longer"
        )
    whole = torch.ones_like(curvature, dtype=torch.float64)
    limit = torch.full((len(curvature), 1), 2.5, dtype=torch.float64)
    return _assemble(curvature.double(), cruise * whole[:, :1], limit, wear * whole, snow * whole)


def sample_roads(seeds: Sequence[int], length: float = 1000.0) -> Road:
    """Make roads from seeds: straights, bends and S-curves with radii from 25 m.

    Args:
        seeds: one per road; the road depends on its own seed only.
        length: length of the road to drive on, m.

    Raises:
        ValueError: if length is less than 1 m.

    >>> road = sample_roads([1, 2, 3], 400.0)
    >>> road.curvature.shape
    torch.Size([3, 561])
    """
    check_length(length)
    points = int(length / GRID) + SIGHT + 1
    grid = torch.arange(points, dtype=torch.float64) * GRID
    knots, values = _clothoids(seeds, grid[-1].item())
    curvature = _interpolate(grid, knots, values)
    sections = math.ceil(points * GRID / _SECTION)
    u = uniforms(seeds, 2 + sections * 2 * 3, stream=_STREAM_STATE)
    cruise, limit = between(9.0, 17.0, u[:, :1]), between(2.0, 3.2, u[:, 1:2])
    wear, snow = (_stretches(grid, part) for part in u[:, 2:].reshape(-1, sections, 2, 3).unbind(2))
    return _assemble(curvature, cruise, limit, wear, snow)


def _clothoids(seeds: Sequence[int], reach: float) -> tuple[Tensor, Tensor]:
    """Draw arc lengths and curvatures of the knots between which curvature is linear, both (batch, 2 * parts + 1)."""
    # A part, which is a ramp and a straight or bend of constant curvature, is at least 20 m long.
    parts = int(reach / 20.0) + 2
    u = uniforms(seeds, parts * 6, stream=_STREAM_SHAPE).reshape(-1, parts, 6)
    straight = u[..., 0] < 0.33
    straight[:, 0] = True
    radius = SMALLEST_RADIUS * (LARGEST_RADIUS / SMALLEST_RADIUS) ** u[..., 1]
    # Successive bends mostly turn opposite ways, which makes S-curves.
    side = torch.where(u[..., 2] < 0.7, -1.0, 1.0).double().cumprod(1)
    side = side * torch.where(u[:, :1, 4] < 0.5, -1.0, 1.0)
    curvature = torch.where(straight, 0.0, side / radius)
    before = torch.cat([torch.zeros_like(curvature[:, :1]), curvature[:, :-1]], 1)
    ramp = ((curvature - before).abs() / between(0.0012, 0.0025, u[..., 3])).clamp_min(10.0)
    turned = between(0.25, 1.5, u[..., 5]) * radius - ramp
    hold = torch.where(straight, between(20.0, 120.0, u[..., 5]), turned.clamp(10.0, 90.0))
    pieces = torch.stack([ramp, hold], 2).flatten(1)
    knots = torch.cat([torch.zeros_like(pieces[:, :1]), pieces.cumsum(1)], 1)
    values = torch.cat([torch.zeros_like(curvature[:, :1]), curvature.repeat_interleave(2, 1)], 1)
    return knots, values


def _interpolate(grid: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """Interpolate values between knots linearly at grid points, (batch, grid)."""
    arc = grid.expand(len(knots), -1).contiguous()
    right = torch.searchsorted(knots.contiguous(), arc, right=True).clamp(1, knots.shape[1] - 1)
    start, end = knots.gather(1, right - 1), knots.gather(1, right)
    return torch.lerp(values.gather(1, right - 1), values.gather(1, right), ((arc - start) / (end - start)))


def _stretches(grid: Tensor, u: Tensor) -> Tensor:
    """Place a stretch of some strength in each section, (batch, grid), 0 to 1, with edges that fade over 8 m.

    Stretches cover about a third of a road.

    Args:
        grid: arc lengths, (grid,).
        u: position, length and strength of each section's stretch as uniform numbers, (batch, section, 3).
    """
    position, size, strength = u.unsqueeze(-1).unbind(2)
    middle = (torch.arange(u.shape[1])[:, None] + position) * _SECTION
    inside = ((between(10.0, 55.0, size) - (grid - middle).abs()) / 8.0 + 0.5).clamp(0, 1)
    return (inside * between(0.35, 1.0, strength)).amax(1)


def _assemble(curvature: Tensor, cruise: Tensor, limit: Tensor, wear: Tensor, snow: Tensor) -> Road:
    """Integrate curvature to directions and positions, and add the speed."""
    zero = torch.zeros_like(curvature[:, :1])
    turn = (curvature[:, :-1] + curvature[:, 1:]) * (GRID / 2)
    direction = torch.cat([zero, turn.cumsum(1)], 1)
    # Curvature is linear between two points, so the direction is a parabola; this is its value in the middle.
    middle = direction[:, :-1] + (3 * curvature[:, :-1] + curvature[:, 1:]) * (GRID / 8)
    steps = torch.stack([direction[:, :-1], middle, direction[:, 1:]])
    weights = torch.tensor([1.0, 4.0, 1.0], dtype=torch.float64).view(3, 1, 1) * (GRID / 6)
    x = torch.cat([zero, (weights * steps.cos()).sum(0).cumsum(1)], 1)
    y = torch.cat([zero, (weights * steps.sin()).sum(0).cumsum(1)], 1)
    hand = torch.ones(len(curvature), dtype=torch.float64)
    return Road(
        (curvature.shape[1] - 1 - SIGHT) * GRID,
        curvature,
        direction,
        x,
        y,
        _speed(curvature, cruise, limit),
        wear,
        snow,
        hand,
    )


def _speed(curvature: Tensor, cruise: Tensor, limit: Tensor) -> Tensor:
    """Return the fastest speed below `cruise` whose sideways acceleration stays below `limit`, with gentle changes."""
    brake, gain = 1.8, 1.2
    arc = torch.arange(curvature.shape[1], dtype=torch.float64) * GRID
    squared = torch.minimum(cruise**2, limit / curvature.abs().clamp_min(1e-9))
    # v^2 may fall by 2 * brake per metre and rise by 2 * gain: two running minima of a tilted profile.
    squared = (squared + 2 * brake * arc).flip(1).cummin(1).values.flip(1) - 2 * brake * arc
    squared = (squared - 2 * gain * arc).cummin(1).values + 2 * gain * arc
    return squared.sqrt()
