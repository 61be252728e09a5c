"""Frames to measure a policy's attention on: the expert's views of roads that no policy was trained on."""

from __future__ import annotations

import torch
from torch import Tensor

from lrcnet.errors import positive_size
from lrcnet_paper.driving import RUNNING, State, World, expert_drive
from lrcnet_paper.road_seeds import ATTENTION_SCENES

ROADS = 16
LENGTH = 400.0


def scenes(season: str, count: int, *, first_road: int = ATTENTION_SCENES[0], length: float = LENGTH) -> Tensor:
    """Render views along the expert's drives, evenly spaced over each of up to 16 roads.

    Args:
        season: "summer" or "winter".
        count: number of frames.
        first_road: seed of the first road; the next roads have the next seeds.
        length: length of each road, m.

    Returns:
        (count, 48, 160, 3), uint8; the same in every call.

    Example:
        >>> scenes("winter", 3, length=20.0).shape
        torch.Size([3, 48, 160, 3])
    """
    world, states = _choose_moments(season, count, first_road, length)
    return torch.cat([world.camera.frames(state) for state in states])[:count]


def scene_regions(season: str, count: int, *, first_road: int = ATTENTION_SCENES[0], length: float = LENGTH) -> Tensor:
    """Return the regions that the pixels of `scenes` see, (count, 48, 160), uint8, an index of `camera.REGIONS`.

    Example:
        >>> scene_regions("winter", 3, length=20.0).shape
        torch.Size([3, 48, 160])
    """
    world, states = _choose_moments(season, count, first_road, length)
    return torch.cat([world.camera.regions(state) for state in states])[:count]


def _choose_moments(season: str, count: int, first_road: int, length: float) -> tuple[World, list[State]]:
    """Return the world of some scenes, and the states of its cars at their moments."""
    roads = min(ROADS, positive_size("count", count))
    world = World(range(first_road, first_road + roads), season=season, length=length)
    moments = [m for m in expert_drive(world, world.expert(), frames=False) if bool((m.status == RUNNING).all())]
    each = -(-count // roads)
    return world, [moments[(2 * k + 1) * len(moments) // (2 * each)].state for k in range(each)]
