"""Figure: the architecture of LRC and LRCU with their forget, update and smoothen gates, drawn by code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Table
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Architecture of LRC and LRCU"

# The gates that the paper's text names: symbol, argument (Eqs. 1 and 3) and effect.
CLAIMED: Mapping[str, Any] = {
    "forget": ("σ(f)", "f = Σ g σ(a y + b) + g_l", "how fast the state leaks"),
    "update": ("τ(u)", "u = Σ k σ(a y + b) + g_l", "where the state is driven, as a share of e_l"),
    "smoothen": ("ε(w)", "w = Σ o y + p", "the elastance: how much of both takes effect"),
}
COLOURS = {"forget": palette.FORGET, "update": palette.UPDATE, "smoothen": palette.SMOOTHEN}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan no run: a diagram needs no training."""
    check_budget(budget)
    return []


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Draw the diagram, and list its gates in a table."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(10.6, 4.7))
        left = figure.add_axes((0.005, 0.0, 0.49, 1.0))
        right = figure.add_axes((0.505, 0.0, 0.49, 1.0))
        for axes in (left, right):
            axes.set(xlim=(-0.05, 9.95), ylim=(-0.45, 8.8), aspect="equal")
            axes.axis("off")
        _draw_lrc(left)
        _draw_lrcu(right)
    return Rendered(
        tables=[
            Table(
                "gates",
                "The three gates",
                ("gate", "symbol", "argument", "effect"),
                [(name, *description) for name, description in CLAIMED.items()],
                "y = [h, x]: states and inputs. Forget and update share the synapses σ(a y + b) and the leak g_l. "
                "τ is tanh; ε is σ(w), or σ(w + k) - σ(w - k).",
            )
        ],
        pictures=[
            Picture(
                "architecture",
                "LRC (left): a differential equation, whose right-hand side passes through the forget, update and "
                "smoothen gates and is integrated by any solver. LRCU (right): one explicit Euler step of that "
                "equation, with a time step of 1.",
                "Two block diagrams. Left, the LRC: the state and the input feed three gates; the forget gate times "
                "minus the state and the update gate times the leak potential are added, multiplied by the smoothen "
                "gate, and integrated to the state, which is fed back. Right, the LRCU: the same gates between the "
                "previous and the next state, where the previous state runs straight through to a final addition.",
                figure,
            )
        ],
    )


# Not the page's paper, which dark mode replaces: the gates have the same colours on both pages.
WHITE = "#fefefe"


def _draw_lrc(axes: Axes) -> None:
    _frame(axes, "LRC", "dh/dt = ε(w) · ( −σ(f) · h + τ(u) · e$_l$ )")
    _gates(axes, "h", "x")
    _dynamics(axes)
    # The sum times the elastance is the slope; the solver turns it into the state, which feeds back to y.
    _arrow(axes, (6.25, 6.15), (7.2, 6.15), label="dh/dt", label_at=(6.7, 6.42))
    _box(axes, 7.7, 6.15, "∫ dt\nsolver", palette.INK, width=1.0, height=0.95)
    _arrow(axes, (8.2, 6.15), (9.8, 6.15), label="h(t)", label_at=(9.55, 6.42))
    _dot(axes, 8.75, 6.15)
    _path(axes, [(8.75, 6.15), (8.75, 0.75), (5.8, 0.75)])
    _path(axes, [(8.75, 6.15), (8.75, 7.35), (2.15, 7.35), (2.15, 5.83)])


def _draw_lrcu(axes: Axes) -> None:
    _frame(axes, "LRCU", "h$_t$ = h$_{t−1}$ + ε(w$_t$) · ( −σ(f$_t$) · h$_{t−1}$ + τ(u$_t$) · e$_l$ )")
    _gates(axes, "h$_{t−1}$", "x$_t$")
    _dynamics(axes)
    # The previous state runs straight through: where the elastance is 0, it is the next state.
    _arrow(axes, (0.0, 7.35), (7.7, 7.35), label="h$_{t−1}$", label_at=(0.33, 7.65))
    _dot(axes, 2.15, 7.35)
    _path(axes, [(2.15, 7.35), (2.15, 5.83)])
    _dot(axes, 0.95, 7.35)
    _path(axes, [(0.95, 7.35), (0.95, 0.75), (3.4, 0.75)])
    _path(axes, [(6.25, 6.15), (8.0, 6.15), (8.0, 7.05)])
    _text(axes, 7.1, 6.42, "Δh$_t$", size=9, align="center")
    _circle(axes, 8.0, 7.35, "+", palette.INK)
    _arrow(axes, (8.3, 7.35), (9.8, 7.35), label="h$_t$", label_at=(9.55, 7.65))


def _frame(axes: Axes, name: str, equation: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (0.65, 0.15),
            8.5,
            7.75,
            boxstyle="round,pad=0,rounding_size=0.3",
            facecolor="none",
            edgecolor=palette.GRID,
            linewidth=1.5,
            zorder=1,
        )
    )
    _text(axes, 0.65, 8.4, name, size=14, weight="bold")
    _text(axes, 9.15, 8.4, equation, size=9.5, align="right")


def _gates(axes: Axes, state: str, inputs: str) -> None:
    """Draw y = [h, x] at the bottom, the synapses and the linear map above it, and the three gates on top."""
    _box(axes, 4.6, 0.75, f"y = [ {state} , {inputs} ]", palette.INK, width=2.4, height=0.66)
    _arrow(axes, (4.6, -0.35), (4.6, 0.42), label=inputs, label_at=(4.95, -0.13))
    _box(axes, 3.05, 2.05, "synapses  σ(a·y + b)", palette.GREY, width=3.1, height=0.66)
    _box(axes, 5.95, 2.05, "linear  o·y + p", palette.GREY, width=2.1, height=0.66)
    _path(axes, [(4.2, 1.08), (4.2, 1.4), (3.05, 1.4), (3.05, 1.72)])
    _path(axes, [(5.0, 1.08), (5.0, 1.4), (5.95, 1.4), (5.95, 1.72)])
    for x, name, symbol, current, weights in (
        (2.15, "forget", "σ", "f", "g, g$_l$"),
        (3.95, "update", "τ", "u", "k, g$_l$"),
        (5.95, "smoothen", "ε", "w", ""),
    ):
        colour = COLOURS[name]
        _box(axes, x, 3.65, "", colour, width=1.5, height=1.1, filled=True)
        _text(axes, x, 3.85, symbol, size=15, colour=WHITE, align="center")
        _text(axes, x, 3.34, name, size=8, colour=WHITE, align="center", weight="bold")
        _arrow(axes, (x, 2.38), (x, 3.1))
        _text(axes, x - 0.14, 2.74, weights, size=8, align="right")
        _text(axes, x + 0.14, 2.74, current, size=9, colour=colour, weight="bold")


def _dynamics(axes: Axes) -> None:
    """Draw the products -σ(f) h and τ(u) e_l, their sum, and the elastance times that sum."""
    _arrow(axes, (2.15, 4.2), (2.15, 5.23), colour=palette.FORGET)
    _circle(axes, 2.15, 5.53, "×", palette.FORGET)
    _arrow(axes, (3.95, 4.2), (3.95, 4.66), colour=palette.UPDATE)
    _circle(axes, 3.95, 4.96, "×", palette.UPDATE)
    _text(axes, 2.92, 4.96, "e$_l$", size=10, align="center")
    _arrow(axes, (3.15, 4.96), (3.65, 4.96))
    _arrow(axes, (3.95, 5.26), (3.95, 5.85), colour=palette.UPDATE)
    _circle(axes, 3.95, 6.15, "+", palette.INK)
    _path(axes, [(2.45, 5.53), (2.9, 5.53), (2.9, 6.15), (3.65, 6.15)], colour=palette.FORGET)
    _text(axes, 3.35, 6.36, "−", size=12, colour=palette.FORGET, align="center")
    _arrow(axes, (4.25, 6.15), (5.65, 6.15))
    _arrow(axes, (5.95, 4.2), (5.95, 5.85), colour=palette.SMOOTHEN)
    _circle(axes, 5.95, 6.15, "×", palette.SMOOTHEN)


def _box(
    axes: Axes,
    x: float,
    y: float,
    label: str,
    colour: str,
    *,
    width: float,
    height: float,
    filled: bool = False,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.16",
            facecolor=colour if filled else palette.PAPER,
            edgecolor=colour,
            linewidth=1.3,
            zorder=3,
        )
    )
    axes.text(x, y, label, ha="center", va="center", fontsize=9, color=palette.INK, zorder=4)


def _circle(axes: Axes, x: float, y: float, label: str, colour: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), 0.3, facecolor=palette.PAPER, edgecolor=colour, linewidth=1.5, zorder=3))
    axes.text(x, y, label, ha="center", va="center_baseline", fontsize=13, color=colour, zorder=4)


def _dot(axes: Axes, x: float, y: float) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), 0.07, facecolor=palette.INK, edgecolor="none", zorder=3))


def _text(
    axes: Axes,
    x: float,
    y: float,
    label: str,
    *,
    size: float,
    colour: str = palette.INK,
    align: str = "left",
    weight: str = "normal",
) -> None:
    axes.text(x, y, label, ha=align, va="center", fontsize=size, color=colour, weight=weight, zorder=4)


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    *,
    colour: str = palette.INK,
    label: str = "",
    label_at: tuple[float, float] = (0.0, 0.0),
) -> None:
    _path(axes, [start, end], colour=colour)
    if label:
        _text(axes, *label_at, label, size=9.5, align="center")


def _path(axes: Axes, points: Sequence[tuple[float, float]], *, colour: str = palette.INK) -> None:
    """Draw an arrow along a line of points with rounded corners."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        vertices += [_point_towards(corner, before), corner, _point_towards(corner, after)]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    vertices.append(points[-1])
    codes.append(Path.LINETO)
    axes.add_patch(
        FancyArrowPatch(
            path=Path(vertices, codes),
            arrowstyle="-|>,head_length=4,head_width=2.4",
            color=colour,
            linewidth=1.3,
            shrinkA=0,
            shrinkB=0,
            zorder=2,
        )
    )


def _point_towards(
    corner: tuple[float, float], other: tuple[float, float], radius: float = 0.16
) -> tuple[float, float]:
    """Return the point that lies `radius` from a corner in the direction of another point, or that point if nearer."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = (dx * dx + dy * dy) ** 0.5
    share = min(1.0, radius / length)
    return corner[0] + share * dx, corner[1] + share * dy


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render)
