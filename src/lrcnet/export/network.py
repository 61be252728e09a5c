"""A trained network as plain data: sizes, names and float64 arrays, from which source code is written.

Axes: n inputs of a cell, m hidden units, J = m + n.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from lrcnet.cells import CfCCell, CTRNNCell, DiagonalLRCCell, GRUODECell, MGUCell, ResetBeforeGRUCell, WiredCfCCell
from lrcnet.cells.base import Cell, ODECell
from lrcnet.cells.cfc_equation import ACTIVATIONS, fold_activation
from lrcnet.cells.liquid import LiquidCell
from lrcnet.circuit import LETTERS
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.errors import check_flag
from lrcnet.export.forms import Layer, find_layer, takes_dt, time_unit_of
from lrcnet.lrc_ssm import LrcSSMBlock, LrcSSMLayer
from lrcnet.mixed_memory import MixedMemory
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
        parts: the parts of a CfC cell, each driven by the one before; the cell itself has no weights then.
        memory: the LSTM of a mixed memory, whose step comes before the cell's.
        block: the layers around the cell of an LrcSSM.
    """

    inputs: int
    units: int
    outputs: int
    vectors: dict[str, Array]
    matrices: dict[str, Array]
    parts: tuple["CellData", ...] = ()
    memory: "CellData | None" = None
    block: "CellData | None" = None


@dataclass(frozen=True)
class NetworkData:
    """A network as plain data.

    Attributes:
        kind: "liquid", "ctrnn", "gru-ode", "mgu", "gru-reset-before", "gru", "lstm", "cfc" or "diagonal".
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
        encoder: the linear layer before the first cell of an LrcSSM, or None.
        embedding: what the first cell sees of each token (tokens, n), its input map included; None for numbers.
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
    encoder: CellData | None = None
    embedding: Array | None = None
    name: str = field(default="net")


@torch.no_grad()
def collect(model: nn.Module, name: str = "net", timed: bool | None = None) -> NetworkData:
    """Return the plain data of a network that steps through readings.

    Args:
        model: a layer, or a Classifier, Regressor, Tagger or Forecaster; see `lrcnet.export.forms.network_of`.
        name: the name of the network.
        timed: whether dt is an argument; None means yes if the layer can use it. Without it every step is 1.

    Raises:
        TypeError, ValueError: for a network without a step of fixed cost; see `lrcnet.export.forms.find_layer`.
    """
    layer = find_layer(model)
    if layer.bidirectional:
        raise ValueError(f"a step needs a layer that only looks back, but this {layer.mode} is bidirectional")
    timed = takes_dt(layer) if timed is None else check_flag("timed", timed)
    inner = layer.layer if isinstance(layer, MixedMemory) else layer
    kind, switches, cells = _collect_cells(inner)
    encoder = None
    if isinstance(layer, LrcSSMLayer):
        cells, encoder = _with_blocks(cells, layer), _collect_affine(layer.encoder)
        inner = layer.recurrences[0]
    if isinstance(layer, MixedMemory):
        cells = _with_memories(cells, layer)
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
        "fill_first_gap": isinstance(inner, ContinuousLayer) and inner.fill_first_gap and timed,
        "clamp_dt": isinstance(inner, ContinuousLayer) and inner.negative_dt != "allow",
        "input_mean": mean,
        "input_scale": scale,
        "input_shift": shift,
        "encoder": encoder,
        "name": name,
    }
    if isinstance(model, SequenceModel):
        data["outputs"] = model.outputs
        data["head"] = (_array(model.head.weight), _array(model.head.bias))
        data["pooling"] = model.pooling if isinstance(model, Classifier) else "last"
        data["residual"] = isinstance(model, Forecaster) and model.residual
        if isinstance(model, Classifier) and model.embedding is not None:
            size = layer.input_size
            data["embedding"] = _array(model.embedding.weight) * scale[:size] + shift[:size]
        if model.target_mean is not None and model.target_scale is not None:
            data["target_mean"], data["target_scale"] = _array(model.target_mean), _array(model.target_scale)
    return NetworkData(**data)


def _array(value: Any) -> Array:
    return np.asarray(value.detach().cpu().double().numpy())


def _input_maps(model: nn.Module, layer: Layer, cells: list[CellData]) -> tuple[Array, Array, Array]:
    """Return mean, scale and shift per channel of the first cell, its own input map and the model's scaling joined."""
    columns = layer.input_size + layer.time_feature
    mean, scale = np.zeros(columns), np.ones(columns)
    scaled = isinstance(model, SequenceModel) and not model.takes_tokens
    if scaled and model.input_mean is not None and model.input_scale is not None:
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
            switches: dict[str, Any] = {}
            if isinstance(first, ODECell):
                switches = {"solver": first.solver, "unfolds": first.unfolds}
            if isinstance(first, DiagonalLRCCell):
                limited = first.contraction is not None and first.synapses == "mixed"
                switches |= {"elastance": first.elastance, "synapses": first.synapses, "limited": limited}
            elif isinstance(first, CfCCell | WiredCfCCell):
                switches = _cfc_switches(first)
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


def _with_memories(cells: list[CellData], layer: MixedMemory) -> list[CellData]:
    """Return cells with the LSTM beside each of them."""
    # The memory sees the input before the cell's map.
    _fold_input_map(cells[0])
    both = []
    for cell, memory in zip(cells, layer.memories, strict=True):
        bias = _array(memory.bias_ih) + _array(memory.bias_hh)
        weights = {"in_w": _array(memory.weight_ih), "rec_w": _array(memory.weight_hh)}
        both.append(replace(cell, memory=CellData(cell.inputs, cell.units, cell.units, {"bias": bias}, weights)))
    return both


def _with_blocks(cells: list[CellData], layer: LrcSSMLayer) -> list[CellData]:
    """Return cells with the norm, the map of the states and the MLP of their blocks; outputs are features."""
    if len({recurrence.time_scale for recurrence in layer.recurrences}) > 1:
        raise ValueError(
            "the blocks of an exported LrcSSM must have one time scale, but theirs differ; call calibrate_time of its "
            "layer"
        )
    both = []
    for cell, block in zip(cells, layer.blocks, strict=True):
        assert isinstance(block, LrcSSMBlock)
        mlp = block.mlp[2]
        vectors = {
            "norm_scale": block.norm.weight,
            "norm_shift": block.norm.bias,
            "read_bias": block.read.bias,
            "skip": block.skip,
            "mlp_bias": mlp.bias,
        }
        arrays = {name: _array(value) for name, value in vectors.items()}
        matrices = {"read_w": _array(block.read.weight), "mlp_w": _array(mlp.weight)}
        around = CellData(cell.units, layer.hidden_size, layer.hidden_size, arrays, matrices)
        both.append(replace(cell, outputs=layer.hidden_size, block=around))
    return both


def _collect_affine(layer: nn.Linear) -> CellData:
    weight = _array(layer.weight)
    return CellData(weight.shape[1], len(weight), len(weight), {"bias": _array(layer.bias)}, {"in_w": weight})


def _collect_linear(cell: Any) -> CellData:
    """Collect a cell whose gates are linear in the input and in the state."""
    rows = len(cell.weight_ih)
    vectors = {"bias": np.zeros(rows) if cell.bias is None else _array(cell.bias)}
    if isinstance(cell, CTRNNCell):
        vectors["rate"] = _array(cell.values())
    matrices = {"in_w": _array(cell.weight_ih), "rec_w": _array(cell.weight_hh)}
    return CellData(matrices["in_w"].shape[1], cell.hidden_size, cell.hidden_size, vectors, matrices)


def _collect_diagonal(cell: DiagonalLRCCell) -> CellData:
    values = copy.deepcopy(cell).double().values()
    vectors = {"bias": _array(values.bias), **{name: _array(value) for name, value in values.unit.items()}}
    if values.slope is not None and values.offset is not None:
        vectors |= {"slope": _array(values.slope), "offset": _array(values.offset)}
        unused = {"g_l", "g_in", "k_in"}
    else:
        unused = {"w_in"}
    if values.widest is not None:
        vectors["widest"] = _array(values.widest)
    if cell.k_eps is None:
        unused.add("k_eps")
    kept = {name: value for name, value in vectors.items() if name not in unused}
    return CellData(cell.input_size, cell.hidden_size, cell.output_size, kept, {"in_w": _array(values.weight)})


def _collect_cfc(cell: CfCCell) -> CellData:
    return CellData(cell.input_size, cell.hidden_size, cell.output_size, {}, {}, (_collect_part(cell),))


def _collect_wired_cfc(cell: WiredCfCCell) -> CellData:
    parts = tuple(_collect_part(part) for part in cell.parts if isinstance(part, CfCCell))
    return CellData(cell.input_size, cell.hidden_size, cell.output_size, {}, {}, parts)


def _collect_part(cell: CfCCell) -> CellData:
    """Collect a CfC cell; height and slope of its activation become part of the weights."""
    twin = copy.deepcopy(cell).double()
    weights = fold_activation(ACTIVATIONS[cell.activation], twin.values())
    weight_ih, weight_hh, bias = weights.first
    matrices = {"in_w": _array(weight_ih), "rec_w": _array(weight_hh)}
    vectors = {"bias": np.zeros(len(weight_ih)) if bias is None else _array(bias)}
    for k, (weight, offset) in enumerate(weights.deeper, 1):
        matrices[f"deep{k}_w"] = _array(weight)
        vectors[f"bias{k}"] = np.zeros(len(weight)) if offset is None else _array(offset)
    if weights.leak is not None and weights.asymptote is not None:
        vectors |= {"leak": _array(weights.leak), "asymptote": _array(weights.asymptote)}
    return CellData(cell.input_size, cell.hidden_size, cell.hidden_size, vectors, matrices)


def _cfc_switches(cell: CfCCell | WiredCfCCell) -> dict[str, Any]:
    if isinstance(cell, CfCCell):
        return {"mode": cell.mode, "backbone_layers": cell.backbone_layers, "activation": cell.activation}
    return {"mode": cell.mode, "backbone_layers": 0, "activation": "tanh"}


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
    DiagonalLRCCell: ("diagonal", _collect_diagonal),
    CfCCell: ("cfc", _collect_cfc),
    WiredCfCCell: ("cfc", _collect_wired_cfc),
}
"""Type of cell -> its kind, and how its data are collected; each kind has a row in `lrcnet.export.c_cells.KINDS`."""
