"""Our own world: a batch of episodes, each with a road, its appearance and a car."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet_paper.driving import vehicle
from lrcnet_paper.driving.appearance import Appearance, sample_appearances
from lrcnet_paper.driving.camera import Camera
from lrcnet_paper.driving.drivable import check_not_empty
from lrcnet_paper.driving.road import Road, sample_roads
from lrcnet_paper.driving.road_world import RoadWorld
from lrcnet_paper.driving.vehicle import State


class World(RoadWorld[State]):
    """Cars on roads; all cars are advanced and rendered at once.

    Args:
        seeds: one per episode, for its road, its appearance and the habits of its expert. The same seed gives the same
            bytes in every batch.
        season: "summer", "winter", or "mixed", where the seed decides.
        length: length of the road, m.
        mirrored: whether everything is mirrored: roads, frames and the expert's noise; traffic keeps to the left.

    Raises:
        ValueError: for no seeds, an unknown season, or a length below 1 m.

    >>> world = World([7, 8], season="winter")
    >>> world.frames().shape, world.frames().dtype
    (torch.Size([2, 48, 160, 3]), torch.uint8)
    >>> world.step(torch.zeros(2))
    tensor([0, 0])
    """

    def __init__(
        self, seeds: Sequence[int], *, season: str = "mixed", length: float = 1000.0, mirrored: bool = False
    ) -> None:
        check_not_empty("seeds", seeds, "episode", "pass a list such as [0]")
        self._season, self._mirrored = season, mirrored
        self.seeds = list(seeds)
        self.road, self.appearance = self._sample(self.seeds, length)
        self.camera = Camera(self.road, self.appearance)
        self.state = vehicle.start(len(self.seeds))

    def _sample(self, seeds: Sequence[int], length: float) -> tuple[Road, Appearance]:
        road = sample_roads(seeds, length)
        return road.mirror() if self._mirrored else road, sample_appearances(seeds, self._season)

    @property
    def speed(self) -> Tensor:
        """Speed of the cars, m/s, (batch,)."""
        return self.road.at(self.road.speed, self.state.arc)

    @property
    def season_codes(self) -> NDArray[np.uint8]:
        """Season of each car as a recording stores it, (batch,): 0 summer, 1 winter."""
        return self.appearance.winter.numpy().astype(np.uint8)

    def map_pose(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return position (m, m) and direction (rad) of the cars on the map, each (batch,)."""
        return self.road.pose(self.state.arc, self.state.offset, self.state.heading)

    def viewpoint(self) -> State:
        """Return the state of the cars, which is all that the camera needs."""
        return self.state

    def render(self, viewpoint: State, cars: NDArray[np.int64] | None = None) -> Tensor:
        """Render the frames of some cars in some state, (car, 48, 160, 3); see `RoadWorld.render`."""
        frames = self.camera.frames(viewpoint)
        return frames if cars is None else frames[torch.from_numpy(cars)]

    def _move(self, action: Tensor, disturbance: Tensor | float) -> None:
        ended = self.status() != vehicle.RUNNING
        after = vehicle.advance(self.road, self.state, action, disturbance)
        pairs = ((getattr(self.state, f.name), getattr(after, f.name)) for f in dataclasses.fields(State))
        self.state = State(*(torch.where(ended, old, new) for old, new in pairs))

    def restart(self, places: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin new episodes, given by their seeds, at some places of the batch."""
        index = torch.tensor(places, dtype=torch.long)
        road, appearance = self._sample(seeds, self.road.length)
        for old, new in ((self.road, road), (self.appearance, appearance), (self.state, vehicle.start(len(index)))):
            for name in (field.name for field in dataclasses.fields(old)):
                if isinstance(value := getattr(old, name), Tensor):
                    value[index] = getattr(new, name)
        for place, seed in zip(places, seeds, strict=True):
            self.seeds[place] = seed
        self.camera = Camera(self.road, self.appearance)
