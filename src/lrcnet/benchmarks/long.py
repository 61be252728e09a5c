"""The diagonal LRC on long sequences: beside rivals of equal width and its matrix products, and over the length."""

from collections.abc import Callable

import torch
from torch import nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn, training_step
from lrcnet.benchmarks.memory import peak_of

WIDTH, SHAPE = 64, (16, 4096, 64)
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
SLOWEST = {"LRCU-S": 6.0, "torch.nn.GRU": 2.0}
"""The least factor by which the diagonal LRC is to be faster than each rival."""


def measure() -> list[Measurement]:
    return [*_rivals(), _first_layer(), *_lengths(), *_memory()]


def _rivals() -> list[Measurement]:
    """Measure a training step on (batch, time, channels) beside rivals of equal width, in one run."""
    x = torch.rand(SHAPE, requires_grad=True)
    layers: dict[str, nn.Module] = {
        "DiagonalLRC": lrcnet.DiagonalLRC(SHAPE[2], WIDTH, batch_first=True, backend="fused"),
        "LRCU-S": lrcnet.LRCU(SHAPE[2], WIDTH, batch_first=True, backend="fused"),
        "torch.nn.GRU": nn.GRU(SHAPE[2], WIDTH, batch_first=True),
        "torch.nn.LSTM": nn.LSTM(SHAPE[2], WIDTH, batch_first=True),
    }
    steps = [training_step(layer, x) for layer in layers.values()]
    own, *others, products = best_in_turn(*steps, _products(), repeats=3, rounds=3)
    what = f"DiagonalLRC {WIDTH} {SHAPE}, forward + backward"
    bound = Measurement(what, own * 1e3, "ms", "its matrix products alone", products * 1e3, own / products)
    return [
        bound,
        *_compare(what, own, dict(zip(list(layers)[1:], others, strict=True))),
    ]


def _first_layer() -> Measurement:
    """Measure the same beside the dense layer without the gradient of x, which nobody needs if x is data."""
    x = torch.rand(SHAPE)
    layers = [layer(SHAPE[2], WIDTH, batch_first=True, backend="fused") for layer in (lrcnet.DiagonalLRC, lrcnet.LRCU)]
    own, dense = best_in_turn(*(training_step(layer, x) for layer in layers), repeats=3, rounds=3)
    what = f"DiagonalLRC {WIDTH} {SHAPE}, forward + backward without the gradient of x"
    return _compare(what, own, {"LRCU-S": dense})[0]


def _products() -> Callable[[], None]:
    """Return a function that runs the three products of the inputs' parts by torch.mm: a lower bound of the step."""
    points, inputs = SHAPE[0] * SHAPE[1], SHAPE[2]
    x, terms, weight = torch.rand(points, inputs), torch.rand(points, 2 * WIDTH), torch.rand(2 * WIDTH, inputs)
    into = torch.empty_like(terms), torch.empty_like(x), torch.empty_like(weight)

    def run() -> None:
        torch.mm(x, weight.t(), out=into[0])
        torch.mm(terms, weight, out=into[1])
        torch.mm(terms.t(), x, out=into[2])

    return run


def _compare(what: str, own: float, others: dict[str, float]) -> list[Measurement]:
    return [
        Measurement(
            what,
            own * 1e3,
            "ms",
            name,
            other * 1e3,
            other / own,
            SLOWEST.get(name),
            at_least=True,
        )
        for name, other in others.items()
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


def _memory() -> list[Measurement]:
    """Measure the memory that a training step adds per step of the sequence, against that of a shorter one."""
    layer = f"lrcnet.DiagonalLRC(4, {WIDTH}, batch_first=True, backend='fused')"
    peaks = {length: peak_of(layer, (1, length, 4)) / length for length in LENGTHS[2:]}
    first = peaks[LENGTHS[2]]
    return [
        Measurement(
            f"DiagonalLRC {WIDTH} (1, {length}, 4), peak of one training step, per step",
            peak,
            "bytes",
            f"T = {LENGTHS[2]}",
            first,
            peak / first,
        )
        for length, peak in peaks.items()
    ]
