"""A batch of episodes: roads, what they look like, and the cars on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet_paper.driving import vehicle
from lrcnet_paper.driving.appearance import Appearance, sample_appearances
from lrcnet_paper.driving.camera import Camera
from lrcnet_paper.driving.drivable import Situation, check_action
from lrcnet_paper.driving.expert import Expert, pursuit
from lrcnet_paper.driving.road import GRID, Road, sample_roads
from lrcnet_paper.driving.vehicle import STEP, State


class World:
    """Cars on roads, all of them stepped and seen at once.

    Args:
        seeds: one per episode: its road, its look, and its driver's habits. The same seed gives the same bytes, in
            whatever batch.
        season: "summer", "winter", or "mixed", where the seed decides.
        length: m of road.
        mirrored: everything in a mirror: roads, pictures and the driver's noise; one drives on the left.

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
        if not seeds:
            raise ValueError("seeds must name one episode at least, but are empty; pass a list such as [0]")
        self._season, self._mirrored = season, mirrored
        self.seeds = list(seeds)
        self.road, self.appearance = self._sampled(self.seeds, length)
        self.camera = Camera(self.road, self.appearance)
        self.state = vehicle.start(len(self.seeds))

    def __len__(self) -> int:
        return len(self.seeds)

    def _sampled(self, seeds: Sequence[int], length: float) -> tuple[Road, Appearance]:
        road = sample_roads(seeds, length)
        return road.mirror() if self._mirrored else road, sample_appearances(seeds, self._season)

    @property
    def speed(self) -> Tensor:
        """m/s, (batch,)."""
        return self.road.at(self.road.speed, self.state.arc)

    @property
    def road_curvature(self) -> Tensor:
        """Of the lane under the cars, 1/m, (batch,)."""
        return self.road.at(self.road.curvature, self.state.arc)

    def status(self) -> Tensor:
        """vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED of each car, (batch,)."""
        return vehicle.drive_status(self.road, self.state)

    def situation(self) -> Situation:
        """Where the cars are."""
        state = self.state
        x, y, direction = self.road.pose(state.arc, state.offset, state.heading)
        return Situation(
            offset=state.offset,
            heading=state.heading,
            speed=self.speed,
            road_curvature=self.road_curvature,
            x=x,
            y=y,
            direction=direction,
        )

    def advice(self) -> Tensor:
        """What a driver with steady hands and no delay would steer now, 1/m, (batch,)."""
        return pursuit(self.road, self.state.arc, self.state.offset, self.state.heading, preview=0.1)

    def centre_line(self, car: int) -> Tensor:
        """The middle of a car's lane on the map, (point, 2), m, one point per metre."""
        points = int(self.road.length / GRID) + 1
        return torch.stack([self.road.x[car, :points], self.road.y[car, :points]], 1)

    def frames(self) -> Tensor:
        """What the cars see, (batch, 48, 160, 3), uint8, RGB."""
        return self.camera.frames(self.state)

    def step(self, action: Tensor, disturbance: Tensor | float = 0.0) -> Tensor:
        """1/30 s further.

        Args:
            action: curvature to steer, 1/m, (batch,).
            disturbance: curvature that the wind adds, 1/m, (batch,).

        Returns:
            How each episode stands, as `status`; cars whose episode is over stay where it ended.

        Raises:
            ValueError: for an action of another shape.
        """
        check_action(action, len(self))
        over = self.status() != vehicle.RUNNING
        after = vehicle.advance(self.road, self.state, action, disturbance)
        pairs = ((getattr(self.state, f.name), getattr(after, f.name)) for f in dataclasses.fields(State))
        self.state = State(*(torch.where(over, old, new) for old, new in pairs))
        return self.status()

    def expert(self, *, noise: float = 1.0) -> Expert:
        """The drivers of these episodes, with hands as steady as `noise` says; 0 is perfectly steady."""
        return Expert(self.seeds, self.road.hand, noise=noise)

    def restart(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begins new episodes, by their seeds, in some places of the batch."""
        places = torch.tensor(which, dtype=torch.long)
        road, look = self._sampled(seeds, self.road.length)
        for old, new in ((self.road, road), (self.appearance, look), (self.state, vehicle.start(len(places)))):
            for name in (field.name for field in dataclasses.fields(old)):
                if isinstance(value := getattr(old, name), Tensor):
                    value[places] = getattr(new, name)
        for place, seed in zip(which, seeds, strict=True):
            self.seeds[place] = seed
        self.camera = Camera(self.road, self.appearance)


@dataclass(frozen=True)
class ExpertStep:
    """One step of a batch of drives, each (batch, ...), taken before the car moves.

    Attributes:
        frames: (batch, 48, 160, 3), uint8; None if they were not asked for.
        action: the driver's curvature, 1/m.
        state: of the cars.
        speed: m/s.
        road_curvature: 1/m.
        status: as `World.status`.
    """

    frames: Tensor | None
    action: Tensor
    state: State
    speed: Tensor
    road_curvature: Tensor
    status: Tensor


def expert_drive(world: World, driver: Expert, *, frames: bool = True) -> Iterator[ExpertStep]:
    """The driver's drives through a world, moment by moment, until every episode is over."""
    status, time = world.status(), 0.0
    while bool((status == vehicle.RUNNING).any()):
        action, speed = driver.act(world.road, world.state, time), world.speed
        seen = world.frames() if frames else None
        yield ExpertStep(seen, action, world.state, speed, world.road_curvature, status)
        status = world.step(action, driver.push(time, speed))
        time += STEP
