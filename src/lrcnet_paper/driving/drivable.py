"""What a world must offer to be driven in: pictures, a step, where the cars are, and what its own driver would do.

Everything is batched: a world of one car has a batch of one. Lengths in metres, angles in radians, curvature in 1/m,
left is positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True)
class Situation:
    """Where the cars are, each (batch,) in float64; what a world does not know is NaN.

    Attributes:
        offset: from the path that the world's own driver takes, m, left positive.
        heading: against the direction of that path, rad.
        speed: m/s.
        road_curvature: of that path under the car, 1/m.
        x, y: on the map, m.
        direction: on the map, counter-clockwise from the x axis, rad.
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
        """Cars."""
        ...

    def frames(self) -> Tensor:
        """What the cars see, (batch, 48, 160, 3), uint8, RGB."""
        ...

    def situation(self) -> Situation:
        """Where the cars are now."""
        ...

    def status(self) -> Tensor:
        """vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED of each car, (batch,)."""
        ...

    def advice(self) -> Tensor:
        """The curvature that the world's own driver would steer now, 1/m, (batch,)."""
        ...

    def step(self, action: Tensor) -> Tensor:
        """1/30 s further with these curvatures, 1/m, (batch,); returns `status`. Who has ended stays there."""
        ...

    def centre_line(self, car: int) -> Tensor:
        """The path of the world's own driver on the map, (point, 2), m."""
        ...


def check_action(action: Tensor, cars: int) -> None:
    """Refuses an action of another shape than one curvature per car."""
    if action.shape != (cars,):
        raise ValueError(f"action must have shape ({cars},), one curvature per car, but has {tuple(action.shape)}")
