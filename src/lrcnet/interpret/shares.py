"""Shares of inputs and neurons in an output, and the neurons whose values mark an event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.errors import check_kind, describe_kind
from lrcnet.interpret.layer_calls import compute_output, find_recurrent_layer, only_call, record_calls


@dataclass(frozen=True)
class Shares:
    """Shares in an output; each tensor sums to 1.

    Attributes:
        inputs: one share per input of the recurrent layer, (n,).
        neurons: one share per output of the recurrent layer, (m,), or (2 m,) if it is bidirectional.
    """

    inputs: Tensor
    neurons: Tensor


def shares(model: nn.Module, x: Tensor, output: Callable[[Tensor], Tensor], dt: Any = None) -> Shares:
    """Compute how much of an output comes from each input and from each neuron of the recurrent layer.

    The part of a channel v in a sample is |sum over time of (d output / d v_t) (v_t - mean of v)|: the output would
    lose that much, to first order, if the channel stayed at its mean over the batch. Parts are averaged over samples
    and divided by their sum. For a linear read-out the shares of the neurons are exact.

    Args:
        model: a model with one recurrent layer, as for `trace`.
        x: (sample, ...), as the model takes it.
        output: maps the model's output to one number per sample, e.g. `lambda logits: logits[:, -1, 4]`.
        dt: as the model takes it.

    Raises:
        ValueError: if `output` does not return one number per sample, or the output depends on no input or neuron.

    Example:
        >>> layer = lrcnet.LRCU(3, 5, batch_first=True)
        >>> parts = shares(layer, torch.randn(8, 7, 3), lambda out: out[:, -1, 0])
        >>> parts.neurons
        tensor([1., 0., 0., 0., 0.])
    """
    check_kind("x", x, Tensor, "a tensor")
    if not callable(output):
        raise TypeError(f"output must be a function of the model's output, but is {describe_kind(output)}; pass one")
    layer = find_recurrent_layer(model)
    with torch.enable_grad(), record_calls(layer, lambda features: features.detach().requires_grad_()) as calls:
        score = output(compute_output(model, x, dt))
        call = only_call(calls)
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


def rank(parts: Tensor, names: Sequence[str] | None = None) -> list[tuple[str, float]]:
    """Sort numbers by their absolute value, the largest first, and return (name, number) pairs.

    Args:
        parts: (n,), for example shares or marks.
        names: one per number; None counts from 1.

    Example:
        >>> rank(torch.tensor([0.25, 0.75]), ["x", "y"])
        [('y', 0.75), ('x', 0.25)]
    """
    check_kind("parts", parts, Tensor, "a tensor of 1 dimension")
    if parts.dim() != 1 or parts.is_complex():
        raise ValueError(
            f"parts must be real and have 1 dimension, but are {parts.dtype} with {parts.dim()}; flatten them"
        )
    check_kind("names", names, (Sequence, type(None)), "a sequence of names")
    labels = [str(i + 1) for i in range(len(parts))] if names is None else list(names)
    if len(labels) != len(parts):
        raise ValueError(f"there must be a name for each of {len(parts)} parts, but there are {len(labels)}")
    order = sorted(range(len(parts)), key=lambda i: -abs(float(parts[i])))
    return [(labels[i], float(parts[i])) for i in order]


def marks(values: Tensor, event: Tensor) -> Tensor:
    """Compute how well the value of each neuron separates an event from everything else.

    Args:
        values: (moment, neuron).
        event: (moment,), bool.

    Returns:
        (neuron,): the rank-biserial correlation, that is the probability that a moment of the event has the larger
        value minus the probability that it has the smaller one. It is 1 or -1 if the values never overlap, and 0 if
        they do not separate the event at all.

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
    correlations = []
    for column in values.double().unbind(1):
        # Equal values share the mean of their ranks.
        _, inverse, counts = torch.unique(column, return_inverse=True, return_counts=True)
        last = counts.cumsum(0).double()
        ranks = (last - (counts - 1) / 2)[inverse]
        larger = ranks[event].sum() - inside * (inside + 1) / 2
        correlations.append(2 * larger / (inside * outside) - 1)
    return torch.stack(correlations).to(values.dtype)
