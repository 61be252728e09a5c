"""A trace as a picture: one panel per quantity, neurons over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lrcnet.errors import check_kind, positive_size
from lrcnet.interpret.trace import Trace
from lrcnet.pages import palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Quantities between 0 and 1. The others (a state, an ODE's drive) have no fixed range and are drawn around 0.
_FROM_0_TO_1 = ("forget", "elastance", "reset", "output_gate")
LABELS = {
    "state": "state h",
    "forget": "forget gate",
    "update": "update gate",
    "elastance": "elastance",
    "time_constant": "time constant",
    "output_gate": "output gate",
}


def heat_map(
    trace: Trace,
    *,
    sample: int = 0,
    names: Sequence[str] = ("state", "forget", "update", "elastance", "time_constant"),
    order: Tensor | None = None,
    events: Tensor | None = None,
    event: str = "event",
    time_unit: str = "steps",
    title: str = "",
    note: str = "",
) -> Figure:
    """Draw neurons (down) over time (across), one panel with a colour bar for each quantity that the units have.

    Args:
        trace: the result of `trace` for a batch-first layer, or for one sequence.
        sample: index of the sample in the batch.
        names: quantities to draw, as `Trace.by_name` names them; those that the units do not have are skipped.
        order: neurons from top to bottom; None keeps their numbering.
        events: (time,), bool: steps to mark with a bar above each panel, labelled `event`.
        event: label of the events.
        time_unit: unit of the time constant.
        title, note: text above and below the figure.

    Returns:
        The figure, in the style of the project's pages.
    """
    from matplotlib.figure import Figure

    arrays = {name: values for name, values in trace.by_name().items() if name in _check_names(names)}
    if not arrays:
        raise ValueError(f"names must have one of {', '.join(trace.by_name())}, but has {', '.join(names)}; choose one")
    first = next(iter(arrays.values()))
    batch, (steps, units) = (first.shape[0] if first.ndim == 3 else 1), first.shape[-2:]
    if positive_size("sample", sample, least=0) >= batch:
        raise ValueError(f"sample must be from 0 to {batch - 1}, but is {sample}")
    order, events = _check_numbers("order", order, units), _check_numbers("events", events, steps)
    for what, text in (("title", title), ("note", note), ("event", event), ("time_unit", time_unit)):
        check_kind(what, text, str, "a text")
    with palette.figure_style():
        figure = Figure(figsize=(8.2, 1.55 * len(arrays) + 0.9), layout="constrained")
        panels = figure.subplots(len(arrays), 1, sharex=True, squeeze=False)[:, 0]
        for panel, (name, values) in zip(panels, arrays.items(), strict=True):
            picture = (values[sample] if values.ndim == 3 else values).detach().float()
            picture = picture if order is None else picture[:, order]
            _draw_panel(figure, panel, name, picture.T, time_unit)
            if events is not None:
                _draw_events(panel, events)
        panels[-1].set_xlabel("time (steps)")
        figure.supylabel("neuron" if order is None else "rank of neuron", fontsize="medium")
        heading = [title] if title else []
        if events is not None and bool(events.any()):
            heading.append(f"bar: {event}")
        figure.suptitle("; ".join(heading), fontsize="medium")
        if note:
            figure.supxlabel(note, fontsize="x-small")
    return figure


def _check_names(names: Sequence[str]) -> Sequence[str]:
    check_kind("names", names, (list, tuple), "a list of names")
    for name in names:
        check_kind("an entry of names", name, str, "a text")
    return names


def _check_numbers(what: str, given: Tensor | None, most: int) -> Tensor | None:
    """Return a vector of at most `most` numbers, or None."""
    if given is None:
        return None
    check_kind(what, given, Tensor, "a tensor")
    if given.dim() != 1 or len(given) > most or given.is_floating_point() or given.is_complex() or given.is_meta:
        raise ValueError(
            f"{what} must be a vector of at most {most} whole numbers, but has shape {tuple(given.shape)} and type "
            f"{given.dtype}; pass such a tensor"
        )
    return given


def _draw_panel(figure: Figure, panel: Any, name: str, picture: Tensor, time_unit: str) -> None:
    from matplotlib.colors import LogNorm

    options: dict[str, Any] = {"cmap": palette.SEQUENTIAL}
    label = LABELS.get(name, name.replace("_", " "))
    if name == "time_constant":
        finite = picture[picture.isfinite()]
        low, high = (float(torch.quantile(finite, q)) for q in (0.01, 0.99)) if len(finite) else (0.1, 10.0)
        options["norm"] = LogNorm(max(low, 1e-6), max(high, 1.01 * max(low, 1e-6)), clip=True)
        label = f"{label} ({time_unit})"
    elif name in _FROM_0_TO_1 or (name == "update" and bool((picture >= 0).all())):
        options |= {"vmin": 0.0, "vmax": max(1.0, float(picture.max()))}
    else:
        reach = max(float(picture.abs().max()), 1e-6)
        options |= {"cmap": palette.DIVERGING, "vmin": -reach, "vmax": reach}
    units, steps = picture.shape
    image = panel.imshow(
        picture.numpy(), aspect="auto", interpolation="nearest", extent=(0.5, steps + 0.5, units + 0.5, 0.5), **options
    )
    bar = figure.colorbar(image, ax=panel, label=label, pad=0.01)
    bar.outline.set_visible(False)
    panel.grid(False)
    panel.set_yticks([1, units] if units > 1 else [1])


def _draw_events(panel: Any, events: Tensor) -> None:
    """Draw a bar above the panel over the steps of an event."""
    edges = torch.diff(torch.cat([torch.zeros(1), events.float().cpu(), torch.zeros(1)]))
    starts, ends = (torch.nonzero(edges == sign)[:, 0].tolist() for sign in (1, -1))
    for start, end in zip(starts, ends, strict=True):
        panel.plot(
            [start + 0.5, end + 0.5],
            [1.04, 1.04],
            color=palette.INK,
            linewidth=3,
            solid_capstyle="butt",
            clip_on=False,
            transform=panel.get_xaxis_transform(),
        )
