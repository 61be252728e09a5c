"""A trace as a picture: one panel per quantity, neurons over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lrcnet.interpret.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Quantities by their range; other ones (an ODE's drive, a state) have none and are drawn around 0.
_UNIT = ("forget", "elastance", "reset", "output_gate")
LABELS = {
    "state": "state h",
    "forget": "forget gate",
    "update": "update gate",
    "elastance": "elastance",
    "time_constant": "time constant",
    "output_gate": "output gate",
}


def heat_map(
    found: Trace,
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
    """Draws neurons (down) over time (across), a panel with a colour bar for each quantity that the units have.

    Args:
        found: of `trace` with a batch-first layer, or of one sequence.
        sample: which of the batch.
        names: quantities, as `Trace.named` names them; those that the units do not have are passed over.
        order: neurons from top to bottom; as they are numbered if None.
        events: (time,), bool: steps to mark by a bar above each panel, named `event`.
        time_unit: of the time constant.
        title, note: above and below.

    Returns:
        The figure; the caller's matplotlib settings hold.
    """
    from matplotlib.figure import Figure

    arrays = {name: values for name, values in found.named().items() if name in names}
    figure = Figure(figsize=(8.2, 1.55 * len(arrays) + 0.9), layout="constrained")
    panels = figure.subplots(len(arrays), 1, sharex=True, squeeze=False)[:, 0]
    for panel, (name, values) in zip(panels, arrays.items(), strict=True):
        picture = (values[sample] if values.ndim == 3 else values).detach().float()
        picture = picture if order is None else picture[:, order]
        _panel(figure, panel, name, picture.T, time_unit)
        if events is not None:
            _mark(panel, events)
    panels[-1].set_xlabel("time (steps)")
    figure.supylabel("neuron" if order is None else "rank of neuron", fontsize="medium")
    told = [title] if title else []
    if events is not None and bool(events.any()):
        told.append(f"bar: {event}")
    figure.suptitle("; ".join(told), fontsize="medium")
    if note:
        figure.supxlabel(note, fontsize="x-small")
    return figure


def _panel(figure: Figure, panel: Any, name: str, picture: Tensor, time_unit: str) -> None:
    from matplotlib.colors import LogNorm

    options: dict[str, Any] = {"cmap": "cividis"}
    label = LABELS.get(name, name.replace("_", " "))
    if name == "time_constant":
        finite = picture[picture.isfinite()]
        low, high = (float(torch.quantile(finite, q)) for q in (0.01, 0.99)) if len(finite) else (0.1, 10.0)
        options["norm"] = LogNorm(max(low, 1e-6), max(high, 1.01 * max(low, 1e-6)), clip=True)
        label = f"{label} ({time_unit})"
    elif name in _UNIT or (name == "update" and bool((picture >= 0).all())):
        options |= {"vmin": 0.0, "vmax": max(1.0, float(picture.max()))}
    else:
        reach = max(float(picture.abs().max()), 1e-6)
        options |= {"cmap": "PuOr", "vmin": -reach, "vmax": reach}
    units, steps = picture.shape
    drawn = panel.imshow(
        picture.numpy(), aspect="auto", interpolation="nearest", extent=(0.5, steps + 0.5, units + 0.5, 0.5), **options
    )
    bar = figure.colorbar(drawn, ax=panel, label=label, pad=0.01)
    bar.outline.set_visible(False)
    panel.grid(False)
    panel.set_yticks([1, units] if units > 1 else [1])


def _mark(panel: Any, events: Tensor) -> None:
    """A bar above the panel over the steps of an event, in the colour of the text."""
    from matplotlib import rcParams

    edges = torch.diff(torch.cat([torch.zeros(1), events.float().cpu(), torch.zeros(1)]))
    starts, ends = (torch.nonzero(edges == sign)[:, 0].tolist() for sign in (1, -1))
    for start, end in zip(starts, ends, strict=True):
        panel.plot(
            [start + 0.5, end + 0.5],
            [1.04, 1.04],
            color=rcParams["text.color"],
            linewidth=3,
            solid_capstyle="butt",
            clip_on=False,
            transform=panel.get_xaxis_transform(),
        )
