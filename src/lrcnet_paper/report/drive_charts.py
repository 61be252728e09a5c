"""Curves over time and a map as HTML; the text keeps its size at any width, and no script is needed to draw them."""

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
"""Ratio of the time axis to the length of the drive; it leaves room for the mark at the end."""
FLATTEST, TALLEST = 2.6, 1.5
"""Largest and smallest ratio of a map's width to its height."""


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
    seconds: float,
    covered: Floats,
    least: float,
    limits: Sequence[float] = (),
) -> str:
    """Draw curves over time.

    Args:
        name: id of the figure.
        title, unit: heading of the chart.
        curves: the curves; NaN leaves a gap.
        seconds: length of the drive; the axis is a little longer.
        covered: values that the vertical axis must cover; curves may leave it.
        least: smallest range of the vertical axis.
        limits: heights of dotted lines, beyond which the drive ends.
    """
    low, high = _range(np.concatenate([covered, np.array(limits, float)]), least)

    def vertical(values: Floats) -> Floats:
        return HIGH * (high - values) / (high - low)

    marks = round_steps(low, high, 4)
    heights = dict(zip([*marks, *limits], vertical(np.array([*marks, *limits])).tolist(), strict=True))
    lines = [f'<path class="grid{" zero" if v == 0 else ""}" d="M0 {heights[v]:.1f}H{WIDE:g}"/>' for v in marks]
    lines += [f'<path class="limit" d="M0 {heights[v]:.1f}H{WIDE:g}"/>' for v in limits]
    for curve in curves:
        across = np.arange(len(curve.values), dtype=np.float64) * (STEP / (seconds * MARGIN) * WIDE)
        lines.append(f'<path class="curve {curve.kind}" d="{_path(across, vertical(curve.values))}"/>')
    labels = "".join(f'<span style="top:{heights[v]:.2f}%">{_minus(f"{v:g}")}</span>' for v in marks)
    keys = "".join(
        f'<span class="key"><i class="{c.kind}"></i>{escape(c.label)}</span>' for c in curves if len(curves) > 1
    )
    if limits:
        keys += '<span class="key"><i class="limit"></i>the drive ends beyond</span>'
    return (
        f'<figure class="chart" id="{name}"><figcaption><span><b>{escape(title)}</b> ({escape(unit)})</span>'
        f"{keys}</figcaption>"
        f'<div class="axes"><div class="y" aria-hidden="true">{labels}</div><div class="plot">'
        f'<svg viewBox="0 0 {WIDE:g} {HIGH:g}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title, quote=True)} over time">{"".join(lines)}</svg>{MARKS}</div>'
        f"{time_axis(seconds)}</div></figure>"
    )


MARKS = '<i class="end"></i><i class="cursor"></i>'
"""Marks of the end of the drive and of the present moment of the replay."""


def time_axis(seconds: float) -> str:
    """Return the time labels below a plot."""
    span = seconds * MARGIN
    marks = "".join(
        f'<span class="{"odd" if k % 2 else "even"}" style="left:{100 * t / span:.2f}%">{t:g} s</span>'
        for k, t in enumerate(round_steps(0.0, seconds, 8))
    )
    return f'<div class="x" aria-hidden="true">{marks}</div>'


@dataclass(frozen=True)
class Map:
    """A map of the road and the drive, turned so that it is wider than high; in m, y downwards as on a screen.

    Attributes:
        box: left, top, width and height.
        centre_line, driven: SVG paths of the expert and of the car.
        x, y, direction: position and direction of the car, (step,).
        bar: length of the scale bar.
    """

    box: tuple[float, float, float, float]
    centre_line: str
    driven: str
    x: Floats
    y: Floats
    direction: Floats
    bar: float

    @property
    def bar_share(self) -> float:
        """Length of the scale bar over the width of the map."""
        return self.bar / self.box[2]


def make_map(centre_line: Floats, x: Floats, y: Floats, direction: Floats) -> Map:
    """Lay out a map.

    Args:
        centre_line: the expert's path, (point, 2), m.
        x, y, direction: position (m) and direction (rad, counter-clockwise from the x axis) of the car, (step,).
    """
    points = np.concatenate([centre_line, np.stack([x, y], 1)])
    wide, high = np.ptp(points, axis=0)
    if high > wide:
        centre_line = np.stack([centre_line[:, 1], -centre_line[:, 0]], 1)
        x, y, direction = y, -x, direction - math.pi / 2
        points = np.stack([points[:, 1], -points[:, 0]], 1)
    (left, bottom), (right, top) = points.min(0), points.max(0)
    edge = max(0.06 * (right - left), 6.0)
    wide, high = right - left + 2 * edge, top - bottom + 2 * edge
    wide, high = max(wide, TALLEST * high), max(high, wide / FLATTEST)
    box = ((left + right - wide) / 2, -(bottom + top + high) / 2, wide, high)
    return Map(
        (float(box[0]), float(box[1]), float(box[2]), float(box[3])),
        _path(centre_line[:, 0], -centre_line[:, 1], 2),
        _path(x, -y, 2),
        x,
        -y,
        direction,
        round_length(float(wide) / 8),
    )


def _range(values: Floats, least: float) -> tuple[float, float]:
    """Return limits just below the lowest and just above the highest value, at least `least` apart."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    edge = max(least - (high - low), 0.0) / 2 + 0.06 * max(high - low, least)
    return low - edge, high + edge


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
