"""Time of looking into a network: 1,600 attention maps, and a trace against the plain forward pass."""

from __future__ import annotations

import time
from typing import Any

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn
from lrcnet.interpret import trace
from lrcnet_paper.interpret import attention, similarity
from lrcnet_paper.models.policy import Policy

MAPS = 1600
SECONDS = 30.0
MOST_FORWARD_PASSES = 3.0
# Name, layer, batch, time, inputs, units.
SHAPES: list[tuple[str, Any, int, int, int, int]] = [
    ("LRCU-S 64, person activity", lrcnet.LRCU, 128, 32, 7, 64),
    ("LRCU-S 19, a drive of 1,000 frames", lrcnet.LRCU, 1, 1000, 64, 19),
    ("LRCU-S 64, one sequence", lrcnet.LRCU, 1, 32, 7, 64),
    ("LTC 64, hybrid 6", lrcnet.LTC, 32, 32, 7, 64),
    ("LSTM 100, person activity", lrcnet.LSTM, 128, 32, 7, 100),
    ("GRU 100, person activity", lrcnet.GRU, 128, 32, 7, 100),
    ("MGU 100, person activity", lrcnet.MGU, 128, 32, 7, 100),
    ("CT-RNN 100, person activity", lrcnet.CTRNN, 128, 32, 7, 100),
]


def measure() -> list[Measurement]:
    return [*_maps(), *(_trace(name, kind, *shape) for name, kind, *shape in SHAPES)]


def _maps() -> list[Measurement]:
    """Measure attention maps and their similarity; the policy is untrained, since weights do not change the time."""
    policy, frames = Policy("lrcu-s"), torch.randint(0, 256, (MAPS, 48, 160, 3), dtype=torch.uint8)
    attention(policy, frames[:64])
    start = time.perf_counter()
    maps = attention(policy, frames)
    seconds = time.perf_counter() - start
    measurements = [
        Measurement(f"{MAPS} maps of attention, 48x160", seconds, "s", "goal", SECONDS, seconds / SECONDS, 1.0)
    ]
    similarity(maps[:2], maps[:2])
    start = time.perf_counter()
    for one, two in zip(torch.split(maps, 64), torch.split(maps.flip(0), 64), strict=True):
        similarity(one, two)
    return [*measurements, Measurement(f"structural similarity of {MAPS} pairs", time.perf_counter() - start, "s")]


def _trace(name: str, kind: Any, batch: int, steps: int, inputs: int, units: int) -> Measurement:
    layer, x = kind(inputs, units, batch_first=True), torch.rand(batch, steps, inputs)

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    plain, traced = best_in_turn(forward, lambda: trace(layer, x), repeats=20, rounds=4)
    what = f"trace: {name} ({batch}, {steps}, {inputs})"
    return Measurement(what, 1e3 * traced, "ms", "forward", 1e3 * plain, traced / plain, MOST_FORWARD_PASSES)
