"""A contact sheet of our own world: `python -m lrcnet_paper.driving.own_world_contact_sheet FILE` (needs Pillow)."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from lrcnet_paper.driving.appearance import sample_appearances
from lrcnet_paper.driving.camera import HEIGHT, WIDTH, Camera
from lrcnet_paper.driving.road import SIGHT, Road, roads_from_curvature
from lrcnet_paper.driving.vehicle import State

SCENES: dict[str, tuple[float, float, float, float, float]] = {
    "straight": (0.0, 0.0, 0.0, 0.0, 0.0),
    "left, 80 m": (1 / 80, 0.0, 0.0, 0.0, 0.0),
    "right, 80 m": (-1 / 80, 0.0, 0.0, 0.0, 0.0),
    "left, 25 m": (1 / 25, 0.0, 0.0, 0.0, 0.0),
    "S-curve": (-1 / 40, 1 / 40, 0.0, 0.0, 0.0),
    "off the lane": (0.0, 0.0, 0.0, -1.2, 0.12),
    "worn": (1 / 150, 0.0, 0.8, 0.0, 0.0),
    "snowy stretch": (1 / 150, 0.0, 0.2, 0.0, 0.0),
}
"""name -> curvature of the first and of the second bend (1/m), wear, offset (m), heading error (rad)."""
START = 20.0


def make_scene(name: str) -> tuple[Road, State]:
    """Make the road of a scene, (1, grid), and the car 10 m before its bend."""
    first, second, wear, offset, heading = SCENES[name]
    arc = torch.arange(2 * SIGHT, dtype=torch.float64)
    # Clothoids lead into the first bend over 12 m, and from one bend into the next over 24 m.
    bend = first * ((arc - START - 6) / 12).clamp(0, 1)
    if second:
        bend = bend + (second - first) * ((arc - START - 45) / 24).clamp(0, 1)
    road = roads_from_curvature(bend[None], wear=wear, snow=0.85 if "snow" in name else 0.0)
    place = torch.tensor([[START], [offset], [heading], [0.0]], dtype=torch.float64)
    return road, State(*place)


def contact_sheet(appearances: int = 2) -> Tensor:
    """Render every scene in summer and winter, each in some appearances, (rows * 48, columns * 160, 3), uint8."""
    rows = []
    for name in SCENES:
        road, state = make_scene(name)
        row = []
        for season in ("summer", "winter"):
            for number in range(appearances):
                appearance = sample_appearances([100 + 17 * number + len(name)], season)
                row.append(Camera(road, appearance).frames(state)[0])
        rows.append(torch.cat(row, 1))
    return torch.cat(rows)


def write_enlarged(image: Tensor, path: Path, scale: int = 2) -> None:
    """Write an image (row, column, 3) as a PNG of 256 colours, enlarged by a whole number."""
    from PIL import Image

    large = image.repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    Image.fromarray(large.numpy()).quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    write_enlarged(contact_sheet(), Path(sys.argv[1] if len(sys.argv) > 1 else "driving.png"))
    print(f"{len(SCENES)} scenes of {HEIGHT}x{WIDTH} pixels in each season")
