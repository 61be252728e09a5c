"""A trained network as plain data: sizes, names and float64 arrays, from which source code is written.

Axes: n inputs of a cell, m hidden units, J = m + n.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from lrcnet.cells import CTRNNCell, GRUODECell, MGUCell, ResetBeforeGRUCell
from lrcnet.cells.base import Cell, ODECell
from lrcnet.cells.liquid import LiquidCell
from lrcnet.circuit import LETTERS
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.export.forms import Layer, find_layer, takes_dt, time_unit_of
from lrcnet.models import Classifier, Forecaster, SequenceModel
from lrcnet.torch_layers import GRU, LSTM

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class CellData:
    """One cell of a stack.

    Attributes:
        inputs, units: n and m.
        outputs: number of the first units that the next layer or the read-out sees; the motor neurons of a wiring.
        vectors: name -> (m,) or another length; weights that are used once per step.
        matrices: name -> (rows, columns), the rows of all gates below each other. The names of a group that shares
            its zeros, such as the letters of a synapse, start with the same word: "in", "rec".
    """

    inputs: int
    units: int
    outputs: int
    vectors: dict[str, Array]
    matrices: dict[str, Array]


@dataclass(frozen=True)
class NetworkData:
    """A network as plain data.

    Attributes:
        kind: "liquid", "ctrnn", "gru-ode", "mgu", "gru-reset-before", "gru" or "lstm".
        switches: what the equation depends on, such as saturated, elastance, solver, unfolds.
        inputs, outputs: number of channels of a reading, and of an answer.
        cells: the stack, first layer first.
        timed: whether dt is an argument of a step.
        time_unit: the gap that counts as 1.
        time_feature: whether dt is one more input.
        fill_first_gap, clamp_dt: what happens to a first gap of 0, and to negative gaps.
        input_mean, input_scale, input_shift: the first cell sees (x - mean) * scale + shift.
        head: weight (outputs, m) and bias of the read-out, or None for a bare layer.
        target_mean, target_scale: the answer is mean + scale * read-out.
        pooling: "last", "mean" or "max".
        residual: whether the answer is a change of the reading's first channels.
    """

    kind: str
    switches: dict[str, Any]
    inputs: int
    outputs: int
    cells: list[CellData]
    timed: bool
    time_unit: float
    time_feature: bool
    fill_first_gap: bool
    clamp_dt: bool
    input_mean: Array
    input_scale: Array
    input_shift: Array
    head: tuple[Array, Array] | None = None
    target_mean: Array | None = None
    target_scale: Array | None = None
    pooling: str = "last"
    residual: bool = False
    name: str = field(default="net")


@torch.no_grad()
def collect(model: nn.Module, name: str = "net", timed: bool | None = None) -> NetworkData:
    """Return the plain data of a network that steps through readings.

    Args:
        model: a layer, or a Classifier, Regressor, Tagger or Forecaster.
        name: the name of the network.
        timed: whether dt is an argument; None means yes if the layer can use it. Without it every step is 1.

    Raises:
        TypeError, ValueError: for a network without a step of fixed cost; see `lrcnet.export.forms.find_layer`.
    """
    layer = find_layer(model)
    if layer.bidirectional:
        raise ValueError(f"a step needs a layer that only looks back, but this {layer.mode} is bidirectional")
    if isinstance(model, SequenceModel) and model.takes_tokens:
        raise ValueError("C source takes readings of numbers, but this model takes tokens; export it to ONNX")
    timed = takes_dt(layer) if timed is None else timed
    kind, switches, cells = _collect_cells(layer)
    mean, scale, shift = _input_maps(model, layer, cells)
    data: dict[str, Any] = {
        "kind": kind,
        "switches": switches,
        "inputs": layer.input_size,
        "outputs": cells[0].outputs,
        "cells": cells,
        "timed": timed,
        "time_unit": time_unit_of(model) if timed else 1.0,
        "time_feature": layer.time_feature,
        "fill_first_gap": isinstance(layer, ContinuousLayer) and layer.fill_first_gap and timed,
        "clamp_dt": isinstance(layer, ContinuousLayer) and layer.negative_dt != "allow",
        "input_mean": mean,
        "input_scale": scale,
        "input_shift": shift,
        "name": name,
    }
    if isinstance(model, SequenceModel):
        data["outputs"] = model.outputs
        data["head"] = (_array(model.head.weight), _array(model.head.bias))
        data["pooling"] = model.pooling if isinstance(model, Classifier) else "last"
        data["residual"] = isinstance(model, Forecaster) and model.residual
        if model.target_mean is not None and model.target_scale is not None:
            data["target_mean"], data["target_scale"] = _array(model.target_mean), _array(model.target_scale)
    return NetworkData(**data)


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().double().numpy())


def _input_maps(model: nn.Module, layer: Layer, cells: list[CellData]) -> tuple[Array, Array, Array]:
    """Return mean, scale and shift per channel of the first cell, its own input map and the model's scaling joined."""
    columns = layer.input_size + layer.time_feature
    mean, scale = np.zeros(columns), np.ones(columns)
    if isinstance(model, SequenceModel) and model.input_mean is not None and model.input_scale is not None:
        mean[: layer.input_size] = _array(model.input_mean)
        scale[: layer.input_size] = 1 / _array(model.input_scale)
    vectors = cells[0].vectors
    scale = scale * vectors.pop("input_scale", np.ones(columns))
    return mean, scale, vectors.pop("input_shift", np.zeros(columns))


def _collect_cells(layer: Layer) -> tuple[str, dict[str, Any], list[CellData]]:
    if isinstance(layer, LSTM | GRU):
        cells = [_collect_torch_cell(layer, index) for index in range(layer.num_layers)]
        return layer.mode.lower(), {}, cells
    first = layer.cells[0]
    for cell_type, (kind, collect_cell) in COLLECTORS.items():
        if isinstance(first, cell_type):
            cells = [collect_cell(cell) for cell in layer.cells]
            switches = {"solver": first.solver, "unfolds": first.unfolds} if isinstance(first, ODECell) else {}
            if isinstance(first, LiquidCell):
                switches |= {"saturated": first.saturated, "elastance": first.elastance}
                # The first input map is applied where readings come in; the others become part of their synapses.
                for data in cells[1:]:
                    _fold_input_map(data)
            return kind, switches, cells
    known = ", ".join(cell_type.__name__ for cell_type in COLLECTORS)
    raise TypeError(
        f"C source needs a layer of {known}, LSTM or GRU, but this one has a {type(first).__name__}; export it as ONNX"
    )


def _collect_liquid(cell: Any) -> CellData:
    letters = {
        name: value.double().numpy() for name, value in cell.circuit().items() if value is not None and name in LETTERS
    }
    m = cell.hidden_size
    if "o" in letters:
        letters.setdefault("p", np.zeros(m))
    matrices = {}
    for name in ("a", "b", "g", "k", "o"):
        if name in letters:
            whole = letters.pop(name)
            # One row per receiving unit, so that its synapses lie together.
            matrices[f"in_{name}"], matrices[f"rec_{name}"] = whole[m:].T.copy(), whole[:m].T.copy()
    return CellData(cell.input_size, m, cell.output_size, letters, matrices)


def _fold_input_map(data: CellData) -> None:
    """Make the map x * scale + shift of a cell's inputs part of its synapses."""
    scale, shift = data.vectors.pop("input_scale", None), data.vectors.pop("input_shift", None)
    if scale is None or shift is None:
        return
    matrices = data.matrices
    matrices["in_b"] = matrices["in_b"] + matrices["in_a"] * shift
    matrices["in_a"] = matrices["in_a"] * scale
    if "in_o" in matrices:
        data.vectors["p"] = data.vectors["p"] + matrices["in_o"] @ shift
        matrices["in_o"] = matrices["in_o"] * scale


def _collect_linear(cell: Any) -> CellData:
    """Collect a cell whose gates are linear in the input and in the state."""
    rows = len(cell.weight_ih)
    vectors = {"bias": np.zeros(rows) if cell.bias is None else _array(cell.bias)}
    if isinstance(cell, CTRNNCell):
        vectors["rate"] = _array(cell.values())
    matrices = {"in_w": _array(cell.weight_ih), "rec_w": _array(cell.weight_hh)}
    return CellData(matrices["in_w"].shape[1], cell.hidden_size, cell.hidden_size, vectors, matrices)


def _collect_torch_cell(layer: LSTM | GRU, index: int) -> CellData:
    weight_ih, weight_hh = (_array(getattr(layer, f"weight_{part}_l{index}")) for part in ("ih", "hh"))
    zeros = np.zeros(len(weight_ih))
    biases = [_array(getattr(layer, f"bias_{part}_l{index}")) if layer.bias else zeros for part in ("ih", "hh")]
    # A GRU multiplies the recurrent part of its candidate by the reset gate, so its two biases stay apart.
    vectors = {"bias": biases[0] + biases[1]}
    if isinstance(layer, GRU):
        m = layer.hidden_size
        vectors = {
            "bias": np.concatenate([(biases[0] + biases[1])[: 2 * m], biases[0][2 * m :]]),
            "bias_n": biases[1][2 * m :],
        }
    m = layer.hidden_size
    return CellData(weight_ih.shape[1], m, m, vectors, {"in_w": weight_ih, "rec_w": weight_hh})


COLLECTORS: dict[type[Cell], tuple[str, Callable[[Any], CellData]]] = {
    LiquidCell: ("liquid", _collect_liquid),
    CTRNNCell: ("ctrnn", _collect_linear),
    GRUODECell: ("gru-ode", _collect_linear),
    MGUCell: ("mgu", _collect_linear),
    ResetBeforeGRUCell: ("gru-reset-before", _collect_linear),
}
"""Type of cell -> its kind, and how its data are collected; each kind has a row in `lrcnet.export.c_cells.KINDS`."""
