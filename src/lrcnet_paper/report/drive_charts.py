"""Curves over time as HTML; the text keeps its size at any width, and the first drive needs no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving import STEP

Floats = NDArray[np.float64]

WIDE, HIGH = 1000.0, 100.0
MARGIN = 1.03
"""Ratio of the time axis to the length of the longest drive; it leaves room for the mark at the end."""
SAFE_STEERING = 0.02
"""Smallest range of a plot of steering, 1/m."""


@dataclass(frozen=True)
class Curve:
    """A line in a chart: its label, the CSS class that colours it, and its values, one per step."""

    label: str
    kind: str
    values: Floats


def round_steps(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers from low to high with at most `most` intervals between them.

    Example:
        >>> round_steps(-0.9, 2.1)
        [0.0, 1.0, 2.0]
    """
    step = round_length((high - low) / most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def round_length(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least `least`.

    Example:
        >>> round_length(0.03), round_length(51.0)
        (0.05, 100.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next(float(f"{m * power:.6g}") for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def chart(
    name: str,
    title: str,
    unit: str,
    curves: Sequence[Curve],
    *,
    span: float,
    limits: tuple[float, float],
    dotted: Sequence[float] = (),
    ends: int = 1,
) -> str:
    """Draw curves over time.

    Args:
        name: id of the figure.
        title, unit: heading of the chart.
        curves: the curves; NaN leaves a gap. A curve beyond the limits is drawn at the edge, with a bar that says so.
        span: time that the axis covers, s.
        limits: lowest and highest value of the vertical axis.
        dotted: heights of dotted lines, beyond which the drive ends.
        ends: number of drives whose ends are marked.
    """
    low, high = limits

    def vertical(values: Floats) -> Floats:
        return HIGH * (high - values.clip(low, high)) / (high - low)

    marks = round_steps(low, high, 4)
    heights = dict(zip([*marks, *dotted], vertical(np.array([*marks, *dotted])).tolist(), strict=True))
    lines = [f'<path class="grid{" zero" if v == 0 else ""}" d="M0 {heights[v]:.1f}H{WIDE:g}"/>' for v in marks]
    lines += [f'<path class="limit" d="M0 {heights[v]:.1f}H{WIDE:g}"/>' for v in dotted]
    for curve in curves:
        across = np.arange(len(curve.values), dtype=np.float64) * (STEP / span * WIDE)
        lines.append(f'<path class="curve {curve.kind}" d="{_path(across, vertical(curve.values))}"/>')
        lines.append(f'<path class="beyond {curve.kind}" d=""/>')
    labels = "".join(f'<span style="top:{heights[v]:.2f}%">{_minus(f"{v:g}")}</span>' for v in marks)
    keys = "".join(
        f'<span class="key"><i class="{c.kind}"></i>{escape(c.label)}</span>' for c in curves if len(curves) > 1
    )
    if dotted:
        keys += '<span class="key"><i class="limit"></i>the drive ends beyond</span>'
    if any(curve.kind == "expert" for curve in curves):
        keys += '<span class="key beyond-key expert" hidden><i class="beyond"></i>the expert is beyond the axis</span>'
    return (
        f'<figure class="chart" id="{name}" data-low="{low:.6g}" data-high="{high:.6g}">'
        f"<figcaption><span><b>{escape(title)}</b> ({escape(unit)})</span>{keys}</figcaption>"
        f'<div class="axes"><div class="y" aria-hidden="true">{labels}</div><div class="plot">'
        f'<svg viewBox="0 0 {WIDE:g} {HIGH:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title, quote=True)} over time">{"".join(lines)}</svg>{marks_of(ends)}</div>'
        f"{time_axis(span)}</div></figure>"
    )


def marks_of(ends: int) -> str:
    """Return marks of the ends of drives and of the present moment of the replay."""
    return "".join(f'<i class="end end-{k}"></i>' for k in range(ends)) + '<i class="cursor"></i>'


def time_axis(span: float) -> str:
    """Return the time labels below a plot."""
    marks = "".join(
        f'<span class="{"odd" if k % 2 else "even"}" style="left:{100 * t / span:.2f}%">{t:g} s</span>'
        for k, t in enumerate(round_steps(0.0, span / MARGIN, 8))
    )
    return f'<div class="x" aria-hidden="true">{marks}</div>'


def axis_limits(values: Floats, least: float) -> tuple[float, float]:
    """Return limits just below the lowest and just above the highest value, at least `least` apart."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    edge = max(least - (high - low), 0.0) / 2 + 0.06 * max(high - low, least)
    return low - edge, high + edge


def path(points: Floats, digits: int = 2) -> str:
    """Return the SVG path through points (point, 2)."""
    return _path(points[:, 0], points[:, 1], digits)


def _path(across: Floats, down: Floats, digits: int = 1) -> str:
    """Return the SVG path through points, with a gap where a coordinate is not finite."""
    words, pen = [], "M"
    for x, y in zip(across.tolist(), down.tolist(), strict=True):
        if not math.isfinite(x + y):
            pen = "M"
            continue
        words.append(f"{pen}{x:.{digits}f} {y:.{digits}f}")
        pen = "L"
    return "".join(words)


def _minus(number: str) -> str:
    return number.replace("-", "−")
