"""Drives of the expert through a world, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lrcnet_paper.driving.expert import Expert
from lrcnet_paper.driving.road_world import RoadWorld
from lrcnet_paper.driving.vehicle import RUNNING, STEP, State


@dataclass(frozen=True)
class ExpertStep:
    """One step of a batch of drives, each (batch, ...), taken before the cars move.

    Attributes:
        frames: (batch, 48, 160, 3), uint8; None if they were not asked for.
        action: the expert's curvature, 1/m.
        state: position of the cars.
        speed: m/s.
        road_curvature: 1/m.
        status: as `RoadWorld.status`.
    """

    frames: Tensor | None
    action: Tensor
    state: State
    speed: Tensor
    road_curvature: Tensor
    status: Tensor


def expert_drive(world: RoadWorld[Any], expert: Expert, *, frames: bool = True) -> Iterator[ExpertStep]:
    """Let the expert drive all cars of a world and yield every step, until each drive has ended.

    Args:
        world: at the beginning of its drives.
        expert: as `world.expert()` returns it.
        frames: whether to render the frames.
    """
    status, time = world.status(), 0.0
    while bool((status == RUNNING).any()):
        action, speed = expert.act(world.road, world.state, time), world.speed
        rendered = world.frames() if frames else None
        yield ExpertStep(rendered, action, world.state, speed, world.road_curvature, status)
        status = world.step(action, expert.push(time, speed))
        time += STEP
