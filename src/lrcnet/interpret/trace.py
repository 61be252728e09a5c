"""A record of the units of any sequence model over time: states, gates, elastance, effective time constants.

Axes: T time, B batch, n inputs, m hidden units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells.base import Cell, GatesByName
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.errors import check_flag, check_kind
from lrcnet.interpret.gates import torch_gates
from lrcnet.interpret.layer_calls import Layer, LayerCall, compute_output, find_recurrent_layer, only_call, record_calls
from lrcnet.layers import RecurrentLayer
from lrcnet.sequence import Dt

COMMON = ("forget", "update", "elastance", "time_constant")


@dataclass(frozen=True)
class Trace:
    """One run of one layer and direction. All but `output` are (B, T, m), (T, B, m) or (T, m), laid out as the input.

    Attributes:
        output: of the model, as its forward pass gives it.
        state: after each step.
        forget: F(f) of a liquid unit, by which its state decays; the forget gate of an LSTM or MGU.
        update: U(u) of a liquid unit; the input gate of an LSTM, the update gate of a GRU.
        elastance: eps(w) of an LRC or LRCU.
        time_constant: 1 / decay, in the unit of the caller's dt, where the state decays by `decay` in a unit of time
            (eps F of a liquid unit), or in a step of a gated one (f of an MGU, 1 - f of an LSTM's memory, 1 - z of a
            GRU). Infinite where nothing decays.
        more: the other quantities of a unit, by name: an LSTM's `memory`, `candidate` and `output_gate`, a GRU's
            `reset` and `candidate`, an ODE's `decay` and `drive`.

    A quantity that a unit does not have is None.
    """

    output: Tensor
    state: Tensor
    forget: Tensor | None = None
    update: Tensor | None = None
    elastance: Tensor | None = None
    time_constant: Tensor | None = None
    more: Mapping[str, Tensor] = field(default_factory=dict)

    def by_name(self) -> dict[str, Tensor]:
        """Return name -> array of every quantity that the unit has, without the output."""
        common = {"state": self.state, **{name: getattr(self, name) for name in COMMON}}
        return {name: value for name, value in common.items() if value is not None} | dict(self.more)


@torch.no_grad()
def trace(
    model: nn.Module, x: Tensor, dt: Dt = None, *, hx: Any = None, depth: int = -1, reverse: bool = False
) -> Trace:
    """Run a model and return a record of its recurrent units.

    The model runs as always, without gradients: its output is the same to the last bit. Gates of a liquid layer are
    those that the fused kernel computed during its run; gates of the plain loop come from `lrcnet.liquid`.

    Args:
        model: a layer of lrcnet, an nn.LSTM or nn.GRU, or a module with one such layer in it; called as
            model(x, dt=dt), or as model(x) without dt.
        x: the model's input; for a layer (T, B, n), (B, T, n) or (T, n).
        dt: as the model takes it.
        hx: first states, if the model is a layer.
        depth: index of the layer in a stack, from 0; -1 is the last one.
        reverse: the other direction of a bidirectional layer.

    Raises:
        ValueError: for a model without a recurrent layer or with several, or a layer that does not exist.

    Example:
        >>> record = trace(lrcnet.LRCU(3, 5, batch_first=True), torch.randn(2, 7, 3), dt=0.5)
        >>> record.elastance.shape, sorted(record.by_name())
        (torch.Size([2, 7, 5]), ['elastance', 'forget', 'state', 'time_constant', 'update'])
    """
    layer = find_recurrent_layer(model)
    place = _place(layer, depth, reverse)
    with record_calls(layer) as calls:
        if isinstance(layer, RecurrentLayer):
            cell = layer.cells[place]
            assert isinstance(cell, Cell)
            with cell.record_gates() as runs:
                output = compute_output(model, x, dt, hx)
            call = only_call(calls)
            states, gates = runs[0]
        else:
            output = compute_output(model, x, dt, hx)
            call = only_call(calls)
            states, gates = _torch_run(layer, call, dt, *divmod(place, 2 if layer.bidirectional else 1))

    def lay_out(values: Tensor) -> Tensor:
        values = values.flip(0) if reverse else values
        if call.x.ndim == 2:
            return values.squeeze(1)
        return values.transpose(0, 1) if layer.batch_first else values

    arrays = {name: lay_out(values) for name, values in gates.items()}
    common = {name: arrays.pop(name) for name in COMMON if name in arrays}
    if isinstance(layer, ContinuousLayer) and layer.time_unit is not None and not layer.time_feature:
        common["time_constant"] = common["time_constant"] * layer.time_unit
    return Trace(output, lay_out(states), **common, more=arrays)


def _place(layer: Layer, depth: int, reverse: bool) -> int:
    """Return the index of a cell in its layer, in the order of the states."""
    check_kind("depth", depth, int, "an int")
    check_flag("reverse", reverse)
    if not -layer.num_layers <= depth < layer.num_layers:
        raise ValueError(f"depth must be from 0 to {layer.num_layers - 1}, or from -1 backwards, but is {depth}")
    if reverse and not layer.bidirectional:
        raise ValueError("reverse=True needs a bidirectional layer, but this one is not; leave reverse out")
    return (depth % layer.num_layers) * (2 if layer.bidirectional else 1) + bool(reverse)


def _torch_run(
    layer: nn.LSTM | nn.GRU, call: LayerCall, dt: Any, depth: int, reverse: int
) -> tuple[Tensor, GatesByName]:
    """Return states and gates of one layer and direction, time-major, in the order that it runs."""
    x = _with_time(layer, call.x, dt)

    def time_major(values: Tensor) -> Tensor:
        if values.ndim == 2:
            return values.unsqueeze(1)
        return values.transpose(0, 1) if layer.batch_first else values

    assert call.output is not None
    seen = time_major(x) if depth == 0 else time_major(_first_layers(layer, depth, x, call.hx))
    last = depth == layer.num_layers - 1
    whole = time_major(call.output if last else _first_layers(layer, depth + 1, x, call.hx))
    states = whole.chunk(2 if layer.bidirectional else 1, -1)[reverse]
    if reverse:
        seen, states = seen.flip(0), states.flip(0)
    index = depth * (2 if layer.bidirectional else 1) + reverse
    start = {}
    for name, given in zip("hc", call.hx if isinstance(call.hx, tuple) else (call.hx, None), strict=True):
        zeros = states.new_zeros(states.shape[1:])
        start[name] = zeros if given is None else given[index].reshape(zeros.shape)
    return states, torch_gates(layer, seen, states, start, f"l{depth}{'_reverse' if reverse else ''}")


def _with_time(layer: nn.Module, x: Tensor, dt: Any) -> Tensor:
    """Return the input of torch's kernel: with dt as one more column if the layer has a time feature."""
    if not getattr(layer, "time_feature", False):
        return x
    column = dt.unsqueeze(-1) if isinstance(dt, Tensor) and dt.ndim else x.new_tensor(1.0 if dt is None else float(dt))
    return torch.cat([x, column.expand(*x.shape[:-1], 1)], -1)


def _first_layers(layer: nn.LSTM | nn.GRU, count: int, x: Tensor, hx: Any) -> Tensor:
    """Return the output of the first `count` layers of a stack."""
    kind = nn.LSTM if isinstance(layer, nn.LSTM) else nn.GRU
    part = kind(
        x.shape[-1],
        layer.hidden_size,
        count,
        bias=layer.bias,
        batch_first=layer.batch_first,
        bidirectional=layer.bidirectional,
        device=x.device,
        dtype=x.dtype,
    )
    part.load_state_dict({name: value for name, value in layer.state_dict().items() if name in part.state_dict()})
    depth = count * (2 if layer.bidirectional else 1)
    if isinstance(hx, tuple):
        hx = (hx[0][:depth], hx[1][:depth])
    elif hx is not None:
        hx = hx[:depth]
    output: Tensor = part(x, hx)[0]
    return output
