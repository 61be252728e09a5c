"""Training steps of the fused kernel against torch.nn.LSTM, the plain loop, ncps and the time of its sigmoids alone."""

import importlib.util
from typing import Any

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn, training_step
from lrcnet.kernels import native
from lrcnet.wirings import AutoNCP, Random

# Name, batch, time, inputs, units, units of the LSTM, whether x needs a gradient, largest allowed time over that of the
# LSTM, smallest allowed speed-up over the plain loop.
SHAPES = [
    ("psMNIST", 64, 784, 1, 64, 100, False, 0.45, 25.0),
    ("IMDB", 64, 256, 64, 64, 100, True, 1.0, 12.0),
    ("person activity", 128, 32, 7, 64, 100, False, 0.80, 8.0),
    ("driving policy", 32, 32, 64, 19, 23, True, 1.5, 10.0),
]
# Numbers that one core passes through the sigmoid at a time; few enough for the nearest cache.
CHUNK = 2048


def measure() -> list[Measurement]:
    return [*_shapes(), *_wired(), *_ncps(), _sigmoid_limit(), *_alternation(), *_mgu()]


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
    measurements = []
    for batch, steps in ((64, 100), (1, 100)):
        x = torch.rand(batch, steps, inputs)
        layers = [lrcnet.LRCU(inputs, units, batch_first=True, backend="fused")]
        layers += [lrcnet.LRCU(inputs, wiring=w, batch_first=True, backend="fused") for w in wirings.values()]
        dense, *times = best_in_turn(*(training_step(layer, x) for layer in layers))
        for name, ours in zip(wirings, times, strict=True):
            what = f"LRCU-S {units}, {name} ({batch}, {steps}, {inputs}), forward + backward"
            # Twice as fast with a quarter of the synapses, and never slower.
            least = 2.0 if batch > 1 and name.startswith("a quarter") else 1.0
            measurements.append(
                Measurement(what, ours * 1e3, "ms", "all synapses", dense * 1e3, dense / ours, least, at_least=True)
            )
    return measurements


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


def _mgu() -> list[Measurement]:
    """Compare the MGU, a baseline that torch does not have, with torch's GRU."""
    measurements = []
    for name, batch, steps, inputs in (("psMNIST", 64, 784, 1), ("person activity", 128, 32, 7)):
        x = torch.rand(batch, steps, inputs)
        mgu, gru = lrcnet.MGU(inputs, 100, batch_first=True), torch.nn.GRU(inputs, 100, batch_first=True)
        ours, theirs = best_in_turn(training_step(mgu, x), training_step(gru, x), repeats=4)
        what = f"MGU 100, {name} ({batch}, {steps}, {inputs}), forward + backward"
        measurements.append(Measurement(what, ours * 1e3, "ms", "GRU 100", theirs * 1e3, ours / theirs))
    return measurements
