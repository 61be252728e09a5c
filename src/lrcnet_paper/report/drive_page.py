"""One offline page that replays a drive: camera, steering, map and neurons, for phone, desk and paper."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrcnet.pages import palette
from lrcnet.pages.html import write_page
from lrcnet_paper.driving import HEIGHT, ROAD_WIDTH, STEP, WIDTH
from lrcnet_paper.report import drive_charts as charts
from lrcnet_paper.report import drive_pictures as pictures
from lrcnet_paper.report.replay import REASONS, Replay
from lrcnet_paper.results.provenance import format_provenance, provenance_of

if TYPE_CHECKING:
    from lrcnet_paper.training.trained_network import TrainedNetwork

WORLDS = {
    "own": "the project's own synthetic world",
    "vista": "VISTA",
    "carracing": "gymnasium's CarRacing",
}
PATHS = {"own": "middle of the lane", "vista": "recorded path", "carracing": "middle of the track"}
"""The path that the expert of each world follows."""
CLOSE_UP = (-24, -17, 48, 24)
"""View box of the close-up, m: left, top, width, height around the car."""
CLOSE_UP_BAR = 5
"""Length of its scale bar, m."""
SPEEDS = ("0.5", "1", "2", "4")


@dataclass(frozen=True)
class Setting:
    """Where and how a drive took place.

    Attributes:
        world: "own", "vista" or "carracing".
        season: the season that was asked for.
        road: seed of the road and its appearance.
        noise: variance of the noise on pixels from 0 to 1.
        seed: seed of the noise.
        trace: name of the user's own trace, which has its own road and season; "" for none.
    """

    world: str
    season: str
    road: int
    noise: float
    seed: int
    trace: str = ""

    @property
    def place(self) -> str:
        """The world and the road."""
        return f"{WORLDS[self.world]}, {f'trace {self.trace}' if self.trace else f'road {self.road}'}"

    @property
    def weather(self) -> str:
        """The season, as far as the world has one."""
        if self.trace:
            return "as recorded"
        return "always summer" if self.world == "carracing" else self.season


def write_drive(trained: TrainedNetwork, replay: Replay, setting: Setting, path: str | os.PathLike[str]) -> Path:
    """Write the page.

    Args:
        trained: the network that drove.
        replay: the drive.
        setting: world and conditions of the drive.
        path: the HTML file.

    Raises:
        ValueError: for untrained weights outside the smoke budget.
        ImportError: if Pillow is not installed.
    """
    name = palette.model_label(trained.spec.model)
    noise = f"noise of variance {setting.noise:g}" if setting.noise else "no noise"
    where = f"In {setting.place}; season: {setting.weather}; {noise}."
    title = f"{name} drives"
    road_map = charts.make_map(replay.centre_line, replay.x, replay.y, replay.direction)
    return write_page(
        path,
        f"{title}: {replay.ending}",
        f'<header><h1>{escape(title)}</h1><p class="soft">{escape(where)} '
        f"Weights: {escape(format_provenance(provenance_of(trained)))}.</p>{_ending(replay)}</header>"
        f'<main id="drive" style="--now:0;--end:{100 / charts.MARGIN:.3f}%" class="{_outcome(replay)}">'
        "<noscript><p class='note'>The camera picture and the controls need JavaScript; the curves do not."
        "</p></noscript>"
        f'<div class="stage"><div class="side">{_player(replay)}{_curves(replay, name)}</div>'
        f'<div class="side">{_map(road_map, replay, PATHS[setting.world])}{_neurons(replay)}</div></div>'
        f"{_facts(trained, replay, setting)}</main>"
        "<footer><p class='soft'>Written by <code>lrcnet drive</code>; the network was trained by "
        f"<code>{escape(trained.spec.command())}</code>.</p></footer>"
        f"{_sheets(replay)}{_data(replay, road_map)}<script>{_asset('drive_page.js')}</script>",
        css=_asset("drive_page.css"),
    )


def _outcome(replay: Replay) -> str:
    """Return the CSS class of the outcome."""
    return "crashed" if replay.crashed else "safe"


def _ending(replay: Replay) -> str:
    mark = "✕" if replay.crashed else "✓"
    return (
        f'<p class="ending {_outcome(replay)}"><span aria-hidden="true">{mark}</span> '
        f"<b>{escape(replay.ending[0].upper() + replay.ending[1:])}</b>, {replay.seconds:.1f} s: "
        f"{escape(REASONS[replay.status])}.</p>"
    )


def _player(replay: Replay) -> str:
    words = replay.ending[0].upper() + replay.ending[1:]
    overlay = (
        '<label class="toggle"><input type="checkbox" id="attention"> Attention<span class="ramp" '
        'aria-hidden="true"></span></label>'
        if replay.attention is not None
        else ""
    )
    speeds = "".join(f'<option value="{s}"{" selected" if s == "1" else ""}>{s}×</option>' for s in SPEEDS)
    numbers = "".join(
        f'<div><dt>{label}</dt><dd id="{name}">–</dd></div>'
        for name, label in (
            ("current-time", "time"),
            ("current-distance", "distance"),
            ("current-policy", "policy steers"),
            ("current-expert", "expert's advice"),
            ("current-offset", "off the path"),
            ("current-speed", "speed"),
        )
    )
    return (
        '<section class="player" aria-label="Replay"><div class="screen">'
        f'<canvas id="picture" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Camera picture">'
        "</canvas>"
        f'<p id="over" class="{_outcome(replay)}" hidden>{escape(words)}</p></div>'
        '<div class="controls"><button type="button" id="play" aria-pressed="false">Play</button>'
        f'<input type="range" id="scrub" min="0" max="{replay.steps}" step="1" value="0" '
        'aria-label="Moment of the drive">'
        f'<label>Speed <select id="rate">{speeds}</select></label>{overlay}</div>'
        f'<dl class="numbers" aria-live="off">{numbers}</dl>'
        '<p class="note keys">Keys: space plays and pauses; ← and → jump by 1 s, with Shift by one frame; + and − '
        f"change the speed{'; a shows the attention' if replay.attention is not None else ''}.</p>"
        '<div class="film" aria-hidden="true"></div></section>'
    )


def _map(road_map: charts.Map, replay: Replay, path: str) -> str:
    """Return the map of the whole drive and the close-up of the car."""
    box = " ".join(f"{number:.2f}" for number in road_map.box)
    size = road_map.box[2] / 100
    cross = _cross(1.6 * size, road_map.x[-1], road_map.y[-1]) if replay.crashed else ""
    near = _cross(1.2, road_map.x[-1], road_map.y[-1]) if replay.crashed else ""
    start = f'<circle class="start" cx="{road_map.x[0]:.2f}" cy="{road_map.y[0]:.2f}" r="{0.8 * size:.2f}"/>'
    arrow = (
        f"M{3 * size:.2f} 0L{-1.5 * size:.2f} {1.6 * size:.2f}L{-0.6 * size:.2f} 0L{-1.5 * size:.2f} {-1.6 * size:.2f}Z"
    )
    paths = (
        f'<path class="centre-line" d="{road_map.centre_line}"/>'
        f'<path class="ahead" d="{road_map.driven}"/><path class="driven" d=""/>'
    )
    cross_key = "; a cross marks the end" if replay.crashed else ""
    return (
        '<section class="maps"><figure id="map"><figcaption><span><b>Seen from above</b></span>'
        f'<span class="key"><i class="centre-line"></i>{path}</span>'
        '<span class="key"><i class="policy"></i>driven</span>'
        '<span class="key"><i class="ahead"></i>ahead</span></figcaption>'
        f'<svg viewBox="{box}" role="img" aria-label="Map of the road and the driven path">'
        f'{paths}{start}<g class="car"><path d="{arrow}"/></g>{cross}</svg>'
        f'<p class="bar"><i style="width:{100 * road_map.bar_share:.2f}%"></i>'
        f"<span>{road_map.bar:g} m</span></p></figure>"
        '<figure id="close"><figcaption><span><b>Close-up</b>: ahead is up; the drive ends '
        f"outside the band of {ROAD_WIDTH:g} m{cross_key}</span></figcaption>"
        f'<svg viewBox="{" ".join(map(str, CLOSE_UP))}" role="img" aria-label="Close-up of the car in its lane">'
        f'<g class="world"><path class="band" style="stroke-width:{ROAD_WIDTH:g}" d="{road_map.centre_line}"/>'
        f"{paths}</g>"
        # The car turns around its rear axle, which is the origin.
        '<path class="body" d="M-.9 .9V-2.6L0 -3.6L.9 -2.6V.9Z"/>'
        f'<g class="world">{near}</g></svg>'
        f'<p class="bar"><i style="width:{100 * CLOSE_UP_BAR / CLOSE_UP[2]:.2f}%"></i>'
        f"<span>{CLOSE_UP_BAR} m</span></p></figure></section>"
    )


def _cross(half: float, x: float, y: float) -> str:
    return (
        f'<path class="crash" d="M{x - half:.2f} {y - half:.2f}L{x + half:.2f} {y + half:.2f}'
        f'M{x - half:.2f} {y + half:.2f}L{x + half:.2f} {y - half:.2f}"/>'
    )


def _curves(replay: Replay, name: str) -> str:
    seconds, limit = replay.seconds, ROAD_WIDTH / 2
    expert = charts.Curve("expert", "expert", replay.advice)
    policy = charts.Curve(name, "policy", replay.action)
    # Off the road the expert would steer hard; an axis that covers this would flatten all other curves.
    most = max(0.02, 2 * float(np.abs(replay.action).max()))
    steering = charts.chart(
        "steering",
        "Steering",
        "curvature, 1/m; left is positive",
        [expert, policy],
        seconds=seconds,
        covered=np.concatenate([replay.action, replay.advice.clip(-most, most)]),
        least=0.02,
    )
    offset = charts.chart(
        "offset",
        "Off the path",
        "m; left is positive",
        [charts.Curve("car", "policy", replay.offset)],
        seconds=seconds,
        covered=replay.offset,
        least=1.0,
        limits=(-limit, limit),
    )
    speed = charts.chart(
        "speed",
        "Speed",
        "m/s",
        [charts.Curve("car", "policy", replay.speed)],
        seconds=seconds,
        covered=replay.speed,
        least=4.0,
    )
    return f'<section class="curves">{steering}{offset}{speed}</section>'


def _neurons(replay: Replay) -> str:
    count = replay.activity.shape[1]
    gap = 1 if count <= 24 else 5
    labels = "".join(
        f'<span style="top:{100 * (k + 0.5) / count:.2f}%">{k + 1}</span>'
        for k in range(count)
        if gap == 1 or (k + 1) % gap == 0
    )
    ramp = ",".join(palette.SEQUENTIAL_SAMPLES)
    return (
        '<section class="activity"><figure class="chart neurons" id="neurons"><figcaption><span><b>Neurons</b> '
        f'(state h, one row each){_turning_neurons(replay)}</span><span class="key">each row: lowest'
        f'<i class="scale" style="background:linear-gradient(to right,{ramp})"></i>highest</span></figcaption>'
        f'<div class="axes" style="--rows:{count}"><div class="y" aria-hidden="true">{labels}</div><div class="plot">'
        f'<img alt="Activity of {count} neurons over time" style="width:{100 / charts.MARGIN:.3f}%" '
        f'src="{pictures.colour_rows(replay.activity)}"><i class="veil"></i>{charts.MARKS}</div>'
        f"{charts.time_axis(replay.seconds)}</div></figure></section>"
    )


def _turning_neurons(replay: Replay) -> str:
    """Return a phrase that names the neurons that follow the steering most closely."""
    import torch

    from lrcnet_paper.interpret import correlation, turning_cells

    if replay.steps < 2:
        return ""
    r = correlation(torch.from_numpy(replay.activity), torch.from_numpy(replay.action))
    left, right = turning_cells(r)
    words = []
    if r[left] > 0:
        words.append(f"number {left + 1} rises most with steering to the left (r = {r[left]:.2f})")
    if r[right] < 0:
        words.append(f"number {right + 1} rises most with steering to the right (r = {_minus(r[right])})")
    return f"; {escape(', '.join(words))}" if words else ""


def _minus(number: Any) -> str:
    return f"{float(number):.2f}".replace("-", "−")


def _facts(trained: TrainedNetwork, replay: Replay, setting: Setting) -> str:
    from lrcnet_paper.training.result import versions

    came_from, spec = provenance_of(trained), trained.spec
    loss = f"{came_from['loss'][0]} {came_from['loss'][1]:.4g}" if came_from["loss"] else "unknown"
    facts: Mapping[str, str] = {
        "checkpoint": f"{came_from['checkpoint']}, after {came_from['unit']} {came_from['done']}",
        "model": f"{palette.model_label(spec.model)}, {replay.activity.shape[1]} neurons"
        + (f", {spec.solver}" if spec.solver else ""),
        "trained on": f"{spec.task} {spec.variant}, seed {spec.seed}, budget {spec.budget}",
        "loss": loss,
        "world": setting.place,
        "season": setting.weather,
        "noise": (
            f"Gaussian, variance {setting.noise:g} on pixels from 0 to 1, clipped; seed {setting.seed}"
            if setting.noise
            else "none"
        ),
        "drive": f"{replay.ending}, {replay.seconds:.1f} s, {replay.steps} steps of 1/30 s",
        "pictures": f"{HEIGHT}×{WIDTH} pixels as the policy sees them, {30 / replay.frame_interval:.3g} per second, "
        "stored as JPEG",
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
    }
    if replay.attention is not None:
        facts = {**facts, "attention": "VisualBackProp of the convolutions, scaled from 0 to 1 in each picture"}
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<section id="facts"><h2>This drive</h2><dl class="facts">{rows}</dl></section>'


def _sheets(replay: Replay) -> str:
    def images(kind: str, urls: list[str]) -> str:
        return "".join(f'<img class="{kind}" alt="" src="{url}">' for url in urls)

    attention = [] if replay.attention is None else pictures.sheets(replay.attention, pictures.LARGEST // 5)
    frames = pictures.sheets(replay.frames)
    return f"<div hidden>{images('frame-sheet', frames)}{images('attention-sheet', attention)}</div>"


def _data(replay: Replay, road_map: charts.Map) -> str:
    data = {
        "step": STEP,
        "interval": replay.frame_interval,
        "frames": len(replay.frames),
        "columns": pictures.COLUMNS,
        "rows": pictures.ROWS,
        "margin": charts.MARGIN,
        "action": _numbers(replay.action, 5),
        "advice": _numbers(replay.advice, 5),
        "offset": _numbers(replay.offset, 3),
        "speed": _numbers(replay.speed, 2),
        "distance": _numbers(replay.distance, 2),
        "x": _numbers(road_map.x, 2),
        "y": _numbers(road_map.y, 2),
        "direction": _numbers(np.degrees(road_map.direction), 2),
    }
    # "</" would end the script element; JSON can spell "<" differently.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>'


def _numbers(values: NDArray[np.float64], digits: int) -> list[float | None]:
    """Round values for JSON, with null where the world does not know the quantity."""
    return [round(value, digits) if np.isfinite(value) else None for value in values.tolist()]


def _asset(name: str) -> str:
    return resources.files("lrcnet_paper.report").joinpath(name).read_text(encoding="utf-8")
