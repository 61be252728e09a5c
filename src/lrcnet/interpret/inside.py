"""Measurements for the page about the inside of a model: answers, states and gates over time, and ablated answers.

Axes: T readings of a sequence, m hidden units, C classes (or numbers of an answer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lrcnet.interpret.layer_calls import compute_output, find_recurrent_layer
from lrcnet.interpret.trace import trace

Floats = NDArray[np.float64]

QUANTITIES = ("state", "forget", "update", "elastance", "time_constant")
PREFIXES = 24
"""Number of moments at which the answer of a model that answers once per sequence is shown."""
BATCH = 128


class Example(NamedTuple):
    """One sequence: x (1, T, ...), dt (1, T) or a number or None, and its label: one, one per reading (T,), or None."""

    x: Tensor
    dt: Any
    label: Tensor | None


@dataclass(frozen=True)
class Answers:
    """Answers of a model over one sequence.

    Attributes:
        readings: number of readings after which each answer is given, (answer,).
        values: probabilities, or numbers of a regression, (answer, C).
        ablated: the same with one neuron held at its mean on its way to the read-out, (m, answer, C).
    """

    readings: NDArray[np.int64]
    values: Floats
    ablated: Floats


@dataclass(frozen=True)
class Score:
    """How often a classifier is right.

    Attributes:
        accuracy: share of right answers.
        majority: share of the most frequent class among the true labels.
        majority_class: that class.
        single: whether the classifier gives the same answer everywhere.
        count: number of answers.
    """

    accuracy: float
    majority: float
    majority_class: int
    single: bool
    count: int


def class_probabilities(output: Tensor) -> Tensor:
    """Return probabilities (..., C) of logits (..., C), of one logit of two classes (..., 1), or of probabilities."""
    if output.shape[-1] == 1:
        positive = output.sigmoid()
        return torch.cat([1 - positive, positive], -1)
    already = bool((output >= 0).all()) and torch.allclose(output.sum(-1), output.new_ones(()), atol=1e-4)
    return output if already else output.softmax(-1)


@torch.no_grad()
def score(model: nn.Module, examples: Sequence[Example]) -> Score | None:
    """Compare the answers of a classifier with the labels; None without labels."""
    pairs: list[tuple[Tensor, Tensor]] = []
    for batch in _batches(examples):
        labels = [one.label for one in batch]
        if any(label is None for label in labels):
            return None
        dt = batch[0].dt
        whole = torch.cat([one.dt for one in batch]) if isinstance(dt, Tensor) and dt.ndim > 0 else dt
        answer = class_probabilities(compute_output(model, torch.cat([one.x for one in batch]), whole)).argmax(-1)
        truth = torch.stack([label for label in labels if label is not None])
        # One label for a model that answers after every reading is the label of its last answer.
        pairs.append((answer[:, -1] if answer.ndim > truth.ndim else answer, truth))
    predicted, truth = (torch.cat([pair[k].flatten() for pair in pairs]) for k in (0, 1))
    counts = torch.bincount(truth)
    return Score(
        accuracy=float((predicted == truth).double().mean()),
        majority=float(counts.max() / counts.sum()),
        majority_class=int(counts.argmax()),
        single=bool((predicted == predicted[0]).all()),
        count=len(truth),
    )


def _batches(examples: Sequence[Example]) -> Iterator[list[Example]]:
    """Yield examples of equal length together."""
    by_length: dict[int, list[Example]] = {}
    for one in examples:
        by_length.setdefault(one.x.shape[1], []).append(one)
    for group in by_length.values():
        for k in range(0, len(group), BATCH):
            yield group[k : k + BATCH]


def quantities(model: nn.Module, one: Example) -> dict[str, Floats]:
    """Return states, gates and time constants of a model's units over one sequence, each (T, m)."""
    recorded = trace(model, one.x, one.dt).by_name()
    if recorded["state"].shape[0] != 1:
        raise ValueError(
            "the model must take (sequence, time, channels), but its recurrent layer takes time first; "
            "wrap it, or make it with batch_first=True"
        )
    return {name: recorded[name][0].double().numpy() for name in QUANTITIES if name in recorded}


@torch.no_grad()
def answers(model: nn.Module, one: Example, means: Tensor, *, classes: bool) -> Answers:
    """Return the answers of a model over one sequence, also with each neuron ablated.

    Args:
        model: the model.
        one: the sequence.
        means: mean state of each neuron, (m,).
        classes: whether the answers are classes, shown as probabilities.
    """
    length, units = one.x.shape[1], len(means)
    copies = one.x.expand(units, *one.x.shape[1:])

    def run(count: int) -> tuple[Tensor, Tensor]:
        dt = one.dt[:, :count] if isinstance(one.dt, Tensor) and one.dt.ndim > 1 else one.dt
        plain = compute_output(model, one.x[:, :count], dt)
        many = dt.expand(units, -1) if isinstance(dt, Tensor) and dt.ndim > 1 else dt
        with _ablated(find_recurrent_layer(model), means):
            changed = compute_output(model, copies[:, :count], many)
        return plain, changed

    def finish(output: Tensor) -> Tensor:
        return class_probabilities(output) if classes else output

    plain, changed = run(length)
    per_reading = plain.ndim == 3 or (plain.ndim == 2 and plain.shape[1] == length and not classes)
    if per_reading:
        plain, changed = (part if part.ndim == 3 else part.unsqueeze(-1) for part in (plain, changed))
        readings = np.arange(1, length + 1)
        return Answers(readings, finish(plain)[0].double().numpy(), finish(changed).double().numpy())
    # The answer after n readings is the answer to a sequence that ends there.
    readings = np.unique(np.linspace(1, length, min(PREFIXES, length)).round().astype(np.int64))
    parts = [run(int(count)) for count in readings[:-1]] + [(plain, changed)]
    values = torch.cat([finish(part[0]) for part in parts])
    ablated = torch.stack([finish(part[1]) for part in parts], 1)
    return Answers(readings, values.double().numpy(), ablated.double().numpy())


@contextmanager
def _ablated(layer: nn.Module, means: Tensor) -> Iterator[None]:
    """Hold neuron k of the k-th sequence of a batch at its mean wherever the layer's output or last state is read."""
    units = torch.arange(len(means))
    batch_first = bool(getattr(layer, "batch_first", False))

    def hold(values: Tensor, batch: int) -> Tensor:
        changed = values.clone()
        view = changed.movedim(batch, 0)
        view[units, ..., units] = means.to(values).reshape(-1, *[1] * (view.ndim - 2)).expand(view.shape[:-1])
        return changed

    def after(_: nn.Module, __: Any, answer: tuple[Tensor, Any]) -> tuple[Tensor, Any]:
        output, state = answer
        hidden = state[0] if isinstance(state, tuple) else state
        if isinstance(hidden, Tensor) and hidden.ndim == 3:
            hidden = torch.cat([hidden[:-1], hold(hidden[-1:], 1)])
            state = (hidden, *state[1:]) if isinstance(state, tuple) else hidden
        return hold(output, 0 if batch_first else 1), state

    handle = layer.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def order_by_similarity(states: Floats) -> list[int]:
    """Return the neurons ordered so that similar ones are neighbours: by the angle of their first two components.

    Args:
        states: states of all neurons over many readings, (reading, m).
    """
    centred = states - states.mean(0)
    spread = np.linalg.norm(centred, axis=0)
    columns = centred / np.where(spread > 0, spread, 1.0)
    values, vectors = np.linalg.eigh(columns.T @ columns)
    loadings = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0))
    if loadings.shape[1] < 2:
        return list(range(states.shape[1]))
    order: list[int] = np.argsort(np.arctan2(loadings[:, 1], loadings[:, 0]), kind="stable").tolist()
    return order
