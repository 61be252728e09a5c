"""The diagonal LRC on long sequences: beside the dense LRCU and torch.nn.GRU of equal width, and over the length."""

import torch
from torch import nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn, training_step

WIDTH, SHAPE = 64, (16, 4096, 64)
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
SLOWEST = {"LRCU-S": 6.0, "torch.nn.GRU": 2.0}
"""The least factor by which the diagonal LRC is to be faster than each rival."""


def measure() -> list[Measurement]:
    return [*_rivals(), *_lengths()]


def _rivals() -> list[Measurement]:
    """Measure a training step on (batch, time, channels) beside rivals of equal width, in one run."""
    x = torch.rand(SHAPE, requires_grad=True)
    layers: dict[str, nn.Module] = {
        "DiagonalLRC": lrcnet.DiagonalLRC(SHAPE[2], WIDTH, batch_first=True, backend="fused"),
        "LRCU-S": lrcnet.LRCU(SHAPE[2], WIDTH, batch_first=True, backend="fused"),
        "torch.nn.GRU": nn.GRU(SHAPE[2], WIDTH, batch_first=True),
        "torch.nn.LSTM": nn.LSTM(SHAPE[2], WIDTH, batch_first=True),
    }
    own, *others = best_in_turn(*(training_step(layer, x) for layer in layers.values()), repeats=3, rounds=3)
    return [
        Measurement(
            f"DiagonalLRC {WIDTH} {SHAPE}, forward + backward",
            own * 1e3,
            "ms",
            name,
            other * 1e3,
            other / own,
            SLOWEST.get(name),
            at_least=True,
        )
        for name, other in zip(list(layers)[1:], others, strict=True)
    ]


def _lengths() -> list[Measurement]:
    """Measure the time per step of the sequence, against that of the shortest sequence."""
    layer = lrcnet.DiagonalLRC(4, WIDTH, batch_first=True, backend="fused")
    best = {}
    for length in LENGTHS:
        step = training_step(layer, torch.rand(1, length, 4))
        (time,) = best_in_turn(step, repeats=max(2, min(30, 100_000 // length)), rounds=1)
        best[length] = time / length * 1e6
    return [
        Measurement(
            f"DiagonalLRC {WIDTH} (1, {length}, 4), forward + backward, per step",
            best[length],
            "us",
            f"T = {LENGTHS[0]}",
            best[LENGTHS[0]],
            best[length] / best[LENGTHS[0]],
        )
        for length in LENGTHS[1:]
    ]
