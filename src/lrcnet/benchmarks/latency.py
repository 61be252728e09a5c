"""Latency of one streaming step of one sample: the fused and the plain layer against torch.nn.LSTMCell."""

import time
from collections.abc import Callable
from typing import Any

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement

STEPS = 10_000
BLOCK = 500


def measure() -> list[Measurement]:
    layer = lrcnet.LRCU(64, 64, backend="fused")
    stacked = lrcnet.LRCU(64, 64, num_layers=2, backend="fused")
    plain = lrcnet.LRCU(64, 64, backend="reference")
    cell = torch.nn.LSTMCell(64, 100)
    x, state, both = torch.rand(1, 64), torch.zeros(1, 1, 64), torch.zeros(2, 1, 64)
    hidden, memory = torch.zeros(1, 100), torch.zeros(1, 100)
    with torch.no_grad():
        lstm, ours, two, loop = _medians(
            lambda: cell(x, (hidden, memory)),
            lambda: layer.step(x, state),
            lambda: stacked.step(x, both),
            lambda: plain.step(x, state),
        )
    what = "LRCU-S 64, layer.step, one sample, 64 inputs, no gradient"
    return [
        Measurement(what, ours, "us", "LSTMCell 100", lstm, ours / lstm, 0.5),
        Measurement(what, ours, "us", "plain loop", loop, ours / loop),
        Measurement(f"{what}, two layers", two, "us", "one layer", ours, two / ours),
    ]


def _medians(*calls: Callable[[], Any]) -> list[float]:
    """Return the median time of `STEPS` calls of each function, in microseconds; blocks of calls take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(STEPS // BLOCK):
        for call_times, call in zip(times, calls, strict=True):
            for _ in range(BLOCK):
                start = time.perf_counter()
                call()
                call_times.append(time.perf_counter() - start)
    return [sorted(call_times)[len(call_times) // 2] * 1e6 for call_times in times]
