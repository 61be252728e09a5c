"""Draw one picture per model for docs/models: the answer of its units to a pulse, and their time constants.

    python tools/model_pictures.py docs/images/models

Everything comes from the library's own layers with their default initial values and seed 0; nothing is sketched.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

import lrcnet
from lrcnet.interpret import trace
from lrcnet.pages import palette
from lrcnet.pages.content import Picture

UNITS, STEPS = 6, 80
PULSE = slice(10, 40)
STRENGTHS = np.linspace(-2, 2, 41)
LAYERS = {
    "ltc": (lrcnet.LTC, {}),
    "stc": (lrcnet.STC, {}),
    "lrc": (lrcnet.LRC, {}),
    "lrcu": (lrcnet.LRCU, {}),
    "cfc": (lrcnet.CfC, {}),
    "mgu": (lrcnet.MGU, {}),
    "gru": (lrcnet.GRU, {}),
    "lstm": (lrcnet.LSTM, {}),
}


def draw(name: str) -> Picture:
    """Draw one model: states over time, and the median time constant over the strength of a constant input."""
    from matplotlib.figure import Figure

    torch.manual_seed(0)
    kind, options = LAYERS[name]
    layer = kind(1, UNITS, **options).eval()
    pulse = torch.zeros(STEPS, 1, 1)
    pulse[PULSE] = 1.0
    record = trace(layer, pulse)
    with palette.figure_style():
        figure = Figure(figsize=(8, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        left.axvspan(PULSE.start, PULSE.stop, color=palette.GRID, alpha=0.6, linewidth=0)
        middle = (PULSE.start + PULSE.stop) / 2
        left.text(middle, 0.02, "input 1", ha="center", fontsize=8, transform=left.get_xaxis_transform())
        for unit, colour in enumerate(_colours()):
            left.plot(record.state[:, 0, unit], color=colour)
        left.set(title=f"{kind.__name__}: six units answer to a pulse", xlabel="step", ylabel="state h")
        _draw_second(name, layer, right)
    caption = f"{kind.__name__} with default initial values, seed 0"
    return Picture(name, caption, caption, figure)


def _draw_second(name: str, layer: torch.nn.Module, axes: Axes) -> None:
    inputs = torch.as_tensor(STRENGTHS, dtype=torch.float32).view(1, -1, 1).repeat(STEPS, 1, 1)
    record = trace(layer, inputs)
    if record.time_constant is not None:
        title, label, values = "Time constants, constant input", "steps", record.time_constant[-1]
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter("{x:.2g}")
    else:
        title, label, values = "State after 80 equal inputs", "state h", record.state[-1]
    for unit, colour in enumerate(_colours()):
        axes.plot(STRENGTHS, values[:, unit], color=colour)
    axes.set(title=title, xlabel="input", ylabel=label)


def _colours() -> list[str]:
    return [palette.BLUE, palette.GREEN, palette.VERMILION, palette.PURPLE, palette.GREY, palette.OCHRE]


def draw_elastances() -> Picture:
    """Draw the two forms of the elastance."""
    from matplotlib.figure import Figure

    from lrcnet.liquid import elastance_gate

    w = torch.linspace(-8, 8, 321)
    with palette.figure_style():
        figure = Figure(figsize=(5.5, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.plot(w, elastance_gate("asymmetric", w), color=palette.PURPLE, label="asymmetric")
        for k, dashes in ((1.0, ":"), (3.0, "-")):
            gate = elastance_gate("symmetric", w, torch.tensor(k))
            axes.plot(w, gate, color=palette.VERMILION, linestyle=dashes, label=f"symmetric, k = {k:g}")
        axes.set(title="Elastance of an LRC", xlabel="w", ylabel="elastance")
        axes.legend()
    return Picture("elastance", "The elastance", "The two forms of the elastance", figure)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    # Letters as text instead of outlines: a third of the size, and readers can search and copy them.
    with palette.figure_style(), matplotlib.rc_context({"svg.fonttype": "none"}):
        for one in (*map(draw, LAYERS), draw_elastances()):
            one.figure.savefig(folder / f"{one.name}.svg", metadata={"Date": None})
            print(folder / f"{one.name}.svg")
