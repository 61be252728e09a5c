"""The gates behind the states of torch's LSTM and GRU, for all steps of a sequence at once.

The library's own cells keep or compute their gates themselves: see `lrcnet.cells.base.Cell.record_gates`.

Axes: T time, B batch, n inputs, m hidden units. The gates of step t are evaluated at the state before
the step and at the step's own input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from lrcnet.cells.base import GatesByName


def torch_gates(layer: nn.RNNBase, x: Tensor, states: Tensor, start: Mapping[str, Tensor], place: str) -> GatesByName:
    """Return the gates of torch's LSTM and GRU.

    Args:
        layer: an nn.LSTM or nn.GRU.
        x: the input of its layer `place`, (T, B, n), in the order that the layer runs through it.
        states: the output of that layer, (T, B, m), in the same order.
        start: the initial states (B, m) by name: "h", and for an LSTM also "c".
        place: the suffix of the names of its weights, such as "l0" or "l1_reverse".
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
            "memory": _accumulate(forget, input_gate * candidate, start["c"]),
            "time_constant": 1 / (1 - forget),
        }
    reset, update = (torch.sigmoid(given[i] + remembered[i]) for i in (0, 1))
    candidate = torch.tanh(given[2] + reset * remembered[2])
    return {"update": update, "reset": reset, "candidate": candidate, "time_constant": 1 / (1 - update)}


def _accumulate(keep: Tensor, add: Tensor, start: Tensor) -> Tensor:
    """Return c_t = keep_t c_{t-1} + add_t for all t, (T, B, m), by doubling, which is faster than a loop over time."""
    total = torch.cat([torch.addcmul(add[:1], keep[:1], start), add[1:]])
    reach = 1
    while reach < len(total):
        total = torch.cat([total[:reach], torch.addcmul(total[reach:], keep[reach:], total[:-reach])])
        keep = torch.cat([keep[:reach], keep[reach:] * keep[:-reach]])
        reach *= 2
    return total
