"""The contract of a world to drive in, and the checks of arguments that all worlds share.

Everything is batched: a world of one car has a batch of one. Lengths are in metres, angles in radians, curvature in
1/m; left is positive.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True)
class Situation:
    """Position and motion of the cars, each (batch,) in float64; NaN where a world does not know the quantity.

    Attributes:
        offset: distance from the expert's path, m, left positive.
        heading: angle against the direction of that path, rad.
        speed: m/s.
        road_curvature: curvature of that path under the car, 1/m.
        x, y: position on the map, m.
        direction: direction on the map, counter-clockwise from the x axis, rad.
    """

    offset: Tensor
    heading: Tensor
    speed: Tensor
    road_curvature: Tensor
    x: Tensor
    y: Tensor
    direction: Tensor


class Drivable(Protocol):
    """A world with cars in it."""

    def __len__(self) -> int:
        """Return the number of cars."""
        ...

    def frames(self) -> Tensor:
        """Render the camera frames of all cars, (batch, 48, 160, 3), uint8, RGB."""
        ...

    def situation(self) -> Situation:
        """Return the present position and motion of the cars."""
        ...

    def status(self) -> Tensor:
        """Return vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED for each car, (batch,)."""
        ...

    def advice(self) -> Tensor:
        """Return the curvature that the world's expert would steer now, 1/m, (batch,)."""
        ...

    def step(self, action: Tensor) -> Tensor:
        """Advance every car by 1/30 s. Cars whose drive has ended do not move.

        Args:
            action: curvature to steer, 1/m, (batch,).

        Returns:
            The `status` after the step.

        Raises:
            ValueError: for an action of another shape.
        """
        ...

    def centre_line(self, car: int) -> Tensor:
        """Return the path that the expert follows on the map, (point, 2), m."""
        ...


def check_action(action: Tensor, cars: int) -> None:
    """Raise a ValueError unless an action has one finite curvature per car."""
    if action.shape != (cars,):
        raise ValueError(f"action must have shape ({cars},), one curvature per car, but has {tuple(action.shape)}")
    if not bool(action.isfinite().all()):
        car = int((~action.isfinite()).nonzero()[0])
        raise ValueError(f"action must be finite, but is {action[car].item()} for car {car}; did the policy diverge?")


def check_not_empty(name: str, values: Sized, unit: str, advice: str) -> None:
    """Raise a ValueError if an argument that lists episodes, roads or folders is empty."""
    if not len(values):
        raise ValueError(f"{name} must name at least one {unit}, but are empty; {advice}")


def check_length(length: float) -> None:
    """Raise a ValueError if a drive is shorter than 1 m."""
    if not length >= 1:
        raise ValueError(f"length must be at least 1 m, but is {length}; ask for a longer drive")
