"""Readings for the self-test of generated C, and the answers of the network in float64."""

import copy
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from lrcnet.errors import TimeWarning
from lrcnet.export.network import Array, NetworkData


class Vectors(NamedTuple):
    """Readings x (N, n) or tokens (N,), gaps dt (N,) and answers y (N, outputs)."""

    x: Array
    dt: Array
    y: Array


def make_vectors(model: nn.Module, network: NetworkData, readings: int) -> Vectors:
    """Return random readings on the scale of the training data, and the answers to them in float64.

    The first half of the gaps is around the unit of time; the second half is a regular stream, whose gaps of one unit
    show an error that builds up.
    """
    generator = np.random.default_rng(0)
    if network.embedding is not None:
        x: Any = generator.integers(len(network.embedding), size=readings)
    else:
        scale = network.input_scale[: network.inputs]
        centre = network.input_mean[: network.inputs] - network.input_shift[: network.inputs] / scale
        x = _as_float32(generator.normal(size=(readings, network.inputs)) / scale + centre)
    dt = generator.uniform(0.1, 1.9, readings) * network.time_unit
    dt[readings // 2 :] = network.time_unit
    dt = _as_float32(dt)
    with warnings.catch_warnings():
        # These gaps are our choice, so a warning about them would tell the user nothing.
        warnings.simplefilter("ignore", TimeWarning)
        y = run_stream(model, x, dt if network.timed else None)
    return Vectors(x, dt, y)


def _as_float32(values: Array) -> Array:
    """Round as float32 does: the generated code gets float32 numbers, so the truth does too."""
    return values.astype(np.float32).astype(np.float64)


@torch.no_grad()
def run_stream(model: nn.Module, x: Array, dt: Array | None) -> Array:
    """Return the answers (N, outputs) of a network in float64 to readings x (N, n), or tokens, one at a time."""
    twin: Any = copy.deepcopy(model).double().eval()
    state, answers = None, []
    for index, reading in enumerate(torch.from_numpy(x)):
        gap = None if dt is None else float(dt[index])
        answer, state = twin.step(reading.unsqueeze(0), state, gap)
        answers.append(answer[0].numpy())
    return np.stack(answers)
