"""A contact sheet of VISTA and CarRacing: `python -m lrcnet_paper.driving.other_worlds_contact_sheet FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from lrcnet_paper.driving.worlds import make_world

COLUMNS = (("carracing", 3, "summer"), ("carracing", 12, "summer"), ("vista", 7, "summer"), ("vista", 8, "winter"))
"""World, seed and season."""
STEERED = (0.0, 0.02, -0.02)
"""Curvature, 1/m, for half a second: on the path, to the left and to the right of it."""
LATER = (150, 240)
"""Steps after which the driver's view is shown."""


def column(name: str, seed: int, season: str) -> Tensor:
    """What is seen on the path, left of it, right of it, and later, (rows * 48, 160, 3), uint8."""
    pictures = []
    for curvature in STEERED:
        world = make_world(name, [seed], season=season, length=200.0)
        for _ in range(15):
            world.step(torch.tensor([curvature]))
        pictures.append(world.frames()[0])
    world = make_world(name, [seed], season=season, length=200.0)
    for step in range(1, max(LATER) + 1):
        world.step(world.advice())
        if step in LATER:
            pictures.append(world.frames()[0])
    return torch.cat(pictures)


def write(path: Path, scale: int = 2) -> None:
    """Writes the sheet as a PNG, enlarged by a whole number."""
    from PIL import Image

    picture = torch.cat([column(*which) for which in COLUMNS], 1)
    picture = picture.repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    Image.fromarray(picture.numpy()).quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "worlds.png"))
    print(f"{len(COLUMNS)} drives, {len(STEERED) + len(LATER)} pictures of each")
