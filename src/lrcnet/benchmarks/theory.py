"""Speed of the theory; goals: a bound of 64 units in 50 ms, and an empirical constant over 1,000 states in 2 s."""

from functools import partial

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn
from lrcnet.theory import Domain, empirical_lipschitz, lipschitz_bound

UNITS = INPUTS = 64
POINTS = 1000
BOUND_MS, EMPIRICAL_S = 50.0, 2.0


def measure() -> list[Measurement]:
    domain = Domain((-0.4, 0.4), (-1.0, 1.0))
    data = torch.rand(POINTS, UNITS) * 0.8 - 0.4, torch.rand(POINTS, INPUTS) * 2 - 1
    readouts = {"1 output": torch.randn(1, UNITS), f"{UNITS} outputs": None}
    layers = {
        "LRCU-S": lrcnet.LRCU(INPUTS, UNITS),
        "STC, Euler 1": lrcnet.STC(INPUTS, UNITS, solver="euler", unfolds=1),
        "STC, hybrid 6": lrcnet.STC(INPUTS, UNITS),
    }
    measurements = []
    for name, layer in layers.items():
        for outputs, readout in readouts.items():
            what, model = f"{name} {UNITS}, {INPUTS} inputs, {outputs}", (layer, readout)
            bound, tighter, measured = best_in_turn(
                partial(lipschitz_bound, model, domain),
                partial(lipschitz_bound, model, domain, kind="tighter"),
                partial(empirical_lipschitz, model, data),
                repeats=2,
            )
            for label, seconds in (("bound", bound), ("tighter bound", tighter)):
                ms = 1e3 * seconds
                measurements.append(Measurement(f"{label}: {what}", ms, "ms", "goal", BOUND_MS, ms / BOUND_MS, 1.0))
            over = f"empirical value over {POINTS} states: {what}"
            measurements.append(Measurement(over, measured, "s", "goal", EMPIRICAL_S, measured / EMPIRICAL_S, 1.0))
    return measurements
