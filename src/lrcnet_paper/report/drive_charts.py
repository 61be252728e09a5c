"""Curves over time and a map, as HTML that keeps its letters' size at any width: no script draws them."""

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
"""The time axis is longer than the drive by this, so that the mark at its end can be seen."""
FLATTEST, TALLEST = 2.6, 1.5


@dataclass(frozen=True)
class Curve:
    """A line in a chart: its words, the class that colours it, and its values, one per step."""

    label: str
    kind: str
    values: Floats


def round_steps(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from low to high, at most so many steps apart.

    Example:
        >>> round_steps(-0.9, 2.1)
        [0.0, 1.0, 2.0]
    """
    step = round_length((high - low) / most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def round_length(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below.

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
    shown: Floats,
    least: float,
    limits: Sequence[float] = (),
) -> str:
    """Curves over time.

    Args:
        name: the figure's id.
        title, unit: what is drawn.
        curves: NaN leaves a gap.
        seconds: of the drive; the axis is a little longer.
        shown: values that the axis covers; curves may leave it.
        least: what it covers at least.
        limits: heights of dotted lines.
    """
    low, high = _range(np.concatenate([shown, np.array(limits, float)]), least)

    def down(values: Floats) -> Floats:
        return HIGH * (high - values) / (high - low)

    marks = round_steps(low, high, 4)
    heights = dict(zip([*marks, *limits], down(np.array([*marks, *limits])).tolist(), strict=True))
    lines = [f'<path class="grid{" zero" if v == 0 else ""}" d="M0 {heights[v]:.1f}H{WIDE:g}"/>' for v in marks]
    lines += [f'<path class="limit" d="M0 {heights[v]:.1f}H{WIDE:g}"/>' for v in limits]
    for curve in curves:
        across = np.arange(len(curve.values), dtype=np.float64) * (STEP / (seconds * MARGIN) * WIDE)
        lines.append(f'<path class="curve {curve.kind}" d="{_path(across, down(curve.values))}"/>')
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
"""Where the drive ended, and where the replay is."""


def time_axis(seconds: float) -> str:
    """Labels below a plot."""
    span = seconds * MARGIN
    marks = "".join(
        f'<span class="{"odd" if k % 2 else "even"}" style="left:{100 * t / span:.2f}%">{t:g} s</span>'
        for k, t in enumerate(round_steps(0.0, seconds, 8))
    )
    return f'<div class="x" aria-hidden="true">{marks}</div>'


@dataclass(frozen=True)
class Map:
    """A map's frame and what is drawn in it, turned so that it is wider than high; m, y downwards as on a screen."""

    box: tuple[float, float, float, float]
    middle: str
    way: str
    x: Floats
    y: Floats
    direction: Floats
    bar: float

    @property
    def share(self) -> float:
        """The scale bar's part of the width."""
        return self.bar / self.box[2]


def make_map(middle: Floats, x: Floats, y: Floats, direction: Floats) -> Map:
    """Lays out a map.

    Args:
        middle: (point, 2), m.
        x, y, direction: of the car, (step,), m and rad counter-clockwise from the x axis.
    """
    points = np.concatenate([middle, np.stack([x, y], 1)])
    wide, high = np.ptp(points, axis=0)
    if high > wide:
        middle, x, y, direction = np.stack([middle[:, 1], -middle[:, 0]], 1), y, -x, direction - math.pi / 2
        points = np.stack([points[:, 1], -points[:, 0]], 1)
    (left, bottom), (right, top) = points.min(0), points.max(0)
    edge = max(0.06 * (right - left), 6.0)
    wide, high = right - left + 2 * edge, top - bottom + 2 * edge
    wide, high = max(wide, TALLEST * high), max(high, wide / FLATTEST)
    box = ((left + right - wide) / 2, -(bottom + top + high) / 2, wide, high)
    return Map(
        (float(box[0]), float(box[1]), float(box[2]), float(box[3])),
        _path(middle[:, 0], -middle[:, 1], 2),
        _path(x, -y, 2),
        x,
        -y,
        direction,
        round_length(float(wide) / 8),
    )


def _range(values: Floats, least: float) -> tuple[float, float]:
    """From below the lowest value to above the highest; `least` apart at least."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    edge = max(least - (high - low), 0.0) / 2 + 0.06 * max(high - low, least)
    return low - edge, high + edge


def _path(across: Floats, down: Floats, digits: int = 1) -> str:
    """A line through points, with a gap where a coordinate is not finite."""
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
