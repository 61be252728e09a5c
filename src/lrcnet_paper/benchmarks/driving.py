"""Speed of the driving world against torch's bilinear look-up of as many pixels, and the time of training a policy."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet.benchmarks.measure import Measurement, best_in_turn, threads
from lrcnet_paper.driving import HEIGHT, WIDTH, World
from lrcnet_paper.models.policy import ConvHead, Policy

BATCH, FRAMES = 32, 128
GOAL = 4000.0
"""Goal in frames per second, set on the machine of the prototype."""
GRID_SAMPLES = 3.0
"""Largest allowed time of a frame, as a multiple of the time of a bilinear look-up of as many pixels."""


def measure() -> list[Measurement]:
    return [*_world(), *_head(), *_policies()]


def _world() -> list[Measurement]:
    with threads(1):
        world = World(range(BATCH))
        for _ in range(60):
            world.step(world.road_curvature)
        texture = torch.rand(1, 3, 512, 512).expand(BATCH, -1, -1, -1)
        grid = torch.rand(BATCH, HEIGHT, WIDTH, 2) * 2 - 1
        action = torch.zeros(BATCH)
        frame_time, sample_time, step_time = best_in_turn(
            world.frames,
            lambda: functional.grid_sample(texture, grid, align_corners=False),
            lambda: world.step(action),
            repeats=20,
            rounds=4,
        )
    fps = BATCH / frame_time
    shape = f"{BATCH} x {HEIGHT}x{WIDTH} RGB, one core"
    return [
        Measurement(f"frames: {shape}", fps, "frames/s", "goal", GOAL, fps / GOAL, 1.0, at_least=True),
        Measurement(
            f"time of the same: {shape}",
            1e3 * frame_time,
            "ms",
            "grid_sample of as many pixels",
            1e3 * sample_time,
            frame_time / sample_time,
            GRID_SAMPLES,
        ),
        Measurement(f"cars: a step of {BATCH}", BATCH / step_time, "steps/s"),
    ]


def _head() -> list[Measurement]:
    """Measure training of the convolutional head: its layout against torch's default, and bfloat16 against float32."""
    pictures = torch.randn(FRAMES, HEIGHT, WIDTH, 3)
    head, default = ConvHead(), ConvHead().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    planes = pictures.permute(0, 3, 1, 2).contiguous()

    def bfloat16_step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            head(pictures).float().sum().backward()

    ours, theirs = best_in_turn(
        lambda: head(pictures).sum().backward(), lambda: default.layers(planes).sum().backward(), repeats=3
    )
    (bfloat16,) = best_in_turn(bfloat16_step, repeats=1, rounds=1)
    what = f"training the head on {FRAMES} frames"
    return [
        Measurement(what, FRAMES / ours, "frames/s", "torch's default layout", FRAMES / theirs, theirs / ours),
        Measurement(f"{what}, bfloat16", FRAMES / bfloat16, "frames/s", "float32", FRAMES / ours, ours / bfloat16),
    ]


def _policies() -> list[Measurement]:
    """Compare a training step of each policy with that of the LSTM, on the paper's sequences of 32 frames."""
    frames = torch.randint(256, (4, 32, HEIGHT, WIDTH, 3), dtype=torch.uint8)
    limits = {"lrcu-a": 1.05, "lrcu-s": 1.05, "ltc": 2.0}
    calls = [_step(Policy(name), frames) for name in ("lstm", *limits)]
    # The layers differ by a thousandth of a step's time, but the speed of a shared machine varies by a fifth from one
    # second to the next. So each ratio compares two times of the same round, and the median of the ratios counts.
    rounds = [best_in_turn(*calls, repeats=1, rounds=1) for _ in range(9)]
    base = median(times[0] for times in rounds)
    return [
        Measurement(
            f"training step of {name}, 4 x 32 frames",
            1e3 * median(times[i] for times in rounds),
            "ms",
            "LSTM",
            1e3 * base,
            median(times[i] / times[0] for times in rounds),
            limit,
        )
        for i, (name, limit) in enumerate(limits.items(), start=1)
    ]


def _step(policy: Policy, frames: Tensor) -> Callable[[], None]:
    return lambda: policy(frames).sum().backward()
