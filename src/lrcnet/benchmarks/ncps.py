"""Training steps of LTC, CfC and LRCU, dense and wired, beside those of ncps; needs ncps.

All networks have 64 units and read (64, 100, 8): batch, time, inputs. Wired ones are AutoNCP(64, 8).
"""

from collections.abc import Callable

import torch
from torch import nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, medians_in_turn, training_step
from lrcnet.compat import ncps as compat
from lrcnet.wirings import AutoNCP

BATCH, STEPS, INPUTS, UNITS, MOTORS = 64, 100, 8, 64, 8
BACKBONE = 128
# With one dt for all readings, the gate's two heads are one.
HEADS = 3
# Name, ours, name of the module of ncps, whether it is wired, smallest allowed speed-up.
Row = tuple[str, nn.Module, str, bool, float | None]


def measure() -> list[Measurement]:
    """Measure every layer beside the same of ncps in one run, CfC beside its matrix products, and errors of time."""
    return [*_rivals(), _products(), *_errors_of_time()]


def _wiring() -> AutoNCP:
    return AutoNCP(UNITS, MOTORS)


def _rows() -> list[Row]:
    wired = {"wiring": _wiring(), "batch_first": True}
    return [
        ("LTC", lrcnet.LTC(INPUTS, UNITS, batch_first=True), "LTC", False, None),
        ("compat LTC", compat.torch.LTC(INPUTS, UNITS), "LTC", False, None),
        ("LRCU-S", lrcnet.LRCU(INPUTS, UNITS, batch_first=True), "LTC", False, None),
        ("LTC wired", lrcnet.LTC(INPUTS, **wired), "LTC", True, None),  # type: ignore[arg-type]
        ("compat LTC wired", compat.torch.LTC(INPUTS, _wiring()), "LTC", True, None),
        ("LRCU-S wired", lrcnet.LRCU(INPUTS, **wired), "LTC", True, None),  # type: ignore[arg-type]
        ("CfC", lrcnet.CfC(INPUTS, UNITS, batch_first=True), "CfC", False, 3.0),
        ("compat CfC", compat.torch.CfC(INPUTS, UNITS), "CfC", False, None),
        ("CfC wired", lrcnet.WiredCfC(INPUTS, **wired), "CfC", True, 3.0),  # type: ignore[arg-type]
        ("compat CfC wired", compat.torch.CfC(INPUTS, _wiring()), "CfC", True, None),
    ]


def _rivals() -> list[Measurement]:
    import ncps.torch
    import ncps.wirings

    x, rows = torch.rand(BATCH, STEPS, INPUTS), _rows()
    measurements = []
    for kind, wired in (("LTC", False), ("LTC", True), ("CfC", False), ("CfC", True)):
        units = ncps.wirings.AutoNCP(UNITS, MOTORS) if wired else UNITS
        own = [row for row in rows if row[2:4] == (kind, wired)]
        layers = [getattr(ncps.torch, kind)(INPUTS, units), *(row[1] for row in own)]
        theirs, *ours = medians_in_turn(
            *(training_step(layer, x) for layer in layers), repeats=5 if kind == "LTC" else 25
        )
        against = f"ncps {kind}{' wired' if wired else ''}"
        for (name, _, _, _, least), time in zip(own, ours, strict=True):
            what = f"{name} {UNITS}, ({BATCH}, {STEPS}, {INPUTS}), forward + backward"
            ratio = theirs / time
            measurements.append(Measurement(what, time * 1e3, "ms", against, theirs * 1e3, ratio, least, at_least=True))
    return measurements


def _products() -> Measurement:
    layer, x = lrcnet.CfC(INPUTS, UNITS, batch_first=True), torch.rand(BATCH, STEPS, INPUTS)
    ours, products = medians_in_turn(training_step(layer, x), _matrix_products(), repeats=25)
    what = f"CfC {UNITS}, ({BATCH}, {STEPS}, {INPUTS}), forward + backward"
    return Measurement(what, ours * 1e3, "ms", "its matrix products alone", products * 1e3, ours / products, 2.0)


def _matrix_products() -> Callable[[], None]:
    """Return a function that computes the products of a CfC's forward and backward pass, and nothing else."""
    rows, heads = STEPS * BATCH, HEADS * UNITS
    readings, states, hidden, results = (torch.rand(rows, width) for width in (INPUTS, UNITS, BACKBONE, heads))
    weight_ih, weight_hh, weight = (
        torch.rand(BACKBONE, INPUTS),
        torch.rand(BACKBONE, UNITS),
        torch.rand(heads, BACKBONE),
    )
    offset = torch.rand(heads)
    by_step = [values.view(STEPS, BATCH, -1).unbind() for values in (states, hidden, results)]
    of_hidden, of_state = torch.empty(BATCH, BACKBONE), torch.empty(BATCH, UNITS)

    def run() -> None:
        terms = (readings @ weight_ih.t()).view(STEPS, BATCH, -1).unbind()
        for t in range(STEPS):
            terms[t].addmm_(by_step[0][t], weight_hh.t())
            torch.addmm(offset, by_step[1][t], weight.t(), out=by_step[2][t])
        for t in range(STEPS - 1, -1, -1):
            torch.mm(by_step[2][t], weight, out=of_hidden)
            torch.mm(of_hidden, weight_hh, out=of_state)
        for left, right in ((results, hidden), (hidden, states), (hidden, readings)):
            left.t() @ right

    return run


@torch.no_grad()
def _errors_of_time() -> list[Measurement]:
    """Compare a batch whose samples have gaps of their own with each sample alone; 0 would be exact."""
    import ncps.torch

    torch.manual_seed(0)
    # As many samples as units: any other batch is an error in ncps.
    x, gaps = torch.rand(UNITS, STEPS, INPUTS), torch.rand(UNITS, STEPS) * 2
    measurements = []
    for kind in ("LTC", "CfC"):
        theirs = getattr(ncps.torch, kind)(INPUTS, UNITS)
        ours = getattr(compat.torch, kind)(INPUTS, UNITS)
        ours.load_state_dict(theirs.state_dict())
        alone = torch.cat([theirs(x[i : i + 1], timespans=gaps[i : i + 1])[0] for i in range(UNITS)])
        errors = [float((layer(x, timespans=gaps)[0] - alone).abs().max()) for layer in (ours, theirs)]
        largest = float(alone.abs().max())
        what = f"{kind} {UNITS}, error of a batch with gaps of its own, outputs up to {largest:.2g}"
        measurements.append(Measurement(what, errors[0], "", f"ncps {kind}", errors[1]))
    return measurements
