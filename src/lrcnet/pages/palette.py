"""Every colour, line and marker of the project in one place; safe for colour-blind readers, on white and on black.

The hues follow Okabe and Ito's set with three more, darkened or lightened until each has a contrast of 3 to 1 against
both the light and the dark page. A colour means one model in every figure of a report.
Models differ by dashes and markers too, so that a grey print can be read. A test measures the contrast.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

# A page replaces the first three with its CSS variables, so that a figure follows light and dark mode.
INK = "#1b1f24"
PAPER = "#ffffff"
GRID = "#d3d8de"
DARK_PAPER = "#14171b"

BLUE = "#0f7fc4"
GREEN = "#00936b"
VERMILION = "#d55e00"
PURPLE = "#b55a9b"
GREY = "#7a828c"
OCHRE = "#b07d00"
INDIGO = "#7468e0"
TEAL = "#0c8d97"
OLIVE = "#78871f"

CLASSES = (
    BLUE, VERMILION, GREEN, PURPLE, OCHRE, GREY, "#c2405a", "#5f74dd", "#5b8a1a", "#96623a", "#0f93a0", "#a45fd6",
)  # fmt: skip
"""Colours of the classes of a classifier; the first six are the palette's own."""

# Matplotlib's colour maps. Both are safe for colour-blind readers; in a grey print the sequential one stays in order.
SEQUENTIAL = "cividis"
DIVERGING = "PuOr"
SEQUENTIAL_SAMPLES = (
    "#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c", "#dec958", "#fee838",
)  # fmt: skip
"""Nine equidistant colours of the sequential map, for pictures that are made without matplotlib."""


class ModelStyle(NamedTuple):
    """The name of a model in figures and tables, and the colour, dashes and marker of its lines."""

    label: str
    colour: str
    dashes: str | tuple[int, tuple[float, ...]]
    marker: str


MODEL_STYLES: dict[str, ModelStyle] = {
    "lrcu-s": ModelStyle("LRCU-S", VERMILION, "-", "o"),
    "lrcu-a": ModelStyle("LRCU-A", PURPLE, (0, (6, 1.5)), "s"),
    "lrc-s": ModelStyle("LRC-S", VERMILION, "-", "o"),
    "lrc-a": ModelStyle("LRC-A", PURPLE, (0, (6, 1.5)), "s"),
    "lstm": ModelStyle("LSTM", BLUE, (0, (4, 1, 1, 1)), "^"),
    "gru": ModelStyle("GRU", GREEN, (0, (2, 1)), "v"),
    "torch-gru": ModelStyle("GRU (torch)", GREEN, (0, (1, 2)), "<"),
    "mgu": ModelStyle("MGU", GREY, (0, (1, 1)), "D"),
    "neural-ode": ModelStyle("Neural ODE", INDIGO, (0, (4, 1, 1, 1)), "^"),
    "ltc": ModelStyle("LTC", TEAL, (0, (2, 1)), "v"),
    "stc": ModelStyle("STC", OLIVE, (0, (1, 1)), "D"),
    "ctrnn": ModelStyle("CT-RNN", OCHRE, (0, (3, 2)), "P"),
    "cfc": ModelStyle("CfC", "#96623a", (0, (6, 1.5)), "s"),
    "gru-d": ModelStyle("GRU-D", "#5f74dd", (0, (3, 2)), "P"),
    "diagonal-lrc": ModelStyle("Diagonal LRC", "#c2405a", (0, (4, 1, 1, 1)), "<"),
    "lrc-ssm": ModelStyle("LrcSSM", "#a45fd6", "-", "D"),
    "gru-ode": ModelStyle("GRU-ODE", OCHRE, (0, (1, 2)), "X"),
}

FORGET = BLUE
UPDATE = VERMILION
SMOOTHEN = GREEN


def model_style(model: str) -> ModelStyle:
    """Return the style of a model; an unknown one is grey under its own name, so that a new cell shows up at once."""
    return MODEL_STYLES.get(model, ModelStyle(model, GREY, "-", "."))


def model_label(model: str) -> str:
    """Return the name of a model for people, such as "LRCU-S" for "lrcu-s"."""
    return model_style(model).label


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply the matplotlib settings of every figure; afterwards the caller's settings hold again."""
    import matplotlib

    settings: Any = {
        # Text stays text in an SVG file, so a reader without DejaVu Sans sees a font of similar width.
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Geneva"],
        "font.size": 9.0,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.titlesize": 10.0,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.facecolor": PAPER,
        "figure.facecolor": PAPER,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        # Points that move a line by less than this share of a pixel are left out of a file.
        "path.simplify_threshold": 0.3,
        "savefig.facecolor": PAPER,
        "xtick.color": INK,
        "ytick.color": INK,
        "svg.fonttype": "none",
        "svg.hashsalt": "lrcnet",
    }
    with matplotlib.rc_context(settings):
        yield


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours by the accessibility rule of the web: from 1 (none) to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
