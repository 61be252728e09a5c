"""Activity of a policy's neurons along drives, and which of them follow the road.

Curvature is in 1/m and left is positive, so a neuron that rises with it is active in left bends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from lrcnet.errors import check_kind
from lrcnet_paper.driving import ARRIVED, Drivable, PolicyStep, drive
from lrcnet_paper.models.policy import Policy

CLEAR = 0.5
"""Smallest correlation of a neuron that is said to turn left or right: it explains a quarter of the variance."""

Side = Literal["left", "right", "neither"]


@dataclass(frozen=True)
class WatchedDrive:
    """One closed-loop drive with the activity of the neurons, each (time, ...) in float32.

    Attributes:
        x, y: position of the car on the map, m.
        curvature: curvature that the policy steered, 1/m.
        road_curvature: curvature of the lane under the car, 1/m.
        activity: state h of the recurrent layer after each frame, (time, neuron).
        arrived: whether the drive reached the end of the road.
        road: the centre line of the whole road on the map, (point, 2), m.
    """

    x: Tensor
    y: Tensor
    curvature: Tensor
    road_curvature: Tensor
    activity: Tensor
    arrived: bool
    road: Tensor = field(default_factory=lambda: torch.zeros(0, 2))

    @property
    def metres(self) -> float:
        """Length of the driven path."""
        return float(torch.hypot(self.x.diff(), self.y.diff()).sum())

    def steps_within(self, metres: float) -> int:
        """Return the number of steps within the first metres of the drive."""
        driven = torch.hypot(self.x.diff(), self.y.diff()).cumsum(0)
        return 1 + int((driven <= metres).sum())


def drive_and_watch(
    policy: Policy, world: Drivable, *, noise: float = 0.0, seed: int = 0, steps: int = 6000
) -> list[WatchedDrive]:
    """Let a policy drive through a world and record its neurons.

    Args:
        policy: the policy that steers.
        world: a world at the beginning of its drives.
        noise, seed, steps: as `lrcnet_paper.driving.drive` takes them.

    Returns:
        One drive per car; it is shorter if the car crashed.
    """
    numbers: list[list[list[float]]] = [[] for _ in range(len(world))]
    states: list[list[Tensor]] = [[] for _ in range(len(world))]

    def watch(step: PolicyStep) -> None:
        hidden: Any = step.state[0] if isinstance(step.state, tuple) else step.state
        situation = step.situation
        # (layer, car, neuron); the read-out gets the last of stacked layers.
        for i, car in enumerate(step.cars.tolist()):
            columns = (situation.x[car], situation.y[car], step.action[i], situation.road_curvature[car])
            numbers[car].append([float(number) for number in columns])
            states[car].append(hidden[-1, i].clone())

    policy.eval()
    outcomes = drive(world, policy.step, noise=noise, seed=seed, steps=steps, watch=watch)
    drives = []
    for car, rows in enumerate(numbers):
        x, y, curvature, road_curvature = torch.tensor(rows).reshape(-1, 4).unbind(1)
        activity = torch.stack(states[car]).float() if rows else torch.zeros(0, policy.head.in_features)
        drives.append(
            WatchedDrive(
                x,
                y,
                curvature,
                road_curvature,
                activity.clone(),
                bool(outcomes.status[car] == ARRIVED),
                world.centre_line(car).float(),
            )
        )
    return drives


def correlation(activity: Tensor, signal: Tensor) -> Tensor:
    """Compute the cross-correlation at zero delay of each neuron with a signal: Pearson's r.

    Args:
        activity: (time, neuron).
        signal: (time,).

    Returns:
        (neuron,), from -1 to 1; 0 for a constant neuron or signal.

    Raises:
        ValueError: for fewer than two time steps, lengths that differ, or numbers that are not finite.

    Example:
        >>> correlation(torch.tensor([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]]), torch.tensor([0.0, 1.0, 2.0]))
        tensor([ 1., -1.])
    """
    for name, values, axes in (("activity", activity, 2), ("signal", signal, 1)):
        check_kind(name, values, Tensor, "a tensor")
        if values.dim() != axes or values.is_complex():
            raise ValueError(
                f"{name} must be real and have {axes} dimension(s), but is {values.dtype} with {values.dim()}"
            )
    if len(activity) != len(signal) or len(signal) < 2:
        raise ValueError(
            f"activity and signal must have the same number of time steps, at least two, but have {len(activity)} and "
            f"{len(signal)}"
        )
    if not (bool(activity.isfinite().all()) and bool(signal.isfinite().all())):
        raise ValueError("activity and signal must be finite, but hold an infinite value or NaN; leave those steps out")
    a, s = activity.double() - activity.double().mean(0), signal.double() - signal.double().mean()
    size = a.norm(dim=0) * s.norm()
    # Rounding errors of a constant neuron must not count as a correlation.
    moving = (a.norm(dim=0) > 1e-6 * activity.double().norm(dim=0)) & (s.norm() > 0)
    r = torch.where(moving, (a * s.unsqueeze(1)).sum(0) / torch.where(size > 0, size, torch.ones_like(size)), 0.0)
    return r.clamp(-1, 1).to(activity.dtype)


def swings(activity: Tensor, metres: float) -> Tensor:
    """Count the swings of each neuron per km: its total variation relative to its own range.

    A neuron that rises once and falls once in each of five bends of a kilometre has 10 swings; noise adds to them.

    Args:
        activity: (time, neuron).
        metres: distance driven meanwhile.

    Returns:
        (neuron,); 0 for a constant neuron.
    """
    if not metres > 0:
        raise ValueError(f"metres must be above 0, but are {metres}")
    span = activity.amax(0) - activity.amin(0)
    moved = activity.diff(dim=0).abs().sum(0)
    return torch.where(span > 0, moved / torch.where(span > 0, span, torch.ones_like(span)), 0.0) * (1000 / metres)


def side(r: float) -> Side:
    """Name the side to which a neuron turns, by its correlation r with the steered curvature.

    It is left if r >= 0.5 and right if r <= -0.5.

    Example:
        >>> side(0.7), side(-0.6), side(0.2)
        ('left', 'right', 'neither')
    """
    return "left" if r >= CLEAR else "right" if r <= -CLEAR else "neither"


def turning_cells(r: Tensor) -> tuple[int, int]:
    """Return the numbers, from 0, of the neurons that turn left and right most clearly.

    They have the largest and the smallest correlation with the steered curvature.

    Example:
        >>> turning_cells(torch.tensor([0.1, 0.9, -0.8]))
        (1, 2)
    """
    return int(r.argmax()), int(r.argmin())
