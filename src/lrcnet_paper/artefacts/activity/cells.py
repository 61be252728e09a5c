"""Figures: the activity of neurons along the driven road, seen from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts import lane_keeping
from lrcnet_paper.artefacts.activity.figures import draw_roads, thin_drive
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.driving_runs import POLICIES
from lrcnet_paper.artefacts.neuron_drives import drive_run
from lrcnet_paper.artefacts.policy_measurements import GATED, SEASONS, judge_against_gated, measured_groups
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.provenance import format_provenances
from lrcnet_paper.results.verdict import NOT_MEASURED, judge_count

if TYPE_CHECKING:
    from lrcnet_paper.interpret import WatchedDrive
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group

TITLE = "Neural activity on the road"
SAYS = "The activity of LRCU-S changes gently along the road, and single cells stand for left and right turns."

# In winter, cell 1 of LRCU-S turns left and cell 2 right in the paper's text, and the other way round in its caption.
CLAIMED: Mapping[str, Any] = {"cells": (1, 2), "gentle": "lrcu-s", "sides": ("left", "right")}

NAME = "activity"
# Metres between the stretches for which swings are stored, and the shortest stretch over which models are compared.
STRETCH, SHORTEST = 50.0, 100.0
ROLES = ("cell 1", "cell 2", "turns left most", "turns right most")
RULE = (
    "A cell turns left if the correlation of its activity with the steered curvature (left is positive) is 0.5 or "
    "more, and right if it is -0.5 or less. The most road-like cells are those with the largest and the smallest "
    "correlation."
)


def analyse(folder: Path) -> dict[str, Any]:
    """Record the drives of each season: path, and activity of cells 1 and 2 and of the most road-like cells."""
    provenance, drives_by_season = drive_run(folder)
    return {
        "source": provenance,
        **{season: [measure(drive) for drive in drives] for season, drives in drives_by_season.items()},
    }


def measure(drive: WatchedDrive) -> dict[str, Any]:
    """Return a drive with four cells, thinned for a picture, and how often all neurons swing.

    Swings per km, mean of all neurons, are stored over the first 50, 100, 150, ... metres, so that policies can be
    compared over the stretch that all of them drove.
    """
    from lrcnet_paper.interpret import correlation, swings, turning_cells

    r = correlation(drive.activity, drive.curvature)
    cells = dict(zip(ROLES, (0, 1, *turning_cells(r)), strict=True))
    return {
        **thin_drive(drive, cells, r),
        "swings": [
            round(float(swings(drive.activity[: drive.steps_within(metres)], metres).mean()), 3)
            for metres in _stretches(drive.metres)
        ],
        "metres": round(drive.metres, 1),
        "arrived": drive.arrived,
    }


def _stretches(metres: float) -> list[float]:
    """Return 50, 100, ... up to a distance; the distance itself if it is shorter."""
    return [STRETCH * k for k in range(1, int(metres / STRETCH) + 1)] or [metres]


class Road(NamedTuple):
    """The road of a season on which policies are compared: its number in the plan, and the metres to compare over."""

    number: int
    stretch: float


def common_road(groups: Mapping[str, Group], season: str) -> Road:
    """Return the first road on which all policies arrive, else the one on which the shortest drive is longest.

    The stretch, a multiple of 50 metres, is what all policies drove of it.
    """
    drives = [run.analyses[NAME][season] for group in groups.values() for run in group.runs]
    by_road = list(zip(*drives, strict=False))
    shortest = [min(drive["metres"] for drive in road) for road in by_road]
    arrived = (i for i, road in enumerate(by_road) if all(drive["arrived"] for drive in road))
    number = next(arrived, max(range(len(by_road)), key=shortest.__getitem__, default=0))
    return Road(number, STRETCH * int((shortest[number] if by_road else 0.0) / STRETCH))


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate the turning side of cells and the swings of neurons, and draw roads coloured by activity."""
    groups = measured_groups(runs, NAME)
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups, season) for season in SEASONS] if groups else [],
        claims=_claims(groups),
        skipped=[] if groups else ["neural activity: no lane-keeping policy has been driven"],
        differences=driving.end_to_end_differences(groups),
    )


def _swings(groups: Mapping[str, Group], model: str, season: str) -> Estimate | None:
    """Return the swings per km over the stretch that all policies drove; None if it is too short to compare."""
    group, road = groups.get(model), common_road(groups, season)
    if group is None or road.stretch < SHORTEST:
        return None
    index = round(road.stretch / STRETCH) - 1
    return mean_over_seeds(
        {run.result.seed: run.analyses[NAME][season][road.number]["swings"][index] for run in group.runs}, digits=1
    )


def _describe_cell(drive: Mapping[str, Any], role: str) -> str:
    from lrcnet_paper.interpret import side

    cell = drive["cells"][role]
    turns = side(cell["r"])
    return f"cell {cell['number']}: r = {cell['r']:+.2f}{'' if turns == 'neither' else f', {turns}'}"


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    roads = {season: common_road(groups, season) for season in SEASONS}
    for model in [policy.name for policy in POLICIES]:
        for season, road in roads.items():
            group = groups.get(model)
            if group is None:
                rows.append((palette.model_label(model), season, *[None] * 8))
                continue
            drives = [run.analyses[NAME][season][road.number] for run in group.runs]
            cells = [_describe_cell(drives[0], role) for role in drives[0]["cells"]]
            rows.append(
                (
                    palette.model_label(model),
                    season,
                    *cells,
                    _swings(groups, model, season),
                    sum(drive["metres"] for drive in drives) / len(drives),
                    f"{sum(drive['arrived'] for drive in drives)} of {len(drives)}",
                    len(group.runs),
                )
            )
    return Table(
        "cells",
        "Turning side of cells (first seed), and swings of neurons (all seeds)",
        (
            "model",
            "season",
            "cell 1",
            "cell 2",
            "most left",
            "most right",
            "swings per km, mean of all neurons",
            "driven (m)",
            "arrived",
            "seeds",
        ),
        rows,
        f"{RULE} A swing is a change from a neuron's lowest to its highest activity, or back. {_describe_roads(roads)} "
        "The numbering of the cells is an accident of the initial weights.",
    )


def _describe_roads(roads: Mapping[str, Road]) -> str:
    which = " and ".join(f"{road.stretch:g} m of road {road.number + 1} in {season}" for season, road in roads.items())
    return (
        "All numbers are from the first road of the test on which every policy arrives or, if there is none, the one "
        f"that all follow furthest; swings are counted over the stretch that all of them drove: {which}."
    )


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    claims = [
        judge_against_gated(
            f"{season.capitalize()}: the activity of LRCU-S varies more gently than that of any gated unit.",
            "“very gentle” against “scattered”",
            "lrcu-s",
            groups,
            {model: _swings(groups, model, season) for model in ("lrcu-s", *GATED)},
            larger_is_better=False,
            unit=" swings per km",
        )
        for season in SEASONS
    ]
    return [*claims, _sides_claim(groups.get("lrcu-s"), common_road(groups, "winter").number)]


def _sides_claim(group: Group | None, number: int) -> Claim:
    """Judge over all seeds whether cells 1 and 2 turn to opposite sides in winter, which the paper claims."""
    from lrcnet_paper.interpret import side

    measured, verdict = "–", NOT_MEASURED
    if group is not None:
        under = driving.conditions(group)
        by_seed, opposite = [], 0
        for run in group.runs:
            cells = run.analyses[NAME]["winter"][number]["cells"]
            sides = [side(cells[role]["r"]) for role in ("cell 1", "cell 2")]
            opposite += set(sides) == {"left", "right"}
            by_seed.append(f"seed {run.result.seed}: {' and '.join(sides)}")
        seeds = len(group.runs)
        measured = "; ".join(by_seed)
        verdict = judge_count(opposite, seeds, seeds=seeds, under=under)
    return Claim(
        "Winter: one of the cells 1 and 2 of LRCU-S turns left, the other right.",
        "left and right (text), right and left (caption)",
        measured,
        verdict,
    )


def _picture(groups: Mapping[str, Group], season: str) -> Picture:
    number = common_road(groups, season).number
    drives = {model: group.runs[0].analyses[NAME][season][number] for model, group in groups.items()}
    sources = {model: group.runs[0].analyses[NAME]["source"] for model, group in groups.items()}
    return Picture(
        f"roads-{season}",
        f"Activity of neurons along a drive in {season}, seen from above. The upper rows show the cells that the paper "
        "draws, the lower rows the most road-like cells. A cell rests at its median on straight road.",
        "A grid of maps, models across and cells down: the driven road as a line, coloured by the neuron's activity "
        "below and above rest; a cross where the car crashed, and the road beyond it as a broken line.",
        draw_roads({model: (drive, sources[model]) for model, drive in drives.items()}, _finding(groups, season)),
        details=f"Weights: {format_provenances(sources.values())}.",
    )


def _finding(groups: Mapping[str, Group], season: str) -> str:
    """Say how many of the drawn drives arrive, and how many of all seeds over the same road."""
    number = common_road(groups, season).number
    arrived = [[run.analyses[NAME][season][number]["arrived"] for run in group.runs] for group in groups.values()]
    seeds = join_words(sorted({group.runs[0].result.seed for group in groups.values()}))
    return (
        f"Seed {seeds} as an example: {sum(one[0] for one in arrived)} of {len(arrived)} drives in {season} arrive; "
        f"over all seeds {sum(map(sum, arrived))} of {sum(map(len, arrived))} do"
    )


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=lane_keeping.runs, render=render, wants=driving.wants, analyse=analyse, says=SAYS
)
