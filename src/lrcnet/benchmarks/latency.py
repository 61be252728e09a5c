"""Latency of one sample: a streamed step, and sequences of wide layers, whose units the threads share."""

import time
from collections.abc import Callable
from typing import Any

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, threads, training_step

STEPS = 10_000
BLOCK = 500
# Units of the wide layers, and the length of their sequence.
WIDTHS = (256, 512)
SEQUENCE = 200
ROUNDS = 25


def measure() -> list[Measurement]:
    return [*_streamed_step(), *_shared_units()]


def _streamed_step() -> list[Measurement]:
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


def _shared_units() -> list[Measurement]:
    """Compare one sample of wide layers on all threads with one thread, and with an LSTM of the same width."""
    count, measurements = torch.get_num_threads(), []
    for units in WIDTHS:
        x = torch.rand(1, SEQUENCE, 64)
        layer = lrcnet.LRCU(64, units, batch_first=True, backend="fused")
        lstm = torch.nn.LSTM(64, units, batch_first=True)
        for name, make in (("forward", _forward), ("forward + backward", training_step)):
            ours, alone, theirs = _best(
                (make(layer, x), count), (make(layer, x), 1), (make(lstm, x), count), rounds=ROUNDS
            )
            what = f"LRCU-S {units} (1, {SEQUENCE}, 64), {name}, {count} threads"
            measurements += [
                Measurement(what, ours, "ms", "one thread", alone, alone / ours),
                Measurement(what, ours, "ms", f"LSTM {units}", theirs, ours / theirs),
            ]
    return measurements


def _forward(layer: torch.nn.Module, x: torch.Tensor) -> Callable[[], None]:
    """Return a function that runs the forward pass of a layer over x without gradients."""

    def run() -> None:
        with torch.no_grad():
            layer(x)

    return run


def _best(*calls: tuple[Callable[[], None], int], rounds: int) -> list[float]:
    """Return the best time of each call, with its number of threads, in ms; they take turns, each after a warm-up."""
    times = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, (call, count) in enumerate(calls):
            with threads(count):
                call()
                start = time.perf_counter()
                call()
                times[i] = min(times[i], 1e3 * (time.perf_counter() - start))
    return times
