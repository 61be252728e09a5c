"""Measurements for the page about the inside of a model: answers, states and gates over time, and ablated answers.

Axes: T readings of a sequence, m hidden units, C classes (or numbers of an answer).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lrcnet.interpret.ablation import answering, can_hold, hold_neurons
from lrcnet.interpret.layer_calls import compute_output, find_recurrent_layer, only_call, record_calls
from lrcnet.interpret.trace import trace

Floats = NDArray[np.float64]

QUANTITIES = ("state", "forget", "update", "elastance", "time_constant")
PREFIXES = 24
"""Number of moments at which the answer of a model that answers once per sequence is shown."""
BATCH = 128


class Example(NamedTuple):
    """One sequence.

    Attributes:
        x: (1, T, ...).
        dt: (1, T), a number, or None.
        label: its class, one class per reading (T,), or None.
        target: the true numbers of a model that answers with one number per reading, (T,), or None.
    """

    x: Tensor
    dt: Any
    label: Tensor | None
    target: Tensor | None = None


@dataclass(frozen=True)
class Answers:
    """Answers of a model over one sequence.

    Attributes:
        readings: number of readings after which each answer is given, (answer,).
        values: probabilities, or numbers of a regression, (answer, C).
        ablated: the same with one neuron held at its resting value, (m, answer, C); see `lrcnet.interpret.ablation`.
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
def answers(model: nn.Module, one: Example, rest: Tensor, *, classes: bool) -> Answers:
    """Return the answers of a model over one sequence, also with each neuron ablated.

    Args:
        model: the model.
        one: the sequence.
        rest: resting value of each neuron, (m,), at which it is held while it is ablated.
        classes: whether the answers are classes, shown as probabilities.
    """
    length, layer = one.x.shape[1], find_recurrent_layer(model)
    copies = one.x.expand(len(rest), *one.x.shape[1:])

    def gaps(count: int) -> Any:
        return one.dt[:, :count] if isinstance(one.dt, Tensor) and one.dt.ndim > 1 else one.dt

    def finish(output: Tensor) -> Tensor:
        output = class_probabilities(output) if classes else output
        return output.unsqueeze(-1) if per_reading and output.ndim == 2 else output

    with record_calls(layer) as calls:
        whole = compute_output(model, one.x, one.dt)
    per_reading = whole.ndim == 3 or (whole.ndim == 2 and whole.shape[1] == length and not classes)
    # Where a model answers once per sequence, the answer after n readings is the answer to a sequence that ends there.
    spaced = np.unique(np.linspace(1, length, min(PREFIXES, length)).round().astype(np.int64))
    moments = [length] if per_reading else spaced.tolist()
    held = hold_neurons(layer, only_call(calls), rest, moments) if can_hold(layer) else {}
    plain, changed = [], []
    for count in moments:
        plain.append(finish(whole if count == length else compute_output(model, one.x[:, :count], gaps(count))))
        dt = gaps(count)
        many = dt.expand(len(rest), -1) if isinstance(dt, Tensor) and dt.ndim > 1 else dt
        with answering(layer, held.get(count), rest):
            changed.append(finish(compute_output(model, copies[:, :count], many)))
    if per_reading:
        return Answers(np.arange(1, length + 1), plain[0][0].double().numpy(), changed[0].double().numpy())
    return Answers(spaced, torch.cat(plain).double().numpy(), torch.stack(changed, 1).double().numpy())


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
