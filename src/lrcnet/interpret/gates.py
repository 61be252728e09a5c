"""The gates behind the states of each kind of unit, for all steps of a sequence at once.

Axes: T time, B batch, n inputs, m hidden units. Gates of step t are those that it finds: at the state before it and its
own input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from lrcnet import liquid
from lrcnet.cells import MGUCell
from lrcnet.cells.base import Cell, ODECell
from lrcnet.cells.liquid import LiquidCell
from lrcnet.kernels.operators import scan_on_cpu

Gates = Mapping[str, Tensor]
# Synapses looked at together where the plain loop serves: one number for each pair of neurons takes memory.
_TOGETHER = 1 << 18


def scan_with_gates(
    cell: Cell, x: Tensor, h: Tensor, dt: float | Tensor, *, batch_major: bool = False
) -> tuple[Tensor, Gates]:
    """`cell.scan`, and the gates of its steps.

    Args:
        cell: of a layer.
        x, h, dt, batch_major: as `Cell.scan` takes them.

    Returns:
        The states (T, B, m), bit for bit those of `scan`, and name -> (T, B, m).
    """
    if isinstance(cell, LiquidCell) and x.shape[0] and cell._fuses(x):
        return _fused(cell, x, h, dt, batch_major)
    states = type(cell).scan(cell, x, h, dt, batch_major=batch_major)
    if isinstance(cell, MGUCell):
        return states, _mgu(cell, x, states, h, batch_major)
    before = torch.cat([h.unsqueeze(0), states[:-1]]) if len(states) else states
    if isinstance(cell, LiquidCell):
        return states, _liquid(cell, x, before)
    if isinstance(cell, ODECell):
        return states, _ode(cell, x, before)
    return states, {}


def _fused(
    cell: LiquidCell, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool
) -> tuple[Tensor, dict[str, Tensor]]:
    """By the fused operator, which keeps the gates it computes if it is asked to, as it does for a gradient."""
    given: dict[str, Any] = cell._kernel_arguments()
    step = dt.expand(x.shape[:2]) if isinstance(dt, Tensor) else None
    if batch_major:
        x, step = x.transpose(0, 1), None if step is None else step.transpose(0, 1)
    order = ("a", "b", "g", "k", "g_l", "e_l", "o", "p", "k_eps", "input_scale", "input_shift")
    arguments: list[Any] = [x, h, step, *(given[name] for name in order), 1.0 if isinstance(dt, Tensor) else float(dt)]
    arguments += [given[name] for name in ("saturated", "elastance", "solver", "unfolds")]
    arguments += [batch_major, given["negative_dt"] == "error", True]
    # Past torch's dispatcher, as the layer's own call goes: nothing traces this one.
    states, kept = scan_on_cpu(*arguments)
    # (T, unfolding, B, plane, m): F, U, then w where there is an elastance.
    planes = kept[:, 0].unbind(2)
    eps = liquid.elastance_gate(planes[2], cell.values().k_eps) if cell.elastance != "none" else None
    states = states.transpose(0, 1) if batch_major else states
    return states, _named(planes[0], planes[1], eps)


def _liquid(cell: LiquidCell, x: Tensor, before: Tensor) -> dict[str, Tensor]:
    circuit = cell.values()
    steps, batch, m = before.shape
    rows = max(1, _TOGETHER // circuit.a.numel())
    found = [
        liquid.gates(circuit, liquid.input_currents(circuit, held), h, cell.saturated)
        for held, h in zip(torch.split(x.flatten(0, 1), rows), torch.split(before.flatten(0, 1), rows), strict=True)
    ]

    def whole(parts: list[Tensor]) -> Tensor:
        return torch.cat(parts).view(steps, batch, m)

    eps = [one.elastance for one in found if one.elastance is not None]
    return _named(
        whole([one.forget for one in found]), whole([one.update for one in found]), whole(eps) if eps else None
    )


def _named(forget: Tensor, update: Tensor, eps: Tensor | None) -> dict[str, Tensor]:
    if eps is None:
        return {"forget": forget, "update": update, "time_constant": 1 / forget}
    return {"forget": forget, "update": update, "elastance": eps, "time_constant": 1 / (eps * forget)}


def _mgu(cell: MGUCell, x: Tensor, states: Tensor, start: Tensor, batch_major: bool) -> dict[str, Tensor]:
    # In the order of memory, so that the matrix products need no copies.
    time = 1 if batch_major else 0
    whole, given = (values.transpose(0, 1) if batch_major else values for values in (states, x))
    before = torch.cat([start.unsqueeze(time), whole.narrow(time, 0, max(len(states) - 1, 0))], time)
    before = before.narrow(time, 0, len(states))
    m = cell.hidden_size
    flat = before.flatten(0, 1)
    # In place, from sums to gates: memory that is asked for anew costs more than the arithmetic.
    sums = cell.hold(None, given).flatten(0, 1)
    forget, candidate = sums[:, :m], sums[:, m:]
    forget.addmm_(flat, cell.weight_hh[:m].t()).sigmoid_()
    candidate.addmm_(forget * flat, cell.weight_hh[m:].t()).tanh_()
    found = {"forget": forget, "candidate": candidate, "time_constant": 1 / forget}
    shaped = {name: values.view(*whole.shape[:2], m) for name, values in found.items()}
    return {name: values.transpose(0, 1) if batch_major else values for name, values in shaped.items()}


def _ode(cell: ODECell, x: Tensor, before: Tensor) -> dict[str, Tensor]:
    """Of any ODE: dh/dt = drive - decay * h."""
    values = cell.values()
    decay, drive = cell.split(values, cell.hold(values, x.flatten(0, 1)), before.flatten(0, 1))
    decay = decay.expand(drive.shape).view_as(before)
    return {"decay": decay, "drive": drive.view_as(before), "time_constant": 1 / decay}


def torch_gates(layer: nn.RNNBase, x: Tensor, states: Tensor, start: Mapping[str, Tensor], place: str) -> Gates:
    """The gates of torch's LSTM and GRU.

    Args:
        layer: an nn.LSTM or nn.GRU.
        x: what its layer `place` got, (T, B, n), in the order that it runs through it.
        states: what came out of it, (T, B, m), in the same order.
        start: "h" and, of an LSTM, "c": (B, m).
        place: the end of the names of its weights, such as "l0" or "l1_reverse".
    """
    before = torch.cat([start["h"].unsqueeze(0), states[:-1]])
    weights: list[Any] = [
        getattr(layer, f"{name}_{place}", None) for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    ]
    given = linear(x, weights[0], weights[1]).chunk(4 if isinstance(layer, nn.LSTM) else 3, -1)
    remembered = linear(before, weights[2], weights[3]).chunk(len(given), -1)
    if isinstance(layer, nn.LSTM):
        sums = [a + b for a, b in zip(given, remembered, strict=True)]
        input_gate, forget, output_gate = (torch.sigmoid(sums[i]) for i in (0, 1, 3))
        candidate = torch.tanh(sums[2])
        return {
            "forget": forget,
            "update": input_gate,
            "candidate": candidate,
            "output_gate": output_gate,
            "memory": _accumulated(forget, input_gate * candidate, start["c"]),
            "time_constant": 1 / (1 - forget),
        }
    reset, update = (torch.sigmoid(given[i] + remembered[i]) for i in (0, 1))
    candidate = torch.tanh(given[2] + reset * remembered[2])
    return {"update": update, "reset": reset, "candidate": candidate, "time_constant": 1 / (1 - update)}


def _accumulated(keep: Tensor, add: Tensor, start: Tensor) -> Tensor:
    """c_t = keep_t c_{t-1} + add_t of (T, B, m), by doubling: a loop over time would cost more than the LSTM."""
    total = torch.cat([torch.addcmul(add[:1], keep[:1], start), add[1:]])
    reach = 1
    while reach < len(total):
        total = torch.cat([total[:reach], torch.addcmul(total[reach:], keep[reach:], total[:-reach])])
        keep = torch.cat([keep[:reach], keep[reach:] * keep[:-reach]])
        reach *= 2
    return total
