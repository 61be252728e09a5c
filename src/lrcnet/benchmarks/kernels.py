"""Training steps of the fused kernel against torch.nn.LSTM, the plain loop, ncps and the time of its sigmoids alone."""

import importlib.util
from collections.abc import Callable
from typing import Any

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn, medians_in_turn, training_step
from lrcnet.kernels import native
from lrcnet.wirings import AutoNCP, Random

# Name, batch, time, inputs, units, units of the LSTM, whether x needs a gradient, largest allowed time over that of the
# LSTM, smallest allowed speed-up over the plain loop.
SHAPES = [
    ("psMNIST", 64, 784, 1, 64, 100, False, 0.33, 25.0),
    ("IMDB", 64, 256, 64, 64, 100, True, 0.85, 12.0),
    ("person activity", 128, 32, 7, 64, 100, False, 0.60, 8.0),
    ("driving policy", 32, 32, 64, 19, 23, True, 1.5, 10.0),
]
# Instruction set -> multiplications and fused multiply-adds per vector of synapses in the forward and in the backward
# pass, counted in csrc/synapses.h. A division keeps the same units busy as long as two of them, the estimate of a
# reciprocal and its refinement take three. They are the arithmetic bound: additions have units of their own.
MULTIPLY_ADDS = {"zen4": (8, 14), "avx512": (9, 15), "avx2": (11, 17)}
LANES = {"zen4": 16, "avx512": 16, "avx2": 8}
# The largest allowed time of a training step over its arithmetic bound.
BOUND = 1.7
# Steps of a stream that are timed together.
STREAM = 100
# Numbers that one core passes through the sigmoid at a time; few enough for the nearest cache.
CHUNK = 2048


def measure() -> list[Measurement]:
    return [*_shapes(), *_wired(), *_ncps(), _sigmoid_limit(), *_arithmetic_bound(), *_alternation(), *_gated()]


def _shapes() -> list[Measurement]:
    measurements = []
    for name, batch, steps, inputs, units, lstm_units, wants_x, most, least in SHAPES:
        what = f"LRCU-S {units}, {name} ({batch}, {steps}, {inputs}), forward + backward"
        x = torch.rand(batch, steps, inputs, requires_grad=wants_x)
        fused = lrcnet.LRCU(inputs, units, batch_first=True, backend="fused")
        plain = lrcnet.LRCU(inputs, units, batch_first=True, backend="reference")
        lstm = torch.nn.LSTM(inputs, lstm_units, batch_first=True)
        ours, theirs = best_in_turn(training_step(fused, x), training_step(lstm, x))
        loop, ours_again = best_in_turn(training_step(plain, x), training_step(fused, x), repeats=7, rounds=1)
        against = f"LSTM {lstm_units}"
        measurements += [
            Measurement(what, ours * 1e3, "ms", against, theirs * 1e3, ours / theirs, most),
            Measurement(
                what, ours_again * 1e3, "ms", "plain loop", loop * 1e3, loop / ours_again, least, at_least=True
            ),
        ]
    return measurements


def _wired() -> list[Measurement]:
    """Compare layers with missing synapses with the dense layer of the same size."""
    units = inputs = 64
    wirings = {
        "a quarter of the synapses": Random(units, sparsity_level=0.75),
        "half of the synapses": Random(units, sparsity_level=0.5),
        "nine tenths of the synapses": Random(units, sparsity_level=0.1),
        "AutoNCP(64, 8)": AutoNCP(units, 8),
    }
    layers = [lrcnet.LRCU(inputs, units, batch_first=True, backend="fused") for _ in range(2)]
    layers += [lrcnet.LRCU(inputs, wiring=w, batch_first=True, backend="fused") for w in wirings.values()]
    # The dense layer twice: the difference between the two is that of the machine.
    names = ["all synapses once more", *wirings]
    measurements = []

    def compare(what: str, dense: float, times: list[float], scale: float, unit: str, fast: bool) -> None:
        for name, ours in zip(names, times, strict=True):
            # Twice as fast with a quarter of the synapses, and never slower.
            least = 2.0 if fast and name.startswith("a quarter") else None if name == names[0] else 1.0
            text = f"LRCU-S {units}, {name} {what}"
            measurements.append(
                Measurement(text, ours * scale, unit, "all synapses", dense * scale, dense / ours, least, at_least=True)
            )

    for batch, repeats in ((64, 9), (8, 40), (2, 100), (1, 100)):
        x = torch.rand(batch, 100, inputs)
        dense, *times = medians_in_turn(*(training_step(layer, x) for layer in layers), repeats=repeats)
        compare(f"({batch}, 100, {inputs}), forward + backward", dense, times, 1e3, "ms", fast=batch == 64)
    dense, *times = medians_in_turn(*(_stream(layer, torch.rand(1, inputs)) for layer in layers), repeats=100)
    compare(f"(1, {inputs}), one step of a stream", dense / STREAM, [t / STREAM for t in times], 1e6, "us", fast=False)
    return measurements


def _stream(layer: lrcnet.LRCU, reading: torch.Tensor) -> Callable[[], None]:
    """Return a function that takes `STREAM` steps, each from the state of the one before."""

    def run() -> None:
        with torch.no_grad():
            state = None
            for _ in range(STREAM):
                _, state = layer.step(reading, state)

    return run


def _ncps() -> list[Measurement]:
    if importlib.util.find_spec("ncps") is None:
        return []
    from ncps.torch import LTC
    from ncps.wirings import AutoNCP as TheirAutoNCP

    measurements = []
    options: dict[str, Any] = {"batch_first": True, "backend": "fused"}
    for batch, steps, inputs, wired in ((32, 32, 64, False), (128, 32, 7, False), (32, 32, 64, True)):
        x = torch.rand(batch, steps, inputs)
        ours_wired = AutoNCP(64, 8) if wired else None
        ltc = lrcnet.LTC(inputs, 64, wiring=ours_wired, **options)
        lrcu = lrcnet.LRCU(inputs, 64, wiring=ours_wired, **options)
        their_ltc = LTC(inputs, TheirAutoNCP(64, 8) if wired else 64, batch_first=True)
        theirs, a, b = best_in_turn(*(training_step(layer, x) for layer in (their_ltc, ltc, lrcu)), repeats=4, rounds=2)
        kind = ", AutoNCP(64, 8)" if wired else ""
        for name, ours, least in (("LTC 64, hybrid 6", a, 8.0), ("LRCU-S 64", b, 40.0)):
            what = f"{name}{kind} ({batch}, {steps}, {inputs}), forward + backward"
            measurements.append(
                Measurement(what, ours * 1e3, "ms", "ncps LTC", theirs * 1e3, theirs / ours, least, at_least=True)
            )
    return measurements


def _sigmoid_limit() -> Measurement:
    """Compare the forward pass at psMNIST's shape with its sigmoids alone, computed by the same vector code."""
    batch, steps, inputs, units = 64, 784, 1, 64
    layer = lrcnet.LRCU(inputs, units, batch_first=True, backend="fused")
    x = torch.rand(batch, steps, inputs)
    threads = torch.get_num_threads()
    numbers, results = torch.rand(threads * CHUNK), torch.empty(threads * CHUNK)
    passes = batch * steps * (inputs + units) * units // (threads * CHUNK)
    sigmoids = native.call("sigmoids")

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    ours, limit = best_in_turn(
        forward, lambda: sigmoids(False, numbers.data_ptr(), results.data_ptr(), CHUNK, threads, passes)
    )
    what = f"LRCU-S 64, psMNIST ({batch}, {steps}, {inputs}), forward"
    return Measurement(what, ours * 1e3, "ms", "its sigmoids alone", limit * 1e3, ours / limit, 1.4)


def _arithmetic_bound() -> list[Measurement]:
    """Compare a training step at psMNIST's shape with the multiply-adds of its synapses alone."""
    used = native.info()["in_use"]
    if used not in MULTIPLY_ADDS:
        return []
    batch, steps, inputs, units = 64, 784, 1, 64
    threads, run = torch.get_num_threads(), native.call("multiply_adds")
    vectors = batch * steps * (inputs + units) * units // LANES[used] // threads
    layer = lrcnet.LRCU(inputs, units, batch_first=True, backend="fused")
    step = training_step(layer, torch.rand(batch, steps, inputs))
    ours, bound = best_in_turn(step, lambda: run(vectors * sum(MULTIPLY_ADDS[used]), threads))
    what = f"LRCU-S {units}, psMNIST ({batch}, {steps}, {inputs}), forward + backward"
    return [Measurement(what, ours * 1e3, "ms", "its arithmetic bound", bound * 1e3, ours / bound, BOUND)]


def _alternation() -> list[Measurement]:
    """Time the same step right after a torch operator that uses all threads: two thread pools would compete here."""
    x = torch.rand(128, 32, 7)
    layer = lrcnet.LRCU(7, 64, batch_first=True, backend="fused")
    left, right = torch.rand(512, 512), torch.rand(512, 512)
    step = training_step(layer, x)

    def product() -> None:
        left @ right

    def both() -> None:
        product()
        step()

    alone, operator, together = best_in_turn(step, product, both, repeats=15)
    what = "LRCU-S 64, person activity, in alternation with a matrix product"
    apart = alone + operator
    return [Measurement(what, together * 1e3, "ms", "each on its own", apart * 1e3, together / apart)]


def _gated() -> list[Measurement]:
    """Compare MGU and the paper's GRU, baselines that torch does not have, with torch's GRU."""
    measurements = []
    shapes = (("psMNIST", 64, 784, 1), ("person activity", 128, 32, 7), ("four long sequences", 4, 896, 6))
    for name, batch, steps, inputs in shapes:
        x = torch.rand(batch, steps, inputs)
        gru = torch.nn.GRU(inputs, 100, batch_first=True)
        for label, kind in (("MGU", lrcnet.MGU), ("GRU with the reset gate before the product", lrcnet.ResetBeforeGRU)):
            layer = kind(inputs, 100, batch_first=True)
            ours, theirs = best_in_turn(training_step(layer, x), training_step(gru, x), repeats=4)
            what = f"{label} 100, {name} ({batch}, {steps}, {inputs}), forward + backward"
            measurements.append(Measurement(what, ours * 1e3, "ms", "torch's GRU 100", theirs * 1e3, ours / theirs))
    return measurements
