"""Which inputs and which neurons an output is made of, and which neurons mark an event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.interpret.watch import answer_of, only, recurrent_layer_of, watched


@dataclass(frozen=True)
class Shares:
    """Parts in an output.

    Attributes:
        inputs: of the recurrent layer's inputs, (n,), of sum 1.
        neurons: of its outputs, (m,) or (2 m,) of a bidirectional one, of sum 1.
    """

    inputs: Tensor
    neurons: Tensor


def shares(model: nn.Module, x: Tensor, output: Callable[[Tensor], Tensor], dt: Any = None) -> Shares:
    """How much of an output comes from each input and from each neuron of the recurrent layer.

    The part of a channel v in a sample is |sum over time of (d output / d v_t) (v_t - mean of v)|: what the output
    would lose, to first order, if the channel stood still at its mean over the batch. Parts are averaged over samples
    and divided by their sum. For a linear read-out the neurons' are exact.

    Args:
        model: with one recurrent layer, as `trace` takes it.
        x: (sample, ...), as the model takes it.
        output: from the model's output to one number per sample, e.g. `lambda logits: logits[:, -1, 4]`.
        dt: as the model takes it.

    Raises:
        ValueError: if `output` gives something else, or the output depends on nothing.

    Example:
        >>> layer = lrcnet.LRCU(3, 5, batch_first=True)
        >>> found = shares(layer, torch.randn(8, 7, 3), lambda out: out[:, -1, 0])
        >>> found.neurons
        tensor([1., 0., 0., 0., 0.])
    """
    layer = recurrent_layer_of(model)
    with torch.enable_grad(), watched(layer, lambda features: features.detach().requires_grad_()) as calls:
        score = output(answer_of(model, x, dt))
        call = only(calls)
        if score.ndim != 1:
            raise ValueError(f"output must give one number per sample, (sample,), but gave {tuple(score.shape)}")
        assert call.output is not None
        by_input, by_neuron = torch.autograd.grad(score.sum(), [call.x, call.output])
    axis = 0 if call.x.ndim == 2 or not getattr(layer, "batch_first", False) else 1
    return Shares(_parts(call.x.detach(), by_input, axis), _parts(call.output.detach(), by_neuron, axis))


def _parts(values: Tensor, gradient: Tensor, time: int) -> Tensor:
    mean = values.flatten(0, -2).mean(0)
    parts = (gradient * (values - mean)).sum(time).abs()
    parts = parts.mean(0) if parts.ndim == 2 else parts
    total = parts.sum()
    if not total > 0:
        raise ValueError("the output must depend on the recurrent layer's inputs and neurons, but depends on none")
    return parts / total


def ranked(parts: Tensor, names: Sequence[str] | None = None) -> list[tuple[str, float]]:
    """Names and numbers, the largest absolute number first; neurons and inputs are counted from 1.

    Example:
        >>> ranked(torch.tensor([0.25, 0.75]), ["x", "y"])
        [('y', 0.75), ('x', 0.25)]
    """
    labels = [str(i + 1) for i in range(len(parts))] if names is None else list(names)
    if len(labels) != len(parts):
        raise ValueError(f"there must be a name for each of {len(parts)} parts, but there are {len(labels)}")
    order = sorted(range(len(parts)), key=lambda i: -abs(float(parts[i])))
    return [(labels[i], float(parts[i])) for i in order]


def marks(values: Tensor, event: Tensor) -> Tensor:
    """How well each neuron's value tells an event from everything else.

    Args:
        values: (moment, neuron).
        event: (moment,), bool.

    Returns:
        (neuron,): the rank-biserial correlation, that is the chance that a moment of the event has the larger value
        less the chance that it has the smaller one: 1 or -1 if values never overlap, 0 if they tell nothing.

    Raises:
        ValueError: if there is no moment of the event, or none without it.

    Example:
        >>> marks(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([False, False, True]))
        tensor([1.])
    """
    inside = int(event.sum())
    outside = len(event) - inside
    if not inside or not outside:
        raise ValueError(
            f"the event must happen at some moments and not at others, but does at {inside} of {len(event)}"
        )
    found = []
    for column in values.double().unbind(1):
        # Equal values share the mean of their ranks.
        _, back, counts = torch.unique(column, return_inverse=True, return_counts=True)
        last = counts.cumsum(0).double()
        ranks = (last - (counts - 1) / 2)[back]
        larger = ranks[event].sum() - inside * (inside + 1) / 2
        found.append(2 * larger / (inside * outside) - 1)
    return torch.stack(found).to(values.dtype)
