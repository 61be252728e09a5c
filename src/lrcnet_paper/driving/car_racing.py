"""gymnasium's CarRacing-v3 seen through a front camera (needs the extra `carracing`).

Track, colours and physics come from CarRacing; the camera, the expert and the end of a drive are ours. Its unit of
length is taken for a metre: a car of 5 m on a track of 13.3 m whose narrowest bends have a radius of 11.3 m. One step
of its physics, 1/50 s of its own time, is one of our steps of 1/30 s, so its physics runs unchanged. The action is a
curvature: the front wheels are set to the angle that gives it, and a controller keeps the speed that the road
prescribes there, 8 to 12 m/s and less in bends.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet_paper.driving.drivable import check_length, check_not_empty
from lrcnet_paper.driving.expert_recording import Progress, record_expert_drives
from lrcnet_paper.driving.race_car import RaceCar
from lrcnet_paper.driving.race_track import RoadTracker, join_roads, road_along_loop
from lrcnet_paper.driving.recording import UNKNOWN_SEASON, DriveRecording, FolderPath
from lrcnet_paper.driving.road_world import RoadWorld
from lrcnet_paper.driving.seeded_random import between, uniforms
from lrcnet_paper.driving.vehicle import RUNNING, State

_STREAM = 5


class CarRacingWorld(RoadWorld[Tensor]):
    """Cars on race tracks, each alone on its own; a `Drivable`.

    Args:
        seeds: one per car, for its track and its speed. The same seed gives the same bytes in every batch.
        length: distance to drive, m; a lap has about 1000 m.

    Raises:
        ValueError: for no seeds, or a length below 1 m.
        ImportError: without the extra.

    Attributes:
        road: the centre lines of the tracks, with the speed at which each place is taken.
        state: position of the rear axles along the centre lines, and angle of the front wheels.
    """

    def __init__(self, seeds: Sequence[int], *, length: float = 1000.0) -> None:
        check_not_empty("seeds", seeds, "track", "pass a list such as [0]")
        check_length(length)
        self.seeds = list(seeds)
        cruise = between(8.0, 12.0, uniforms(self.seeds, 1, stream=_STREAM))[:, 0]
        self._cars = [RaceCar(seed) for seed in self.seeds]
        pairs = zip(self._cars, cruise.tolist(), strict=True)
        self.road = join_roads(
            [road_along_loop(car.centre_line, length=length, cruise=speed, before=car.rear) for car, speed in pairs]
        )
        self._tracker = RoadTracker(self.road)
        first = torch.stack([t[:, 0] for t in (self.road.x, self.road.y, self.road.direction, self.road.speed)], 1)
        for car, (x, y, direction, speed) in zip(self._cars, first.tolist(), strict=True):
            car.start(x, y, direction, speed)
        self._read_cars()

    def _read_cars(self) -> None:
        """Read poses and state from the simulator."""
        self._poses = torch.tensor([car.pose() for car in self._cars], dtype=torch.float64)
        arc, offset, heading = self._tracker.find(*self.map_pose())
        steering = torch.tensor([car.steering for car in self._cars], dtype=torch.float64)
        self.state = State(arc, offset, heading, steering)

    @property
    def speed(self) -> Tensor:
        """Speed of the cars, m/s, (batch,)."""
        return torch.tensor([car.speed for car in self._cars], dtype=torch.float64)

    @property
    def season_codes(self) -> NDArray[np.uint8]:
        """Code of an unknown season for each car, (batch,): CarRacing has no seasons."""
        return np.full(len(self), UNKNOWN_SEASON, np.uint8)

    def map_pose(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return position of the rear axles (m, m) and direction of the cars (rad) on the map, each (batch,)."""
        x, y, direction = self._poses.unbind(1)
        return x, y, direction

    def viewpoint(self) -> Tensor:
        """Return position of the rear axles on the map and direction of the cars, m, m, rad, (batch, 3)."""
        return self._poses

    def render(self, viewpoint: Tensor, cars: NDArray[np.int64] | None = None) -> Tensor:
        """Render the frames of some cars from a viewpoint, (car, 48, 160, 3); see `RoadWorld.render`."""
        numbers = range(len(self)) if cars is None else cars.tolist()
        poses = viewpoint.tolist()
        return torch.from_numpy(np.stack([self._cars[car].camera.frame(*poses[car]) for car in numbers]))

    def _move(self, action: Tensor, disturbance: Tensor | float) -> None:
        steered = (action.double() + disturbance).tolist()
        speed = self.road.at(self.road.speed, self.state.arc).tolist()
        for car, status in enumerate(self.status().tolist()):
            if status == RUNNING:
                self._cars[car].step(steered[car], speed[car])
        self._read_cars()


def record_car_racing(
    folder: FolderPath,
    seeds: Sequence[int],
    *,
    length: float = 400.0,
    noise: float = 1.0,
    batch: int = 16,
    progress: Progress = lambda done, total: None,
) -> DriveRecording:
    """Record the expert's drives over tracks of CarRacing, or open the recording if the folder has it already.

    Args:
        folder: folder of the recording; created if it does not exist. A frame takes 23 kB.
        seeds: seeds of the tracks; they are the recording's road numbers.
        length: distance to drive on each, m.
        noise: noise of the expert, as in `record`: at 1 it wanders and is pushed by the wind, at 0 it is steady.
        batch: number of tracks driven at once; the result does not depend on it.
        progress: called with the number of frames that are done and the number of all frames.

    Raises:
        ValueError: for no seeds, or a folder that holds another recording.
        ImportError: without the extra.
    """
    check_not_empty("seeds", seeds, "track", "pass a range of seeds")
    tracks = [int(seed) for seed in seeds]
    settings = {"world": "carracing", "roads": tracks, "length": length, "noise": noise}

    def make_world(part: list[int]) -> CarRacingWorld:
        return CarRacingWorld(part, length=length)

    return record_expert_drives(folder, tracks, make_world, settings, noise=noise, batch=batch, progress=progress)
