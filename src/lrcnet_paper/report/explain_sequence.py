"""The sections of a page about a network that labels sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lrcnet.interpret import heat_map, marks, rank, shares, trace
from lrcnet.interpret.page import View, split_examples
from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Section, Table
from lrcnet_paper.results.provenance import Provenance, format_provenance

if TYPE_CHECKING:
    from lrcnet.interpret import Trace
    from lrcnet_paper.training.trained_network import TrainedNetwork

SAMPLES = {"person": 1942, "psmnist": 64, "imdb": 64}
"""Number of test sequences to measure on: all of the short ones, some of the long ones."""
ROWS = 10
PLACES = ("first", "second", "third", "fourth", "fifth")
EVENTS = {"person": 4}
"""The label of each task that the page looks at most closely: falling."""
SENSORS = {"person": ("left ankle's tag", "right ankle's tag", "chest's tag", "belt's tag", "x", "y", "z")}


def label_names(task: str, outputs: int) -> tuple[str, ...]:
    """Return the names of a task's labels."""
    if task == "person":
        from lrcnet_paper.tasks.person_files import CLASSES

        return CLASSES
    if task == "imdb":
        return ("a positive review",)
    return tuple(f"digit {k}" if task == "psmnist" else f"label {k}" for k in range(outputs))


def view(trained: TrainedNetwork, data: str | None, samples: int | None) -> View:
    """Return the network and test sequences for the interactive part of the page."""
    task = trained.task
    split = task.load("test", data).evenly_spaced(samples or SAMPLES.get(task.name, 64))
    x, dt, y = split[slice(None)]
    names = label_names(task.name, task.output_size)
    # A single logit tells its label from everything else.
    classes = ["anything else", *names] if len(names) == 1 else list(names)
    labels = y.reshape(len(y), -1) if y.ndim > 1 else y
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    model = palette.model_label(trained.spec.model)
    return View(trained.network.eval(), split_examples(x, dt, labels), classes, model)


def sections(trained: TrainedNetwork, provenance: Provenance, data: str | None, samples: int | None) -> list[Section]:
    """Return a trace, the shares of inputs and neurons in each label, and the neurons that mark one label."""
    task, network = trained.task, trained.network
    split = task.load("test", data).evenly_spaced(samples or SAMPLES.get(task.name, 64))
    x, dt, y = split[slice(None)]
    labels = label_names(task.name, task.output_size)
    event = EVENTS.get(task.name, 0)
    recorded = trace(network, x, dt)
    events = _steps_with_label(y, event, recorded, single=len(labels) == 1)
    weights = format_provenance(provenance)
    return [
        _trace(recorded, events, labels[event], weights),
        _shares(trained, (x, dt, y), labels, weights),
        _marks(recorded, events, labels[event], weights, timed=dt is not None),
    ]


def _steps_with_label(y: Tensor, label: int, recorded: Trace, *, single: bool) -> Tensor:
    """Return (sample, step), bool: the steps with a label; if a sequence has one label, all of its steps have it."""
    holds = (y > 0.5) if single else (y == label)
    holds = holds.reshape(len(y), -1)
    return holds.expand(recorded.state.shape[:2])


def _trace(recorded: Trace, events: Tensor, label: str, weights: str) -> Section:
    # A sequence in which the label begins or ends shows it best.
    share = events.float().mean(1)
    sample = int((share * (1 - share) + 1e-3 * share).argmax())
    figure = heat_map(
        recorded,
        sample=sample,
        events=events[sample],
        event=label,
        title=f"test sequence {sample + 1}",
        note=weights,
    )
    picture = Picture(
        "units",
        "States, gates and effective time constants of all units over one test sequence; the bar marks the steps "
        f"whose label is “{label}”.",
        "One panel per quantity, with neurons from top to bottom and time from left to right, coloured by value.",
        figure,
    )
    return Section("trace", "What its units do over time", [picture])


def _score(label: int, y: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function from logits to one number per sample: the label's logit.

    If each step has a label, the logit is averaged over the steps with this label.
    """

    def score(logits: Tensor) -> Tensor:
        if logits.ndim == 2:
            return logits[:, label]
        steps = (y == label).to(logits.dtype)
        return (logits[..., label] * steps).sum(1) / steps.sum(1)

    return score


def _shares(
    trained: TrainedNetwork, batch: tuple[Tensor, Tensor | None, Tensor], labels: Sequence[str], weights: str
) -> Section:
    x, dt, y = batch
    inputs: dict[str, Tensor] = {}
    neurons: list[tuple[Cell, ...]] = []
    for k, label in enumerate(labels):
        # A single logit belongs to every sequence; of several, each is explained on the sequences that have its label.
        chosen = torch.ones(len(y), dtype=torch.bool) if len(labels) == 1 else (y == k).reshape(len(y), -1).any(1)
        if not bool(chosen.any()):
            continue
        parts = shares(trained.network, x[chosen], _score(k, y[chosen]), None if dt is None else dt[chosen])
        inputs[label] = parts.inputs
        neurons.append((label, *_best(parts.neurons, lambda name, part: f"{name} ({100 * part:.0f} %)")))
    return Section(
        "shares",
        "What its answers are made of",
        [
            _input_table(inputs, SENSORS.get(trained.task.name, ()), weights),
            Table("neurons", "Neurons with the largest share in each label's logit", ("label", *PLACES), neurons),
        ],
    )


def _input_table(inputs: Mapping[str, Tensor], sensors: Sequence[str], weights: str) -> Table:
    count = len(next(iter(inputs.values()))) if inputs else 0
    names = list(sensors)
    if len(names) + 1 == count:
        names.append("elapsed time")  # a model with `time_feature` takes it as one more input
    if len(names) != count:
        names = [f"input {i + 1}" for i in range(count)]
    order = sorted(range(count), key=lambda i: -max(float(parts[i]) for parts in inputs.values()))[:ROWS]
    return Table(
        "inputs",
        "Share of each input in the logit of each label (%)",
        ("input", *inputs),
        [(names[i], *(100 * float(parts[i]) for parts in inputs.values())) for i in order],
        "The share of an input is the part of the logit, to first order, that would be lost if the input stayed at its "
        f"mean; each column adds up to 100 over all {count} inputs. Weights: {weights}.",
    )


def _marks(recorded: Trace, events: Tensor, label: str, weights: str, *, timed: bool) -> Section:
    title = f"Which neurons mark “{label}”"
    event = events.flatten()
    if not bool(event.any()) or bool(event.all()):
        return Section("marks", title, [f"Not shown: {title}: no step has the label, or every step has it."])
    quantities = {name: values.flatten(0, 1) for name, values in recorded.by_name().items()}
    rows: list[tuple[Cell, ...]] = [
        (name.replace("_", " "), *_best(marks(values, event), lambda neuron, r: f"{neuron} ({r:+.2f})"))
        for name, values in quantities.items()
    ]
    tables = [
        Table(
            "marks",
            f"Neurons whose values best separate “{label}” from everything else",
            ("quantity", *PLACES),
            rows,
            "In brackets: the rank-biserial correlation, +1 if the value is always larger there, -1 if it is always "
            f"smaller, 0 if it does not separate the label at all. Weights: {weights}.",
        )
    ]
    if "time_constant" in quantities:
        tables.append(_time_constants(quantities["time_constant"], event, label, "time units" if timed else "steps"))
    return Section("marks", title, tables)


def _best(parts: Tensor, show: Callable[[str, float], str]) -> list[str | None]:
    """Return the largest parts as cells, as many as there are `PLACES`."""
    best = [show(name, part) for name, part in rank(parts)[: len(PLACES)]]
    return [*best, *[None] * (len(PLACES) - len(best))]


def _time_constants(values: Tensor, event: Tensor, label: str, unit: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, r in rank(marks(values, event))[:ROWS]:
        column = values[:, int(name) - 1]
        inside, outside = float(column[event].median()), float(column[~event].median())
        rows.append((name, inside, outside, "slower" if inside > outside else "faster", r))
    return Table(
        "time-constants",
        f"Effective time constants ({unit}) that mark “{label}”: medians there and elsewhere",
        ("neuron", "there", "elsewhere", "there it is", "rank-biserial correlation"),
        rows,
        "A neuron with a long time constant keeps its state; one with a short time constant follows its input.",
    )
