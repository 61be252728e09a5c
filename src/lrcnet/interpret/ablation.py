"""Ablation: what a recurrent layer gives if one of its neurons is held at its resting value, for every neuron at once.

The neuron is held inside the recurrence: after each reading its state is set to the resting value, so that the other
neurons, the following layers and the read-out all receive that value.

Axes: T readings of a sequence, m hidden units of the last layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells.base import Cell
from lrcnet.interpret.layer_calls import Layer, LayerCall
from lrcnet.layers import RecurrentLayer

Answer = tuple[Tensor, Any]
"""Output and last state of a layer, in its own layout."""


def can_hold(layer: Layer) -> bool:
    """Return whether neurons can be held inside the recurrence: a bidirectional layer needs its whole sequence."""
    return not layer.bidirectional


@torch.no_grad()
def hold_neurons(layer: Layer, call: LayerCall, rest: Tensor, moments: Collection[int]) -> dict[int, Answer]:
    """Run a layer once per neuron, with that neuron of its last layer held at its resting value.

    Args:
        layer: the layer, in one direction.
        call: its call with one sequence.
        rest: resting value of each neuron, (m,).
        moments: numbers of readings after which the answer is wanted.

    Returns:
        For each of the moments, output and state after as many readings; sequence k of the batch has neuron k held.
    """
    units, axis = torch.arange(len(rest)), 1 if layer.batch_first else 0
    x = _copies(call.x, 1 - axis, len(rest))
    state = _each(call.hx, lambda part: _copies(part, 1, len(rest)))
    outputs, answers = [], {}
    for t in range(x.shape[axis]):
        given = {} if call.dt is None else {"dt": _at(call.dt, t, axis, len(rest))}
        state = layer(x.narrow(axis, t, 1), state, **given)[1]
        hidden = (state[0] if isinstance(state, tuple) else state).clone()
        hidden[-1, units, units] = rest.to(hidden)
        state = (hidden, *state[1:]) if isinstance(state, tuple) else hidden
        outputs.append(_read_out(layer, hidden[-1]))
        if t + 1 in moments:
            answers[t + 1] = (torch.stack(outputs, axis), state)
    return answers


def hold_outputs(answer: Answer, rest: Tensor, *, batch_first: bool) -> Answer:
    """Hold neuron k of sequence k only where the layer's output or last state is read; for bidirectional layers."""
    units = torch.arange(len(rest))

    def hold(values: Tensor, batch: int) -> Tensor:
        changed = values.clone()
        view = changed.movedim(batch, 0)
        view[units, ..., units] = rest.to(values).reshape(-1, *[1] * (view.ndim - 2)).expand(view.shape[:-1])
        return changed

    output, state = answer
    hidden = state[0] if isinstance(state, tuple) else state
    # The last layer's states are those of the forward and of the reverse direction.
    hidden = torch.cat([hidden[:-2], hold(hidden[-2:-1], 1), hidden[-1:]])
    state = (hidden, *state[1:]) if isinstance(state, tuple) else hidden
    return hold(output, 0 if batch_first else 1), state


@contextmanager
def answering(layer: Layer, answer: Answer | None, rest: Tensor) -> Iterator[None]:
    """Let a layer give `answer` whatever it computes; with None, its own answer after `hold_outputs`."""

    def after(_: nn.Module, __: Any, own: Answer) -> Answer:
        return hold_outputs(own, rest, batch_first=layer.batch_first) if answer is None else answer

    handle = layer.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def _read_out(layer: Layer, hidden: Tensor) -> Tensor:
    """Return the output of the last layer's state, (sequence, feature)."""
    if not isinstance(layer, RecurrentLayer):
        return hidden
    cell = layer.cells[-1]
    assert isinstance(cell, Cell)
    return cell.read_out(hidden)


def _copies(values: Tensor, axis: int, count: int) -> Tensor:
    return values.repeat_interleave(count, axis)


def _each(state: Any, change: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(change(part) for part in state)
    return None if state is None else change(state)


def _at(dt: Any, t: int, axis: int, count: int) -> Any:
    """Return the gap before reading t of every sequence, or the number that holds for all."""
    if not isinstance(dt, Tensor) or dt.ndim == 0:
        return dt
    if dt.ndim == 1:
        return dt[t : t + 1]
    return _copies(dt.narrow(axis, t, 1), 1 - axis, count)
