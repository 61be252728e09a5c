"""A contact sheet of VISTA and CarRacing: `python -m lrcnet_paper.driving.other_worlds_contact_sheet FILE`.

It needs the extras of both worlds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from lrcnet_paper.driving.own_world_contact_sheet import write_enlarged
from lrcnet_paper.driving.worlds import make_world

COLUMNS = (("carracing", 3, "summer"), ("carracing", 12, "summer"), ("vista", 7, "summer"), ("vista", 8, "winter"))
"""World, seed and season."""
STEERED = (0.0, 0.02, -0.02)
"""Curvature, 1/m, for half a second: on the path, to the left and to the right of it."""
LATER = (150, 240)
"""Steps after which the expert's view is shown."""


def render_column(name: str, seed: int, season: str) -> Tensor:
    """Render frames on the path, left of it, right of it, and later on, (rows * 48, 160, 3), uint8."""
    frames = []
    for curvature in STEERED:
        world = make_world(name, [seed], season=season, length=200.0)
        for _ in range(15):
            world.step(torch.tensor([curvature]))
        frames.append(world.frames()[0])
    world = make_world(name, [seed], season=season, length=200.0)
    for step in range(1, max(LATER) + 1):
        world.step(world.advice())
        if step in LATER:
            frames.append(world.frames()[0])
    return torch.cat(frames)


if __name__ == "__main__":
    sheet = torch.cat([render_column(*column) for column in COLUMNS], 1)
    write_enlarged(sheet, Path(sys.argv[1] if len(sys.argv) > 1 else "worlds.png"))
    print(f"{len(COLUMNS)} drives, {len(STEERED) + len(LATER)} frames of each")
