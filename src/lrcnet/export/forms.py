"""The two forms in which a network is exported: over whole sequences, and one reading at a time.

Both take and return plain tensors only, because other runtimes have no optional arguments, pairs or named tuples.

Axes: T time, B batch, n inputs, m hidden units, L layers.
"""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells.base import ODECell
from lrcnet.export.scanned import ScannedLayer
from lrcnet.lrc_ssm import LrcSSM, LrcSSMLayer
from lrcnet.mixed_memory import MixedMemory
from lrcnet.models import Classifier, PooledState, SequenceModel
from lrcnet.recurrent_layer import RecurrentLayer
from lrcnet.solvers import SOLVERS, DormandPrince
from lrcnet.torch_layers import GRU, LSTM

Layer = RecurrentLayer | LSTM | GRU | MixedMemory | LrcSSMLayer
LAYER_TYPES = (RecurrentLayer, LSTM, GRU, MixedMemory, LrcSSMLayer)


def network_of(model: Any) -> nn.Module:
    """Return the network of a fitted estimator (`lrcnet.estimators`) or of an LrcSSM; any other model as it is.

    Raises:
        ValueError: for an estimator that is not fitted.
    """
    if isinstance(model, LrcSSM):
        return model.network
    if isinstance(model, nn.Module) or not hasattr(model, "fit"):
        return model  # type: ignore[no-any-return]
    # aeon's class keeps its fitted estimator in the attribute that its conventions name.
    network = getattr(getattr(model, "estimator_", model), "module_", None)
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"an exporter needs a fitted estimator of lrcnet, but this {type(model).__name__} has no network; call fit "
            "first"
        )
    return network


def find_layer(model: object) -> Layer:
    """Return the recurrent layer of an exportable network.

    Raises:
        TypeError: if the network is neither a layer nor a model of this library around one.
        ValueError: if its solver chooses its steps at run time, or its time scale is not known yet.
    """
    layer = model.layer if isinstance(model, SequenceModel) else model
    if not isinstance(layer, LAYER_TYPES):
        raise TypeError(
            "an exporter takes a layer of lrcnet, a Classifier, Regressor, Tagger or Forecaster around one, or an "
            f"LrcSSM, but was given a {type(model).__name__}; for another model, call torch.onnx.export itself"
        )
    for cell in getattr(layer, "cells", ()):
        if isinstance(cell, ODECell) and isinstance(SOLVERS[cell.solver], DormandPrince):
            fixed = ", ".join(name for name in cell.solvers if name != cell.solver)
            raise ValueError(
                f"an exported network needs a solver with a fixed number of steps, but {layer.mode} uses "
                f"{cell.solver!r}, which chooses them at run time; use one of {fixed}"
            )
    if getattr(layer, "time_scale", None) == "auto":
        raise ValueError(
            f"an exported network needs its time scale, but {layer.mode} has time_scale='auto' and none yet; call "
            "layer.calibrate_time(dt) with gaps of the training data"
        )
    return layer


def takes_dt(layer: Layer) -> bool:
    """Return whether a layer can use the time before a reading."""
    return layer.time_feature or (not isinstance(layer, LSTM | GRU) and bool(layer.cells[0].takes_dt))


def time_unit_of(model: nn.Module) -> float:
    """Return the gap that counts as one unit of time: the product of a model's unit and its layer's."""
    parts = (model, model.layer) if isinstance(model, SequenceModel) else (model,)
    units = [getattr(part, "time_unit", None) for part in parts]
    return math.prod(float(unit) for unit in units if unit is not None)


class WholeSequence(nn.Module):
    """A network over whole sequences: forward(x, dt) -> (output, *last states), or the answer of a model alone.

    Args:
        model: a layer, whose layout is kept, or a model, which takes (B, T, n).
        timed: whether dt is an argument; without it every step is 1.
    """

    def __init__(self, model: nn.Module, timed: bool) -> None:
        super().__init__()
        self.model, self.timed = model, timed
        layer = find_layer(model)
        if isinstance(layer, LSTM | GRU):
            scanned = ScannedLayer(layer)
            self.model = scanned if model is layer else _with_layer(model, scanned)

    def forward(self, x: Tensor, dt: Tensor | None = None) -> Any:
        gaps = dt if self.timed else None
        if isinstance(self.model, SequenceModel):
            return self.model(x, gaps)
        output, state = self.model(x) if gaps is None else self.model(x, dt=gaps)
        return output, *(state if isinstance(state, tuple) else (state,))


def _with_layer(model: nn.Module, layer: nn.Module) -> nn.Module:
    """Return a model that shares everything with another one but its layer."""
    twin = copy.copy(model)
    twin._modules = {**model._modules, "layer": layer}
    return twin


class SingleStep(nn.Module):
    """A network one reading at a time: forward(x, *states[, dt]) -> (output, *new states).

    Args:
        model: a layer or a model that looks back only.
        timed: whether dt (B,) is the last argument; without it every step is 1.
    """

    def __init__(self, model: nn.Module, timed: bool) -> None:
        super().__init__()
        self.model, self.timed = model, timed

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        states, dt = (others[:-1], others[-1]) if self.timed else (others, None)
        step: Any = self.model.step
        output, state = step(x, join_states(self.model, states), dt)
        return output, *split_states(state)


def split_states(state: Any) -> tuple[Tensor, ...]:
    """Return the tensors of a state: one, an LSTM's two, or those of a model that pools its outputs."""
    if isinstance(state, PooledState):
        return (*split_states(state.layer), state.pooled, state.readings)
    return state if isinstance(state, tuple) else (state,)


def join_states(model: nn.Module, states: tuple[Tensor, ...]) -> Any:
    """Return the state of a network from its tensors: the inverse of `split_states`."""
    if isinstance(model, Classifier) and model.pooling != "last":
        *own, pooled, readings = states
        return PooledState(join_states(model.layer, tuple(own)), pooled, readings)
    layer = model.layer if isinstance(model, SequenceModel) else model
    return (states[0], states[1]) if isinstance(layer, LSTM | MixedMemory) else states[0]


def first_states(model: nn.Module, batch: int) -> dict[str, Tensor]:
    """Return the states that a stream starts with, by name."""
    layer = find_layer(model)
    like = next(layer.parameters())
    units = layer.states if isinstance(layer, LrcSSMLayer) else layer.hidden_size
    size = (layer.num_layers, batch, units)
    names = ("h", "c") if isinstance(layer, LSTM | MixedMemory) else ("h",)
    states = {name: like.new_zeros(size).detach() for name in names}
    if isinstance(model, Classifier) and model.pooling != "last":
        start = float("-inf") if model.pooling == "max" else 0.0
        states["pooled"] = torch.full((batch, model.width), start, dtype=like.dtype)
        states["readings"] = like.new_zeros(()).detach()
    return states
