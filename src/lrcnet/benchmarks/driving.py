"""The driving world's speed: pictures per second on one core, beside torch's own look-up of as many pixels."""

from __future__ import annotations

import torch
from torch.nn import functional

from lrcnet.benchmarks.measure import Measurement, best_in_turn
from lrcnet.driving import HEIGHT, WIDTH, World

BATCH = 32
GOAL = 4000.0
"""Frames per second asked for, on the machine of the prototype."""
GRID_SAMPLES = 3.0
"""A picture may cost as much as that many bilinear look-ups of it; they stand for the machine."""


def measure() -> list[Measurement]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        world = World(range(BATCH))
        for _ in range(60):
            world.step(world.road_curvature)
        texture = torch.rand(1, 3, 512, 512).expand(BATCH, -1, -1, -1)
        grid = torch.rand(BATCH, HEIGHT, WIDTH, 2) * 2 - 1
        action = torch.zeros(BATCH)
        drawn, sampled, moved = best_in_turn(
            world.frames,
            lambda: functional.grid_sample(texture, grid, align_corners=False),
            lambda: world.step(action),
            repeats=20,
            rounds=4,
        )
    finally:
        torch.set_num_threads(threads)
    fps = BATCH / drawn
    shape = f"{BATCH} x {HEIGHT}x{WIDTH} RGB, one core"
    return [
        Measurement(f"frames: {shape}", fps, "frames/s", "goal", GOAL, fps / GOAL, 1.0, at_least=True),
        Measurement(
            f"time of the same: {shape}",
            1e3 * drawn,
            "ms",
            "grid_sample of as many pixels",
            1e3 * sampled,
            drawn / sampled,
            GRID_SAMPLES,
        ),
        Measurement(f"cars: a step of {BATCH}", BATCH / moved, "steps/s"),
    ]
