"""What a policy's neurons do while it drives, and which of them follow the road.

Curvature is in 1/m and left is positive, so a neuron that rises with it is active in left bends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from lrcnet_paper.driving import ARRIVED, Drivable, PolicyStep, drive
from lrcnet_paper.models.policy import Policy

CLEAR = 0.5
"""From this correlation on a neuron is said to turn left or right: it shares a quarter of its variance or more."""

Side = Literal["left", "right", "neither"]


@dataclass(frozen=True)
class WatchedDrive:
    """One closed-loop drive, each (time, ...) in float32.

    Attributes:
        x, y: of the car on the map, m.
        curvature: what the policy steered, 1/m.
        road_curvature: of the lane under the car, 1/m.
        activity: the recurrent layer's state h after each frame, (time, neuron).
        arrived: whether the drive ended at the road's end.
    """

    x: Tensor
    y: Tensor
    curvature: Tensor
    road_curvature: Tensor
    activity: Tensor
    arrived: bool

    @property
    def metres(self) -> float:
        """Length of the driven path."""
        return float(torch.hypot(self.x.diff(), self.y.diff()).sum())


def drive_and_watch(
    policy: Policy, world: Drivable, *, noise: float = 0.0, seed: int = 0, steps: int = 6000
) -> list[WatchedDrive]:
    """Lets a policy drive through a world and records its neurons.

    Args:
        policy: who steers.
        world: at the beginning of its drives.
        noise, seed, steps: as `lrcnet_paper.driving.drive` takes them.

    Returns:
        One drive per car; shorter where it crashed.
    """
    numbers: list[list[list[float]]] = [[] for _ in range(len(world))]
    states: list[list[Tensor]] = [[] for _ in range(len(world))]

    def watch(now: PolicyStep) -> None:
        hidden: Any = now.state[0] if isinstance(now.state, tuple) else now.state
        where = now.situation
        # (layer, car, neuron); of stacked layers the last one is what the read-out sees.
        for i, car in enumerate(now.cars.tolist()):
            columns = (where.x[car], where.y[car], now.action[i], where.road_curvature[car])
            numbers[car].append([float(number) for number in columns])
            states[car].append(hidden[-1, i].clone())

    policy.eval()
    ended = drive(world, policy.step, noise=noise, seed=seed, steps=steps, watch=watch)
    driven = []
    for car, rows in enumerate(numbers):
        x, y, steered, road = torch.tensor(rows).reshape(-1, 4).unbind(1)
        activity = torch.stack(states[car]).float() if rows else torch.zeros(0, policy.head.in_features)
        driven.append(WatchedDrive(x, y, steered, road, activity.clone(), bool(ended.status[car] == ARRIVED)))
    return driven


def correlation(activity: Tensor, signal: Tensor) -> Tensor:
    """Cross-correlation at no delay of each neuron with a signal: Pearson's r.

    Args:
        activity: (time, neuron).
        signal: (time,).

    Returns:
        (neuron,), from -1 to 1; 0 for a neuron, or a signal, that stands still.

    Raises:
        ValueError: for fewer than two moments, or lengths that differ.

    Example:
        >>> correlation(torch.tensor([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]]), torch.tensor([0.0, 1.0, 2.0]))
        tensor([ 1., -1.])
    """
    if len(activity) != len(signal) or len(signal) < 2:
        raise ValueError(
            f"activity and signal must have the same two moments or more, not {len(activity)}, {len(signal)}"
        )
    a, s = activity.double() - activity.double().mean(0), signal.double() - signal.double().mean()
    size = a.norm(dim=0) * s.norm()
    # What rounding leaves of a neuron that stands still must not count as a correlation.
    moving = (a.norm(dim=0) > 1e-6 * activity.double().norm(dim=0)) & (s.norm() > 0)
    found = torch.where(moving, (a * s.unsqueeze(1)).sum(0) / torch.where(size > 0, size, torch.ones_like(size)), 0.0)
    return found.clamp(-1, 1).to(activity.dtype)


def swings(activity: Tensor, metres: float) -> Tensor:
    """How restless each neuron is: ways up and down per km, in parts of its own range.

    A neuron that rises once and falls once in each of five bends of a kilometre has 10; noise adds to it.

    Args:
        activity: (time, neuron).
        metres: driven meanwhile.

    Returns:
        (neuron,); 0 for one that stands still.
    """
    if not metres > 0:
        raise ValueError(f"metres must be above 0, but are {metres}")
    span = activity.amax(0) - activity.amin(0)
    moved = activity.diff(dim=0).abs().sum(0)
    return torch.where(span > 0, moved / torch.where(span > 0, span, torch.ones_like(span)), 0.0) * (1000 / metres)


def side(r: float) -> Side:
    """Which way a neuron turns, by its correlation with the steered curvature: left from 0.5 on, right from -0.5 on.

    Example:
        >>> side(0.7), side(-0.6), side(0.2)
        ('left', 'right', 'neither')
    """
    return "left" if r >= CLEAR else "right" if r <= -CLEAR else "neither"


def turning_cells(r: Tensor) -> tuple[int, int]:
    """Numbers, from 0, of the neuron that turns left most clearly and of the one that turns right most clearly.

    They are those of the largest and of the smallest correlation with the steered curvature.

    Example:
        >>> turning_cells(torch.tensor([0.1, 0.9, -0.8]))
        (1, 2)
    """
    return int(r.argmax()), int(r.argmin())
