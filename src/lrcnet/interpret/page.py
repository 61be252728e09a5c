"""An interactive offline page about the inside of any sequence model: inputs, answers, gates, time constants."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lrcnet.errors import check_target, positive_size
from lrcnet.interpret.ablation import can_hold
from lrcnet.interpret.heat_map import LABELS
from lrcnet.interpret.inside import Answers, Example, Floats, Score, answers, order_by_similarity, quantities, score
from lrcnet.interpret.layer_calls import find_recurrent_layer
from lrcnet.pages import palette
from lrcnet.pages.html import write_page
from lrcnet.progress import track

SEQUENCES = 8
MOST_COLUMNS = 300
"""Longer sequences are shown at this many evenly spaced readings."""
MOST_ABLATED = 100
"""Number of answers per sequence of which the ablated versions are stored."""
MOST_CHANNELS, MOST_ANSWERS = 10, 12


class View(NamedTuple):
    """A model and the sequences to show it on.

    Attributes:
        network: the module, with one recurrent layer.
        examples: the sequences.
        classes: names of the classes; empty if they have none, or the answers are no classes.
        name: name of the model on the page; "" for that of its recurrent layer.
        outputs: names of answers that are no classes.
        target: name of the true numbers, if the examples have some.
    """

    network: nn.Module
    examples: list[Example]
    classes: list[str]
    name: str = ""
    outputs: tuple[str, ...] = ()
    target: str = ""


def page(
    model: Any,
    x: Any,
    dt: Any = None,
    labels: Any = None,
    *,
    path: str | os.PathLike[str] = "inside.html",
    beside: Any = None,
    classes: Sequence[str] | None = None,
    channels: Sequence[str] | None = None,
    sequences: int = SEQUENCES,
    title: str = "",
) -> Path:
    """Write an offline page about the inside of one or two sequence models.

    Input traces, labels and answers stand above states, gates and time constants on one axis. A slider chooses the
    sequence, neurons can be sorted by time constant or similarity, and a click on a neuron shows the answers with that
    neuron held at its resting value inside the recurrence.

    Args:
        model: a module with one recurrent layer, as for `trace`, called as model(x) or model(x, dt=dt), that gives one
            answer per sequence, (sequence, class), or per reading, (sequence, reading, class); or a fitted estimator of
            `lrcnet.estimators`.
        x: (sequence, reading, channel), as the model takes it; for an estimator, series as it takes them.
        dt: gaps, (sequence, reading), as the model takes them; for an estimator, the times of the readings.
        labels: true classes, (sequence,) or (sequence, reading): numbers from 0, or the classes of an estimator. None
            for a regression or if they are unknown.
        path: the HTML file.
        beside: a second model to show beside the first, on the same data.
        classes, channels: names of the classes and of the input channels.
        sequences: number of sequences to show; accuracy counts all of them.
        title: heading of the page; "" names the models.

    Returns:
        The file.

    Raises:
        ValueError: for a model without a recurrent layer or with several, or labels that do not fit x.

    Example:
        >>> model = lrcnet.models.Classifier(lrcnet.LRCU(3, 5, batch_first=True), 5, 2)
        >>> page(model, torch.randn(4, 9, 3), labels=torch.tensor([0, 1, 0, 1]), path="inside.html").name
        'inside.html'
    """
    target = check_target(path)
    views = [_read(one, x, dt, labels, classes) for one in ([model] if beside is None else [model, beside])]
    width = views[0].examples[0].x.shape[-1] if views[0].examples else 0
    if isinstance(model, nn.Module) and channels is not None and width and len(channels) != width:
        raise ValueError(f"channels must name each of the {width} channels, but has {len(channels)} names")
    data = collect(views, channels=channels, sequences=sequences)
    heading = title or f"Inside {' and '.join(column['name'] for column in data['models'])}"
    return write_page(target, heading, body(heading, data), css=asset("inside.css"))


def collect(
    views: Sequence[View],
    *,
    channels: Sequence[str] | None = None,
    sequences: int = SEQUENCES,
    names: Sequence[str] = (),
    pictures: Sequence[str] = (),
    unit: str = "reading",
) -> dict[str, Any]:
    """Measure one or two models on the same sequences and return what the page's program reads.

    Args:
        views: the models; the first one's sequences are shown.
        channels: names of the input channels.
        sequences: number of sequences to show.
        names: name of each sequence; without them, its number.
        pictures: for each sequence, the data URL of a strip of pictures along its time axis; empty for none.
        unit: word for one reading.
    """
    examples = views[0].examples
    if not examples:
        raise ValueError("x must hold at least one sequence, but is empty; pass some")
    chosen = _place(examples, sequences)
    marks = ("", "") if len(views) == 1 else (" (A)", " (B)")
    return {
        "models": [_measure(view, chosen, mark) for view, mark in zip(views, marks, strict=False)],
        # Two models have one panel of inputs each if something before the recurrent layer makes them different.
        "inputs": [
            [_inputs(view.examples[i].x, channels) for i in chosen]
            for view in (views if not torch.equal(views[-1].examples[0].x, examples[0].x) else views[:1])
        ],
        "numbers": [i + 1 for i in chosen],
        "names": [names[i] if names else f"number {i + 1}" for i in chosen],
        "pictures": [pictures[i] for i in chosen] if pictures else [],
        "unit": unit,
        "lengths": [examples[i].x.shape[1] for i in chosen],
        "ramp": palette.SEQUENTIAL_SAMPLES,
        "colours": palette.CLASSES,
    }


FOOTER = "<footer><p class='soft'>Written by <code>lrcnet.interpret.page</code>.</p></footer>"


def body(heading: str, data: dict[str, Any], header: str = "", more: str = "", footer: str = FOOTER) -> str:
    """Return the body of the page.

    Args:
        heading: the heading.
        data: models, inputs and sequences, as the page's program reads them.
        header: HTML below the heading.
        more: HTML of sections after the interactive part.
        footer: HTML below everything.
    """
    # "</" would end the script element; JSON can spell "<" differently.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    names = "".join(
        f'<section class="model" aria-label="{escape(m["name"], quote=True)}"></section>' for m in data["models"]
    )
    last = len(data["numbers"]) - 1
    return (
        f"<header><h1>{escape(heading)}</h1>{header}{''.join(_verdict(m) for m in data['models'])}</header>"
        '<main id="inside"><noscript><p class="note">The panels need JavaScript.</p></noscript>'
        '<div class="controls"><label>Sequence <input type="range" id="sequence" min="0" value="0" '
        f'max="{last}"></label><output id="sequence-name" for="sequence"></output>'
        '<label>Sort neurons by <select id="order"><option value="number">number</option>'
        '<option value="time constant">time constant</option><option value="similarity">similarity</option></select>'
        "</label></div>"
        f'<p class="note">Point at a panel to read its values. {_ablation_note(data["models"])}</p>'
        f'<div class="models models-{len(data["models"])}">{names}</div>{more}</main>'
        f"{footer}"
        f'<script type="application/json" id="data">{text}</script>'
        f'<script>"use strict";(() => {{\n{asset("inside.js")}\n}})();</script>'
    )


def asset(name: str) -> str:
    """Return the text of a style sheet or program of the page."""
    return resources.files("lrcnet.pages").joinpath(name).read_text(encoding="utf-8")


def _ablation_note(models: Sequence[Mapping[str, Any]]) -> str:
    if not any(part["answers"] for model in models for part in model["sequences"]):
        return ""
    where = (
        "inside the recurrence, after every reading, so that the other neurons receive that value too"
        if all(model["recurrent"] for model in models)
        else "only where the read-out reads it, because a bidirectional layer cannot run reading by reading"
    )
    return (
        "Click a neuron to ablate it: the answers are then those of the network with this neuron held at its resting "
        f"value (its median over the sequences shown) {where}. Click it again to undo."
    )


def _verdict(column: dict[str, Any]) -> str:
    if not column["score"]:
        return ""
    warning = f'<p class="warning"><b>Warning.</b> {escape(column["warning"])}</p>' if column["warning"] else ""
    return f'<p class="score"><b>{escape(column["name"])}</b>: {escape(column["score"])}</p>{warning}'


def _read(model: Any, x: Any, dt: Any, labels: Any, classes: Sequence[str] | None) -> View:
    """Return a module or an estimator with its sequences one by one."""
    if isinstance(model, nn.Module):
        return View(model.eval(), split_examples(x, dt, labels), list(classes or ()))
    if not hasattr(model, "network_inputs"):
        raise TypeError(
            f"model must be a torch module or an estimator of lrcnet.estimators, but is a {type(model).__name__}"
        )
    inputs = model.network_inputs(x, dt)
    known = [str(name) for name in getattr(model, "classes_", ())]
    examples = []
    for i, length in enumerate(inputs.lengths.tolist()):
        code = None if labels is None or not known else _codes(model.classes_, labels[i])
        gap = None if inputs.dt is None else inputs.dt[i : i + 1, :length]
        examples.append(Example(inputs.x[i : i + 1, :length], gap, code))
    return View(model.module_.eval(), examples, list(classes or known))


def _codes(classes: Any, label: Any) -> Tensor:
    """Return the number of a label, or of each reading's label, among the classes of an estimator."""
    codes = np.searchsorted(classes, label).clip(max=len(classes) - 1)
    if not np.all(classes[codes] == label):
        raise ValueError(f"labels must be classes of the model, {list(classes)}, but one is not: {label}; correct it")
    return torch.as_tensor(codes)


def split_examples(x: Any, dt: Any, labels: Any) -> list[Example]:
    """Return the sequences of a batch one by one.

    Raises:
        ValueError: if x is no tensor, or the labels do not fit it.
    """
    if not isinstance(x, Tensor) or x.ndim < 2:
        raise ValueError(f"x must be a tensor (sequence, reading, channel), but is {type(x).__name__}; convert it")
    if not bool(x.isfinite().all()):
        raise ValueError("x must be finite, but holds NaN or an infinite value; fill in missing values first")
    truth = None if labels is None else torch.as_tensor(np.asarray(labels, np.float64))
    if truth is not None and not bool((truth == truth.long()).all()):
        raise ValueError("labels must be the numbers of classes, from 0, but one is no whole number; convert them")
    if truth is not None and (not 1 <= truth.ndim <= 2 or len(truth) != len(x)):
        raise ValueError(
            f"labels must be (sequence,) or (sequence, reading) for {len(x)} sequences, but have the shape "
            f"{tuple(truth.shape)}"
        )
    gaps = [dt[i : i + 1] if isinstance(dt, Tensor) and dt.ndim > 1 else dt for i in range(len(x))]
    codes = [None if truth is None else truth[i].long() for i in range(len(x))]
    return [Example(x[i : i + 1], gap, code) for i, (gap, code) in enumerate(zip(gaps, codes, strict=True))]


def _place(examples: Sequence[Example], count: int) -> list[int]:
    """Return the indices of evenly spaced sequences."""
    count = min(positive_size("sequences", count), len(examples))
    return [round(k * (len(examples) - 1) / max(count - 1, 1)) for k in range(count)]


def _measure(view: View, chosen: list[int], mark: str) -> dict[str, Any]:
    network, examples = view.network, view.examples
    layer = find_recurrent_layer(network)
    name = (view.name or type(layer).__name__) + mark
    labelled = examples[0].label is not None
    classifies = labelled or bool(view.classes)
    recorded = [quantities(network, examples[i]) for i in chosen]
    states = np.concatenate([one["state"] for one in recorded])
    rest = torch.from_numpy(np.median(states, 0))
    given: list[Answers | None] = [
        None if layer is network else answers(network, examples[i], rest, classes=classifies)
        for i in track(chosen, f"looking into {name}", unit="sequence")
    ]
    if given[0] is not None and not classifies and given[0].values.shape[1] > MOST_ANSWERS:
        given = [None] * len(given)
    count = given[0].values.shape[1] if given[0] is not None else 0
    word, named = ("class", view.classes) if classifies else ("output", list(view.outputs))
    largest = max((int(one.label.max()) for one in examples if one.label is not None), default=0)
    if count and classifies and (largest >= count or (named and len(named) != count)):
        raise ValueError(f"classes and labels must fit the model's {count} classes, but name others; correct them")
    names = named if len(named) == count else [f"{word} {k + (not classifies)}" for k in range(count)]
    result = score(network, examples) if labelled and given[0] is not None else None
    ranges = {key: _range(key, np.concatenate([one[key] for one in recorded])) for key in recorded[0]}
    return {
        "name": name,
        "units": states.shape[1],
        "classes": names,
        "probabilities": classifies,
        "recurrent": can_hold(layer),
        "target": view.target,
        "score": _score_text(result, names),
        "warning": _warning(result, names),
        "orders": _orders(recorded),
        "quantities": [{"key": key, "label": LABELS.get(key, key), **ranges[key]} for key in recorded[0]],
        "sequences": [
            {
                "panels": {key: _bytes(values, ranges[key]) for key, values in one.items()},
                "answers": _answers(answer),
                "truth": _truth(examples[i], answer),
                "target": _target(examples[i], answer),
            }
            for i, one, answer in zip(chosen, recorded, given, strict=True)
        ],
    }


def _orders(recorded: Sequence[Mapping[str, Floats]]) -> dict[str, list[int]]:
    """Return the orders in which neurons can be shown."""
    states = np.concatenate([one["state"] for one in recorded])
    orders = {"number": list(range(states.shape[1])), "similarity": order_by_similarity(states)}
    if "time_constant" in recorded[0]:
        constants = np.concatenate([one["time_constant"] for one in recorded])
        # A neuron that never forgets is the slowest.
        median = np.median(np.where(np.isfinite(constants), constants, np.finfo(np.float64).max), 0)
        orders["time constant"] = np.argsort(median, kind="stable").tolist()
    return orders


def _score_text(result: Score | None, classes: list[str]) -> str:
    if result is None:
        return ""
    return (
        f"accuracy {100 * result.accuracy:.1f} % of {result.count:,} answers; always answering "
        f"“{classes[result.majority_class]}” would give {100 * result.majority:.1f} %"
    )


def _warning(result: Score | None, classes: list[str]) -> str:
    if result is None or result.accuracy > result.majority:
        return ""
    if result.single:
        return "It gives the same answer everywhere: it has learned nothing but the most frequent class."
    return f"It is no better than always answering “{classes[result.majority_class]}”, the most frequent class."


def _range(key: str, values: Floats) -> dict[str, Any]:
    """Return the scale of a panel: the range that its colours cover, and whether it is logarithmic."""
    known = values[np.isfinite(values)]
    if key == "time_constant":
        known = np.log10(np.maximum(known, 1e-6))
    low, high = (float(v) for v in np.percentile(known, (1, 99))) if len(known) else (0.0, 1.0)
    return {"low": round(low, 5), "high": round(high if high > low else low + 1e-6, 5), "log": key == "time_constant"}


def _columns(length: int, most: int = MOST_COLUMNS) -> Any:
    return np.unique(np.linspace(0, length - 1, min(most, length)).round().astype(int))


def _bytes(values: Floats, scale: dict[str, Any]) -> dict[str, Any]:
    shown = values[_columns(len(values))]
    if scale["log"]:
        shown = np.log10(np.maximum(np.where(np.isfinite(shown), shown, 1e9), 1e-6))
    share = (shown - scale["low"]) / (scale["high"] - scale["low"])
    levels = (255 * share.clip(0, 1)).round().astype(np.uint8)
    return {"columns": len(shown), "levels": base64.b64encode(levels.tobytes()).decode()}


def _answers(given: Answers | None) -> dict[str, Any] | None:
    if given is None:
        return None
    shown = _columns(len(given.readings), MOST_ABLATED)
    # Four digits of the largest value are more than a picture can show; of ablated answers there are many.
    digits = max(1, 4 - int(np.ceil(np.log10(max(float(np.abs(given.values).max()), 1e-12)))))
    return {
        "readings": given.readings[shown].tolist(),
        "values": given.values[shown].round(digits).tolist(),
        "ablated": given.ablated[:, shown].round(digits - 1).tolist(),
    }


def _truth(one: Example, given: Answers | None) -> list[int] | None:
    if one.label is None or given is None:
        return None
    label = one.label.reshape(-1)
    shown = given.readings[_columns(len(given.readings), MOST_ABLATED)] - 1
    return [int(label[k if len(label) > 1 else 0]) for k in shown.tolist()]


def _target(one: Example, given: Answers | None) -> list[float] | None:
    if one.target is None or given is None:
        return None
    shown = given.readings[_columns(len(given.readings), MOST_ABLATED)] - 1
    return [float(f"{number:.4g}") for number in one.target.double().numpy()[shown].tolist()]


def _inputs(x: Tensor, channels: Sequence[str] | None) -> list[dict[str, Any]]:
    """Return the traces of the channels that vary most; none for pictures and words."""
    if x.ndim != 3 or not x.is_floating_point():
        return []
    values = x[0].detach().double().numpy()
    names = list(channels or ())
    names = names if len(names) == values.shape[1] else [f"input {k + 1}" for k in range(values.shape[1])]
    most = np.argsort(-np.nanstd(values, 0), kind="stable")[:MOST_CHANNELS]
    shown = values[_columns(len(values))]
    return [{"name": names[k], "values": np.nan_to_num(shown[:, k]).round(4).tolist()} for k in sorted(most.tolist())]
