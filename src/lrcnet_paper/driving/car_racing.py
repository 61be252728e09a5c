"""gymnasium's CarRacing-v3 seen through a front camera (needs the extra `carracing`).

Track, colours and physics are theirs; the camera, the driver and the end of an episode are ours. Their unit of length
is taken for a metre: a car of 5 m on a track of 13.3 m whose narrowest bends have a radius of 11.3 m. One of their
steps (1/50 of their seconds) is one of ours (1/30 s), so their physics runs unchanged. What is steered is a curvature:
the wheels are set to the angle that gives it, and a controller keeps the speed of the place, 8 to 12 m/s and less in
bends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet_paper.driving import vehicle
from lrcnet_paper.driving.drivable import Situation, check_action
from lrcnet_paper.driving.expert import Expert, pursuit
from lrcnet_paper.driving.race_car import RaceCar
from lrcnet_paper.driving.race_track import Follower, join_roads, road_along_loop
from lrcnet_paper.driving.recording import UNKNOWN_SEASON, DriveRecording, FolderPath, open_if_recorded, write_recording
from lrcnet_paper.driving.road import GRID
from lrcnet_paper.driving.seeded_random import between, uniforms
from lrcnet_paper.driving.vehicle import RUNNING, STEP, State

_STREAM = 5


class CarRacingWorld:
    """Cars on race tracks, each alone on its own; a `Drivable`.

    Args:
        seeds: one per car: its track and its speed. The same seed gives the same bytes, in whatever batch.
        length: m to drive; a lap has about 1000.

    Raises:
        ValueError: for no seeds, or a length below 1 m.
        ImportError: without the extra.

    Attributes:
        road: the middle of the tracks, with the speed at which each place is taken.
        state: of the cars: way along the middle, offset and heading of the rear axle, angle of the front wheels.
    """

    def __init__(self, seeds: Sequence[int], *, length: float = 1000.0) -> None:
        if not seeds:
            raise ValueError("seeds must name one track at least, but are empty; pass a list such as [0]")
        if not length >= 1:
            raise ValueError(f"length must be at least 1 m, but is {length}; ask for a longer drive")
        self.seeds = list(seeds)
        cruise = between(8.0, 12.0, uniforms(self.seeds, 1, stream=_STREAM))[:, 0]
        self._cars = [RaceCar(seed) for seed in self.seeds]
        pairs = zip(self._cars, cruise.tolist(), strict=True)
        self.road = join_roads(
            [road_along_loop(car.centre_line, length=length, cruise=speed, before=car.rear) for car, speed in pairs]
        )
        self._follower = Follower(self.road)
        first = torch.stack([t[:, 0] for t in (self.road.x, self.road.y, self.road.direction, self.road.speed)], 1)
        for car, (x, y, direction, speed) in zip(self._cars, first.tolist(), strict=True):
            car.start(x, y, direction, speed)
        self._poses = torch.zeros(0)
        self.state = self._measured()

    def __len__(self) -> int:
        return len(self.seeds)

    def _measured(self) -> State:
        self._poses = torch.tensor([car.pose() for car in self._cars], dtype=torch.float64)
        arc, offset, heading = self._follower.find(*self._poses.unbind(1))
        steering = torch.tensor([car.steering for car in self._cars], dtype=torch.float64)
        return State(arc, offset, heading, steering)

    def poses(self) -> Tensor:
        """Position of the rear axles on the map and direction of the cars, m, m, rad, (batch, 3)."""
        return self._poses

    def status(self) -> Tensor:
        """vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED of each car, (batch,), by the limits of our own world."""
        return vehicle.drive_status(self.road, self.state)

    def situation(self) -> Situation:
        """Where the cars are."""
        x, y, direction = self._poses.unbind(1)
        speed = torch.tensor([car.speed for car in self._cars], dtype=torch.float64)
        bend = self.road.at(self.road.curvature, self.state.arc)
        return Situation(self.state.offset, self.state.heading, speed, bend, x, y, direction)

    def advice(self) -> Tensor:
        """What our own world's driver would steer here with steady hands and no delay, 1/m, (batch,)."""
        return pursuit(self.road, self.state.arc, self.state.offset, self.state.heading, preview=0.1)

    def centre_line(self, car: int) -> Tensor:
        """The middle of a car's track on the map, as far as the drive goes, (point, 2), m, one point per metre."""
        points = int(self.road.length / GRID) + 1
        return torch.stack([self.road.x[car, :points], self.road.y[car, :points]], 1)

    def frames(self) -> Tensor:
        """What the cars see, (batch, 48, 160, 3), uint8, RGB."""
        return torch.from_numpy(np.stack([self.picture(car, pose) for car, pose in enumerate(self._poses.tolist())]))

    def picture(self, car: int, pose: Sequence[float]) -> NDArray[np.uint8]:
        """What a car would see from another pose, as `poses` has them, (48, 160, 3)."""
        return self._cars[car].camera.frame(pose[0], pose[1], pose[2])

    def step(self, action: Tensor, disturbance: Tensor | float = 0.0) -> Tensor:
        """1/30 s further, which is one step of theirs.

        Args:
            action: curvature to steer, 1/m, (batch,).
            disturbance: curvature that the wind adds, 1/m, (batch,).

        Returns:
            How each drive stands, as `status`; cars whose drive is over stay where it ended.

        Raises:
            ValueError: for an action of another shape.
        """
        check_action(action, len(self))
        steered = (action.double() + disturbance).tolist()
        speed = self.road.at(self.road.speed, self.state.arc).tolist()
        for car, status in enumerate(self.status().tolist()):
            if status == RUNNING:
                self._cars[car].step(steered[car], speed[car])
        self.state = self._measured()
        return self.status()

    def expert(self, *, noise: float = 1.0) -> Expert:
        """The drivers of our own world, with hands as steady as `noise` says; 0 is perfectly steady."""
        return Expert(self.seeds, self.road.hand, noise=noise)


def record_car_racing(
    folder: FolderPath,
    seeds: Sequence[int],
    *,
    length: float = 400.0,
    noise: float = 1.0,
    batch: int = 16,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DriveRecording:
    """Our driver's drives over some of their tracks; opened if the folder has them already, made otherwise.

    Args:
        folder: where the recording is kept; made if it is not there. A frame takes 23 kB.
        seeds: of the tracks; they are the recording's road numbers.
        length: m to drive on each.
        noise: of the driver, as in `record`: 1 wanders and is pushed by the wind, 0 is perfectly steady.
        batch: tracks driven at once; the result does not depend on it.
        progress: called with the number of frames done and to do.

    Raises:
        ValueError: for no seeds, or a folder that holds another recording.
        ImportError: without the extra.
    """
    if not len(seeds):
        raise ValueError("seeds must name one track at least, but are empty; pass a range of seeds")
    names = [int(seed) for seed in seeds]
    settings = {"world": "carracing", "roads": names, "length": length, "noise": noise}
    target = Path(folder)
    if (made := open_if_recorded(target, settings)) is not None:
        return made

    parts = [names[i : i + batch] for i in range(0, len(names), batch)]
    driven = [_driven(CarRacingWorld(part, length=length), noise) for part in parts]
    labels = {key: np.concatenate([part.labels[key] for part in driven]) for key in driven[0].labels}
    lengths = np.concatenate([part.lengths for part in driven])

    def fill(frames: NDArray[np.uint8]) -> None:
        done = 0
        for part in driven:
            for car, count in enumerate(part.lengths.tolist()):
                for pose in part.poses[car, :count].tolist():
                    frames[done] = part.world.picture(car, pose)
                    done += 1
                progress(done, len(frames))

    return write_recording(target, settings, labels, lengths, fill)


@dataclass(frozen=True)
class _Driven:
    """A batch of drives without pictures: `lengths` (drive,), `labels` drive after drive, `poses` (drive, time, 3)."""

    world: CarRacingWorld
    lengths: NDArray[np.int64]
    labels: dict[str, NDArray[Any]]
    poses: Tensor


def _driven(world: CarRacingWorld, noise: float) -> _Driven:
    driver, time = world.expert(noise=noise), 0.0
    moments: list[tuple[Tensor, ...]] = []
    poses, going = [], []
    while bool((running := world.status() == RUNNING).any()):
        action, now = driver.act(world.road, world.state, time), world.situation()
        moments.append((action, now.offset, now.heading, now.speed, now.road_curvature))
        poses.append(world.poses())
        going.append(running)
        world.step(action, driver.push(time, now.speed))
        time += STEP
    which = torch.stack(going, 1)
    lengths = which.sum(1).numpy()
    names = ("curvature", "offset", "heading", "speed", "road_curvature")
    columns = [torch.stack(column, 1)[which].float().numpy() for column in zip(*moments, strict=True)]
    labels: dict[str, NDArray[Any]] = dict(zip(names, columns, strict=True))
    labels["season"] = np.full(int(lengths.sum()), UNKNOWN_SEASON)
    labels["road"] = np.array(world.seeds).repeat(lengths)
    return _Driven(world, lengths, labels, torch.stack(poses, 1))
