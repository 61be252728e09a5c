"""The base of our own world and of CarRacing: cars on roads of known geometry, and the expert that follows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet_paper.driving.drivable import Situation, check_action
from lrcnet_paper.driving.expert import Expert, steer_along
from lrcnet_paper.driving.road import GRID, Road
from lrcnet_paper.driving.vehicle import State, road_status

Viewpoint = TypeVar("Viewpoint")


class RoadWorld(ABC, Generic[Viewpoint]):
    """Cars on roads, each car alone on its own road; a `Drivable`.

    A viewpoint holds all that the camera needs to know about one step, so a drive can be finished first and rendered
    later.

    Attributes:
        seeds: one per car.
        road: the roads; the expert follows their centre lines.
        state: position of the cars on their roads.
    """

    seeds: list[int]
    road: Road
    state: State

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    @abstractmethod
    def speed(self) -> Tensor:
        """Speed of the cars, m/s, (batch,)."""

    @property
    @abstractmethod
    def season_codes(self) -> NDArray[np.uint8]:
        """Season of each car as a recording stores it, (batch,): 0 summer, 1 winter, 255 unknown."""

    @property
    def road_curvature(self) -> Tensor:
        """Curvature of the lane under the cars, 1/m, (batch,)."""
        return self.road.at(self.road.curvature, self.state.arc)

    @abstractmethod
    def map_pose(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return position (m, m) and direction (rad) of the cars on the map, each (batch,)."""

    @abstractmethod
    def viewpoint(self) -> Viewpoint:
        """Return the present viewpoint of the cars, which `render` accepts later."""

    @abstractmethod
    def render(self, viewpoint: Viewpoint, cars: NDArray[np.int64] | None = None) -> Tensor:
        """Render the frames of some cars from a viewpoint of this world, (car, 48, 160, 3), uint8, RGB.

        Args:
            viewpoint: of all cars.
            cars: numbers of the cars to render; None renders all.
        """

    @abstractmethod
    def _move(self, action: Tensor, disturbance: Tensor | float) -> None:
        """Move the cars whose drive has not ended by one step."""

    def frames(self) -> Tensor:
        """Render the camera frames of all cars, (batch, 48, 160, 3), uint8, RGB."""
        return self.render(self.viewpoint())

    def status(self) -> Tensor:
        """Return vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED for each car, (batch,)."""
        return road_status(self.road, self.state)

    def situation(self) -> Situation:
        """Return the present position and motion of the cars."""
        x, y, direction = self.map_pose()
        return Situation(self.state.offset, self.state.heading, self.speed, self.road_curvature, x, y, direction)

    def advice(self) -> Tensor:
        """Return the curvature that an expert with steady hands and no delay would steer now, 1/m, (batch,)."""
        return steer_along(self.road, self.state.arc, self.state.offset, self.state.heading)

    def centre_line(self, car: int) -> Tensor:
        """Return the centre line of a car's road on the map up to its end, (point, 2), m, one point per metre."""
        points = int(self.road.length / GRID) + 1
        return torch.stack([self.road.x[car, :points], self.road.y[car, :points]], 1)

    def step(self, action: Tensor, disturbance: Tensor | float = 0.0) -> Tensor:
        """Advance every car by 1/30 s. Cars whose drive has ended do not move.

        Args:
            action: curvature to steer, 1/m, (batch,).
            disturbance: curvature that the wind adds, 1/m, (batch,).

        Returns:
            The `status` after the step.

        Raises:
            ValueError: for an action of another shape, or one that is not finite.
        """
        check_action(action, len(self))
        self._move(action, disturbance)
        return self.status()

    def expert(self, *, noise: float = 1.0) -> Expert:
        """Return the experts of these cars; `noise` scales how unsteady they are, and 0 is perfectly steady."""
        return Expert(self.seeds, self.road.hand, noise=noise)
