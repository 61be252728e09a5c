"""The panels of a page of drives: cameras and controls, map, curves, neurons."""

from __future__ import annotations

from html import escape

import numpy as np

from lrcnet.pages import palette
from lrcnet_paper.driving import HEIGHT, ROAD_WIDTH, WIDTH
from lrcnet_paper.report import drive_charts as charts
from lrcnet_paper.report.drive_map import RoadMap
from lrcnet_paper.report.drive_set import DriveSet

PATHS = {"own": "middle of the lane", "vista": "recorded path", "carracing": "middle of the track"}
"""The path that the expert of each world follows."""
CLOSE_UP = (-24, -17, 48, 24)
"""View box of the close-up, m: left, top, width, height around the car."""
CLOSE_UP_BAR = 5
"""Length of its scale bar, m."""
SPEEDS = ("0.5", "1", "2", "4")
LINES_SCALE = 6
"""Size of the canvas for lines over the camera picture, in pixels per pixel of the picture."""
STRENGTH = 60
"""Opacity of the attention at its maximum, %."""


def player(drives: DriveSet) -> str:
    """Return one camera picture per policy, the controls and the present numbers."""
    has_attention = drives.drives[0].replay.attention is not None
    screens = "".join(_screen(k, label) for k, label in enumerate(drives.labels))
    numbers = "".join(_numbers(k, label, len(drives.labels)) for k, label in enumerate(drives.labels))
    speeds = "".join(f'<option value="{s}"{" selected" if s == "1" else ""}>{s}×</option>' for s in SPEEDS)
    steps = max(drive.replay.steps for drive in drives.drives)
    return (
        f'<section class="player" aria-label="Replay"><div class="screens">{screens}</div>'
        '<div class="controls"><button type="button" id="play" aria-pressed="false">Play</button>'
        f'<input type="range" id="scrub" min="0" max="{steps}" step="1" value="0" aria-label="Moment of the drive">'
        f'<output id="current-time">–</output><label>Speed <select id="rate">{speeds}</select></label>'
        '<button type="button" id="full">Full screen</button></div>'
        f'<div class="controls">{_conditions(drives)}{_overlays(drives, has_attention)}'
        '<button type="button" id="wheel">Take the wheel</button><span id="wheel-keys" hidden>'
        '<button type="button" data-direction="1" aria-label="steer left">←</button>'
        '<button type="button" data-direction="-1" aria-label="steer right">→</button></span></div>'
        f"{numbers}{_keys(drives, has_attention)}"
        '<div class="film" aria-hidden="true"></div></section>'
    )


def _screen(k: int, label: str) -> str:
    return (
        f'<figure class="camera"><figcaption><b class="policy-{k}">{escape(label)}</b> '
        f'<span class="ending" id="ending-{k}"></span></figcaption><div class="screen">'
        f'<canvas class="picture" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="Camera picture of {escape(label, quote=True)}"></canvas>'
        f'<canvas class="lines" width="{LINES_SCALE * WIDTH}" height="{LINES_SCALE * HEIGHT}" aria-hidden="true">'
        "</canvas>"
        '<p class="over" hidden></p></div></figure>'
    )


def _numbers(k: int, label: str, count: int) -> str:
    cells = "".join(
        f'<div><dt>{words}</dt><dd id="{name}-{k}">–</dd></div>'
        for name, words in (
            ("distance", "distance"),
            ("steers", "policy steers"),
            ("expert", "expert's advice"),
            ("offset", "off the path"),
            ("speed", "speed"),
        )
    )
    name = f'<p class="policy-{k}">{escape(label)}</p>' if count > 1 else ""
    return f'<div class="row-of-numbers">{name}<dl class="numbers" aria-live="off">{cells}</dl></div>'


def _conditions(drives: DriveSet) -> str:
    parts = ""
    if len(drives.noises) > 1:
        parts += (
            f'<label>Noise <input type="range" id="noise" min="0" max="{len(drives.noises) - 1}" step="1" value="0">'
            '</label><output id="noise-value" for="noise"></output>'
        )
    if len(drives.seasons) > 1:
        options = "".join(f'<option value="{k}">{escape(season)}</option>' for k, season in enumerate(drives.seasons))
        parts += f'<label>Season <select id="season">{options}</select></label>'
    return parts


def _overlays(drives: DriveSet, has_attention: bool) -> str:
    parts = ""
    if has_attention:
        parts += (
            '<label class="toggle"><input type="checkbox" id="attention" checked> Attention<span class="ramp" '
            'aria-hidden="true"></span></label>'
            f'<input type="range" id="strength" min="10" max="100" value="{STRENGTH}" '
            'aria-label="Strength of attention">'
        )
    if drives.setting.world == "own":
        parts += '<label class="toggle"><input type="checkbox" id="edges"> Lane edges</label>'
    return parts


def _keys(drives: DriveSet, has_attention: bool) -> str:
    words = [
        "space plays and pauses",
        "← and → jump by 1 s, with Shift by one frame",
        "Home and End go to the first and the last moment",
        "+ and − change the speed",
    ]
    if len(drives.noises) > 1:
        words.append("n and N change the noise")
    if has_attention:
        words.append("a shows the attention")
    if drives.setting.world == "own":
        words.append("e shows the edges of the lane")
    words += ["f fills the screen", "w takes the wheel"]
    return f'<details class="note keys"><summary>Keys</summary>{escape("; ".join(words))}.</details>'


def maps(drives: DriveSet, road_map: RoadMap) -> str:
    """Return the map of the whole drive and the close-up of the car."""
    box = " ".join(f"{number:.2f}" for number in road_map.box)
    size = road_map.box[2] / 100
    count = len(drives.trained)
    x, y = road_map.points[0]
    start = f'<circle class="start" cx="{x:.2f}" cy="{y:.2f}" r="{0.8 * size:.2f}"/>'
    arrow = (
        f"M{3 * size:.2f} 0L{-1.5 * size:.2f} {1.6 * size:.2f}L{-0.6 * size:.2f} 0L{-1.5 * size:.2f} {-1.6 * size:.2f}Z"
    )
    # The car turns around its rear axle, which is the origin.
    body = "M-.9 .9H2.6L3.6 0L2.6 -.9H-.9Z"
    # The first policy comes last, so that its car lies above the ghost.
    order = list(reversed(range(count)))
    driven = "".join(f'<path class="ahead policy-{k}" d=""/><path class="driven policy-{k}" d=""/>' for k in order)

    def cars(shape: str) -> str:
        own = "".join(f'<g class="car policy-{k}"><path d="{shape}"/></g>' for k in order)
        return f'{own}<g class="car you" hidden><path d="{shape}"/></g>'

    crosses, near = ("".join(_cross(half, k) for k in order) for half in (1.6 * size, 1.2))
    keys = "".join(
        f'<span class="key"><i class="policy-{k}"></i>{escape(label)}{" (ghost)" if k else ""}</span>'
        for k, label in enumerate(drives.labels)
    )
    ramp = ",".join(palette.SEQUENTIAL_SAMPLES)
    return (
        '<section class="maps"><figure id="map"><figcaption><span><b>Seen from above</b></span>'
        f'<span class="key"><i class="centre-line"></i>{PATHS[drives.setting.world]}</span>{keys}'
        '<span class="key"><i class="ahead"></i>ahead</span>'
        '<span class="key" id="paint-key" hidden>road coloured by <span id="paint-name"></span>: low'
        f'<i class="scale" style="background:linear-gradient(to right,{ramp})"></i>high</span></figcaption>'
        f'<svg viewBox="{box}" role="img" aria-label="Map of the road and the driven paths">'
        f'<path class="centre-line" d="{charts.path(road_map.points)}"/>{driven}<g class="paint"></g>{start}'
        f"{cars(arrow)}{crosses}</svg>"
        f'<p class="bar"><i style="width:{100 * road_map.bar / road_map.box[2]:.2f}%"></i>'
        f"<span>{road_map.bar:g} m</span></p></figure>"
        '<figure id="close"><figcaption><span><b>Close-up</b>: ahead is up; a drive ends '
        f"outside the band of {ROAD_WIDTH:g} m, a cross marks a crash</span></figcaption>"
        f'<svg viewBox="{" ".join(map(str, CLOSE_UP))}" role="img" aria-label="Close-up of the car in its lane">'
        f'<g class="world"><path class="band" style="stroke-width:{ROAD_WIDTH:g}" d=""/>'
        f'<path class="centre-line" d=""/>{driven}{cars(body)}{near}</g></svg>'
        f'<p class="bar"><i style="width:{100 * CLOSE_UP_BAR / CLOSE_UP[2]:.2f}%"></i>'
        f"<span>{CLOSE_UP_BAR} m</span></p></figure></section>"
    )


def _cross(half: float, k: int) -> str:
    return (
        f'<path class="crash policy-{k}" hidden d="M{-half:.2f} {-half:.2f}L{half:.2f} {half:.2f}'
        f'M{-half:.2f} {half:.2f}L{half:.2f} {-half:.2f}"/>'
    )


def steering_limits(drives: DriveSet) -> tuple[float, float]:
    """Return the range of the steering's axis.

    Off the road the expert would steer hard; an axis that covers this would flatten all other curves, so the axis
    covers twice what the policies steer, and the page marks where the expert is beyond it.
    """
    actions = np.concatenate([drive.replay.action for drive in drives.drives])
    advice = np.concatenate([drive.replay.advice for drive in drives.drives])
    most = max(charts.SAFE_STEERING, 2 * float(np.percentile(np.abs(actions), 99)))
    return charts.axis_limits(np.concatenate([actions, advice.clip(-most, most)]), charts.SAFE_STEERING)


def curves(drives: DriveSet, span: float) -> str:
    """Return steering, offset and speed over time; the axes cover all drives, so that they stay when one is chosen."""
    shown = drives.select(drives.seasons[0], drives.noises[0])
    every, limit, count = [drive.replay for drive in drives.drives], ROAD_WIDTH / 2, len(shown)

    def of_policies(name: str) -> list[charts.Curve]:
        pairs = enumerate(zip(drives.labels, shown, strict=True))
        return [charts.Curve(label, f"policy-{k}", getattr(replay, name)) for k, (label, replay) in pairs]

    expert = "expert" if count == 1 else f"expert in the place of {drives.labels[0]}"
    steering = charts.chart(
        "steering",
        "Steering",
        "curvature, 1/m; left is positive",
        [charts.Curve(expert, "expert", shown[0].advice), *reversed(of_policies("action"))],
        span=span,
        limits=steering_limits(drives),
        ends=count,
    )
    offset = charts.chart(
        "offset",
        "Off the path",
        "m; left is positive",
        list(reversed(of_policies("offset"))),
        span=span,
        limits=charts.axis_limits(np.concatenate([[-limit, limit], *(one.offset for one in every)]), 1.0),
        dotted=(-limit, limit),
        ends=count,
    )
    speed = charts.chart(
        "speed",
        "Speed",
        "m/s",
        list(reversed(of_policies("speed"))),
        span=span,
        limits=charts.axis_limits(np.concatenate([one.speed for one in every]), 4.0),
        ends=count,
    )
    return f'<section class="curves">{steering}{offset}{speed}</section>'


def neurons(drives: DriveSet, span: float) -> str:
    """Return the activity of every neuron over time."""
    shown = drives.select(drives.seasons[0], drives.noises[0])
    strips = "".join(
        _strip(k, label, replay.activity.shape[1], span)
        for k, (label, replay) in enumerate(zip(drives.labels, shown, strict=True))
    )
    return f'<section class="activity">{strips}</section>'


def one_neuron(drives: DriveSet, span: float) -> str:
    """Return the curve of one neuron beside the steering, and the choice of a neuron that colours the road."""
    shown = drives.select(drives.seasons[0], drives.noises[0])
    options = "".join(
        f'<option value="{k}-{i}">{escape(label)}: neuron {i + 1}</option>'
        for k, (label, replay) in enumerate(zip(drives.labels, shown, strict=True))
        for i in range(replay.activity.shape[1])
    )
    detail = charts.chart(
        "neuron",
        "One neuron and the steering",
        "curvature, 1/m",
        [
            charts.Curve("steering", "steered", np.empty(0)),
            charts.Curve("state of the neuron, on its own scale", "state", np.empty(0)),
        ],
        span=span,
        limits=steering_limits(drives),
        ends=0,
    )
    return (
        f'<section class="detail"><p class="soft" id="neuron-line"><b id="neuron-name"></b> '
        f'<span id="neuron-facts"></span></p>{detail}<div class="controls"><label>Colour the road by '
        f'<select id="neuron-select"><option value="">no neuron</option>{options}</select></label></div></section>'
    )


def _strip(k: int, label: str, count: int, span: float) -> str:
    gap = 1 if count <= 24 else 5
    labels = "".join(
        f'<span style="top:{100 * (i + 0.5) / count:.2f}%">{i + 1}</span>'
        for i in range(count)
        if gap == 1 or (i + 1) % gap == 0
    )
    ramp = ",".join(palette.SEQUENTIAL_SAMPLES)
    return (
        f'<figure class="chart neurons" id="neurons-{k}"><figcaption><span><b>Neurons of '
        f'<span class="policy-{k}">{escape(label)}</span></b> (state h): point at one for its curve, click to colour '
        'the road by it</span><span class="key">each row: 2nd<i class="scale" '
        f'style="background:linear-gradient(to right,{ramp})"></i>98th percentile after the first second</span>'
        "</figcaption>"
        f'<div class="axes" style="--rows:{count}"><div class="y" aria-hidden="true">{labels}</div><div class="plot">'
        f'<canvas id="activity-{k}" role="img" aria-label="Activity of {count} neurons over time"></canvas>'
        f'<i class="row" hidden></i><i class="veil"></i><i class="end end-{k}"></i><i class="cursor"></i></div>'
        f"{charts.time_axis(span)}</div></figure>"
    )
