"""Frames to measure a policy's attention on: the expert's views of roads that no policy was trained on."""

from __future__ import annotations

import torch
from torch import Tensor

from lrcnet.errors import positive_size
from lrcnet_paper.driving import RUNNING, World, expert_drive
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
    roads = min(ROADS, positive_size("count", count))
    world = World(range(first_road, first_road + roads), season=season, length=length)
    moments = [m for m in expert_drive(world, world.expert(), frames=False) if bool((m.status == RUNNING).all())]
    each = -(-count // roads)
    chosen = [moments[(2 * k + 1) * len(moments) // (2 * each)] for k in range(each)]
    return torch.cat([world.camera.frames(moment.state) for moment in chosen])[:count]
