"""One offline page that replays drives: camera, steering, map and neurons, for phone, desk and paper."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from importlib import resources
from pathlib import Path

from lrcnet.pages import tables
from lrcnet.pages.content import Cell, Table
from lrcnet.pages.html import write_page
from lrcnet_paper.driving import HEIGHT, WIDTH
from lrcnet_paper.report import drive_charts as charts
from lrcnet_paper.report import drive_panels as panels
from lrcnet_paper.report.drive_data import data_element
from lrcnet_paper.report.drive_map import make_road_maps
from lrcnet_paper.report.drive_set import DriveSet
from lrcnet_paper.report.replay import Replay
from lrcnet_paper.results.provenance import format_provenance, provenance_of

PROGRAM = ("drive_road.js", "drive_picture.js", "drive_map.js", "drive_curves.js", "drive_wheel.js", "drive_page.js")
"""The files of the page's program; the last one runs it."""


def write_drives(drives: DriveSet, path: str | os.PathLike[str]) -> Path:
    """Write the page.

    Args:
        drives: the drives of one or two policies.
        path: the HTML file.

    Raises:
        ValueError: for untrained weights outside the smoke budget.
        ImportError: if Pillow is not installed.
    """
    setting = drives.setting
    seasons = " and ".join(dict.fromkeys(setting.weather(season) for season in drives.seasons))
    weights = "; ".join(format_provenance(provenance_of(trained)) for trained in drives.trained)
    title = f"{' and '.join(drives.labels)} drive{'' if len(drives.trained) > 1 else 's'}"
    road_maps = make_road_maps(
        {season: [one.replay for one in drives.drives if one.season == season] for season in drives.seasons}
    )
    first_road = road_maps[drives.seasons[0]]
    span = max(drive.replay.seconds for drive in drives.drives) * charts.MARGIN
    commands = "; ".join(f"<code>{escape(trained.spec.command())}</code>" for trained in drives.trained)
    script = "\n".join(_asset(name) for name in PROGRAM)
    return write_page(
        path,
        f"{title}: {drives.drives[0].replay.ending}",
        f'<header><h1>{escape(title)}</h1><p class="soft">In {escape(setting.place)}; season: {escape(seasons)}. '
        f"Weights: {escape(weights)}.</p></header>"
        f'<main id="drive" style="--now:0" class="policies-{len(drives.trained)}">'
        "<noscript><p class='note'>The camera pictures, the neurons and the controls need JavaScript; the curves of "
        "the first drive do not.</p></noscript>"
        f'<div class="stage" id="stage"><div class="side">{panels.player(drives)}{panels.curves(drives, span)}'
        f"{panels.one_neuron(drives, span)}</div>"
        f'<div class="side">{panels.maps(drives, first_road)}{panels.neurons(drives, span)}</div></div>'
        f"{_facts(drives)}</main>"
        f"<footer><p class='soft'>Written by <code>lrcnet drive</code>; trained by {commands}.</p></footer>"
        f'{data_element(drives, road_maps, span)}<script>"use strict";(() => {{\n{script}\n}})();</script>',
        css=_asset("drive_page.css"),
    )


def _facts(drives: DriveSet) -> str:
    from lrcnet_paper.training.result import versions

    setting, first = drives.setting, drives.drives[0].replay
    noisy = any(drives.noises)
    facts: dict[str, str] = {}
    for label, trained, replay in zip(
        drives.labels, drives.trained, drives.select(drives.seasons[0], drives.noises[0]), strict=True
    ):
        came_from, spec = provenance_of(trained), trained.spec
        loss = f"{came_from['loss'][0]} {came_from['loss'][1]:.4g}" if came_from["loss"] else "loss unknown"
        solver = f", {spec.solver}" if spec.solver else ""
        facts[label] = (
            f"{replay.activity.shape[1]} neurons{solver}; {came_from['checkpoint']}, after {came_from['unit']} "
            f"{came_from['done']}, {loss}; trained on {spec.task} {spec.variant}, seed {spec.seed}, "
            f"budget {spec.budget}"
        )
    facts["world"] = setting.place
    facts["noise"] = (
        f"Gaussian, on pixels from 0 to 1, clipped; seed {setting.seed}. The pictures show noise of the same variance "
        "with other random numbers."
        if noisy
        else "none"
    )
    facts["pictures"] = (
        f"{HEIGHT}×{WIDTH} pixels as the policy sees them, {30 / first.frame_interval:.3g} per second, stored as WebP"
    )
    if first.attention is not None:
        facts["attention"] = (
            "VisualBackProp of the convolutions, averaged over five frames and 10×10 pixels, with 1 as its "
            "largest value in each frame"
        )
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        f'<section id="facts"><h2>All drives of this page</h2>{tables.to_html(_outcomes(drives))}'
        f"<h2>Where they come from</h2>{_list(facts)}</section>"
    )


def _list(facts: Mapping[str, str]) -> str:
    rows = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _outcomes(drives: DriveSet) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for season in drives.seasons:
        for noise in drives.noises:
            replays = drives.select(season, noise)
            conditions = f"{drives.setting.weather(season)}, {f'noise {noise:g}' if noise else 'no noise'}"
            rows.append((conditions, *(_outcome(replay) for replay in replays)))
    return Table("outcomes", "How each drive ended", ("conditions", *drives.labels), rows)


def _outcome(replay: Replay) -> str:
    return f"{'✕' if replay.crashed else '✓'} {replay.ending}, {replay.seconds:.1f} s"


def _asset(name: str) -> str:
    return resources.files("lrcnet_paper.report").joinpath(name).read_text(encoding="utf-8")
