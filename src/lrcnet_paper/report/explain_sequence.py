"""The sections of a page about a network that labels sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Section, Table
from lrcnet_paper.results.provenance import Provenance, format_provenance

if TYPE_CHECKING:
    from lrcnet.interpret import Trace
    from lrcnet_paper.training.trained_network import TrainedNetwork

SAMPLES = {"person": 1942, "psmnist": 64, "imdb": 64}
"""Sequences of the test split to look at: all of the short ones, some of the long ones."""
SHOWN = 10
# What is looked at most closely: of the labels the one that somebody would want explained.
EVENTS = {"person": 4}
SENSORS = {"person": ("left ankle's tag", "right ankle's tag", "chest's tag", "belt's tag", "x", "y", "z")}


def labels_of(task: str, outputs: int) -> tuple[str, ...]:
    """Names of a task's labels."""
    if task == "person":
        from lrcnet_paper.tasks.person_files import CLASSES

        return CLASSES
    if task == "imdb":
        return ("a positive review",)
    return tuple(f"digit {k}" if task == "psmnist" else f"label {k}" for k in range(outputs))


def sections(trained: TrainedNetwork, came_from: Provenance, data: str | None, samples: int | None) -> list[Section]:
    """Traces, shares of inputs and neurons in each label, and what marks the label of interest."""
    from lrcnet.interpret import trace

    task, network = trained.task, trained.network
    split = task.load("test", data).spread(samples or SAMPLES.get(task.name, 64))
    x, dt, y = split[slice(None)]
    labels = labels_of(task.name, task.output_size)
    event = EVENTS.get(task.name, 0)
    found = trace(network, x, dt)
    names = SENSORS.get(task.name)
    here = _moments(y, event, found, single=len(labels) == 1)
    return [
        _trace(found, here, labels[event], came_from),
        _shares(trained, (x, dt, y), labels, names, came_from),
        _marks(found, here, labels[event], came_from, timed=dt is not None),
    ]


def _moments(y: Tensor, event: int, found: Trace, *, single: bool) -> Tensor:
    """(sample, step), bool: where the label of interest holds; of a label per sequence, at all its steps."""
    holds = (y > 0.5) if single else (y == event)
    holds = holds.reshape(len(y), -1)
    return holds.expand(found.state.shape[:2])


def _trace(found: Trace, here: Tensor, label: str, came_from: Provenance) -> Section:
    from lrcnet.interpret import heat_map

    # A sequence in which the label begins or ends shows it best.
    share = here.float().mean(1)
    sample = int((share * (1 - share) + 1e-3 * share).argmax())
    with palette.figure_style():
        figure = heat_map(
            found,
            sample=sample,
            events=here[sample],
            event=label,
            title=f"test sequence {sample + 1}",
            note=format_provenance(came_from),
        )
    return Section(
        "trace",
        "What its units do over time",
        [
            Picture(
                "units",
                "States, gates and effective time constants of all units over one test sequence; the bar is where "
                f"the label is “{label}”.",
                "One panel per quantity: neurons down, time across, coloured by value.",
                figure,
            )
        ],
    )


def _score(label: int, y: Tensor) -> Callable[[Tensor], Tensor]:
    """From logits to one number per sample: the label's logit, at the steps that have it where steps have labels."""

    def score(logits: Tensor) -> Tensor:
        if logits.ndim == 2:
            return logits[:, label]
        steps = (y == label).to(logits.dtype)
        return (logits[..., label] * steps).sum(1) / steps.sum(1)

    return score


def _shares(
    trained: TrainedNetwork,
    batch: tuple[Tensor, Tensor | None, Tensor],
    labels: Sequence[str],
    names: Sequence[str] | None,
    came_from: Provenance,
) -> Section:
    from lrcnet.interpret import rank, shares

    x, dt, y = batch
    inputs: dict[str, Tensor] = {}
    neurons: list[tuple[Cell, ...]] = []
    for k, label in enumerate(labels):
        # One logit has no label of its own to be looked for: every sequence has its share in it.
        with_it = torch.ones(len(y), dtype=torch.bool) if len(labels) == 1 else (y == k).reshape(len(y), -1).any(1)
        if not bool(with_it.any()):
            continue
        found = shares(trained.network, x[with_it], _score(k, y[with_it]), None if dt is None else dt[with_it])
        inputs[label] = found.inputs
        best = rank(found.neurons)[:5]
        neurons.append((label, *(f"{name} ({100 * part:.0f} %)" for name, part in best), *[None] * (5 - len(best))))
    told_names = list(names or [])
    width = len(next(iter(inputs.values()))) if inputs else 0
    if len(told_names) + 1 == width:
        told_names.append("elapsed time")  # fed as one more input
    if len(told_names) != width:
        told_names = [f"input {i + 1}" for i in range(width)]
    order = sorted(range(width), key=lambda i: -max(float(parts[i]) for parts in inputs.values()))[:SHOWN]
    return Section(
        "shares",
        "What its answers are made of",
        [
            Table(
                "inputs",
                "Share of each input in the logit of each label (%)",
                ("input", *inputs),
                [(told_names[i], *(100 * float(parts[i]) for parts in inputs.values())) for i in order],
                "A share is the part of the logit, to first order, that would be lost if the input stood still at "
                f"its mean; columns add up to 100 over all {width} inputs. {format_provenance(came_from)}.",
            ),
            Table(
                "neurons",
                "Neurons with the largest share in each label's logit",
                ("label", "first", "second", "third", "fourth", "fifth"),
                neurons,
            ),
        ],
    )


def _marks(found: Trace, here: Tensor, label: str, came_from: Provenance, *, timed: bool) -> Section:
    from lrcnet.interpret import marks, rank

    title = f"Which neurons mark “{label}”"
    event = here.flatten()
    if not bool(event.any()) or bool(event.all()):
        return Section("marks", title, [f"Not shown: {title}: the label holds nowhere, or everywhere."])
    quantities = {name: values.flatten(0, 1) for name, values in found.named().items()}
    rows: list[tuple[Cell, ...]] = []
    for name, values in quantities.items():
        best = rank(marks(values, event))[:5]
        rows.append((name.replace("_", " "), *(f"{n} ({r:+.2f})" for n, r in best), *[None] * (5 - len(best))))
    made = [
        Table(
            "marks",
            f"Neurons whose values tell “{label}” from everything else best",
            ("quantity", "first", "second", "third", "fourth", "fifth"),
            rows,
            "In brackets the rank-biserial correlation: +1 if the value is always larger there, -1 if always smaller, "
            f"0 if it tells nothing. {format_provenance(came_from)}.",
        )
    ]
    if "time_constant" in quantities:
        made.append(_time_constants(quantities["time_constant"], event, label, "time units" if timed else "steps"))
    return Section("marks", title, made)


def _time_constants(values: Tensor, event: Tensor, label: str, unit: str) -> Table:
    from lrcnet.interpret import marks, rank

    rows: list[tuple[Cell, ...]] = []
    for name, r in rank(marks(values, event))[:SHOWN]:
        column = values[:, int(name) - 1]
        inside, outside = float(column[event].median()), float(column[~event].median())
        rows.append((name, inside, outside, "slower" if inside > outside else "faster", r))
    return Table(
        "time-constants",
        f"Effective time constants ({unit}) that mark “{label}”: medians there and elsewhere",
        ("neuron", "there", "elsewhere", "there it is", "rank-biserial correlation"),
        rows,
        "A neuron with a long time constant holds what it has; one with a short one takes up what comes.",
    )
