"""Processor time of training steps on one thread, which other programs disturb less than the time that passes."""

import statistics
import time
from collections.abc import Callable

import torch

import lrcnet
from lrcnet.benchmarks.kernels import SHAPES
from lrcnet.benchmarks.measure import Measurement, threads, training_step

ROUNDS = 15


def measure() -> list[Measurement]:
    measurements = []
    with threads(1):
        for name, batch, steps, inputs, units, lstm_units, wants_x, *_ in SHAPES:
            x = torch.rand(batch, steps, inputs, requires_grad=wants_x)
            fused = lrcnet.LRCU(inputs, units, batch_first=True, backend="fused")
            lstm = torch.nn.LSTM(inputs, lstm_units, batch_first=True)
            ours, theirs = _medians(training_step(fused, x), training_step(lstm, x))
            what = f"LRCU-S {units}, {name} ({batch}, {steps}, {inputs}), forward + backward, processor time"
            measurements.append(Measurement(what, ours, "ms", f"LSTM {lstm_units}", theirs, ours / theirs))
    return measurements


def _medians(*calls: Callable[[], None]) -> list[float]:
    """Return the median processor time of each call in ms; the calls take turns, after one each to warm up."""
    times: list[list[float]] = [[] for _ in calls]
    for repeat in range(ROUNDS + 1):
        for call_times, call in zip(times, calls, strict=True):
            start = time.process_time()
            call()
            if repeat:
                call_times.append(1e3 * (time.process_time() - start))
    return [statistics.median(call_times) for call_times in times]
