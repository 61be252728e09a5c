"""Figures: the activity of neurons along the driven road, seen from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts.activity.figures import draw_roads, thinned_drive
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.attention.similarity import GATED, SEASONS, ahead, conditions, measured
from lrcnet_paper.artefacts.correlation import driven_by
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.provenance import format_provenances
from lrcnet_paper.results.verdict import Verdict, Word
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.interpret import WatchedDrive
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Neural activity on the road"

# In winter the paper's text has cell 1 of LRCU-S turn left and cell 2 right, its caption the other way round.
CLAIMED: Mapping[str, Any] = {"cells": (1, 2), "gentle": "lrcu-s", "sides": ("left", "right")}

NAME = "activity"
ROLES = ("cell 1", "cell 2", "turns left most", "turns right most")
RULE = (
    "A cell turns left if its activity correlates with the steered curvature (left is positive) by 0.5 or more, right "
    "if by -0.5 or less. The most road-like cells are those of the largest and of the smallest correlation."
)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """The five lane-keeping policies."""
    from lrcnet_paper.artefacts import lane_keeping

    return lane_keeping.runs(check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """Whether a run is one of the policies."""
    from lrcnet_paper.artefacts import driving_runs

    return driving_runs.wants(result)


def analyse(folder: Path) -> dict[str, Any]:
    """One drive per season: its path, and the activity of cells 1 and 2 and of the most road-like ones."""
    came_from, driven = driven_by(folder)
    return {"source": came_from, **measure({season: drives[0] for season, drives in driven.items()})}


def measure(driven: Mapping[str, WatchedDrive]) -> dict[str, Any]:
    """season -> a drive with four cells, thinned for a picture, and how restless all neurons are."""
    from lrcnet_paper.interpret import correlation, swings, turning_cells

    found = {}
    for season, one in driven.items():
        r = correlation(one.activity, one.curvature)
        cells = dict(zip(ROLES, (0, 1, *turning_cells(r)), strict=True))
        found[season] = {
            **thinned_drive(one, cells, r),
            "swings": round(float(swings(one.activity, one.metres).mean()), 3),
            "metres": round(one.metres, 1),
            "arrived": one.arrived,
        }
    return found


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Which cell turns which way, how restless neurons are, and the roads coloured by activity."""
    groups = measured(runs, NAME)
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups, season) for season in SEASONS] if groups else [],
        claims=_claims(groups),
        skipped=[] if groups else ["neural activity: no lane-keeping policy has been driven"],
    )


def _swings(group: Group | None, season: str) -> Estimate | None:
    if group is None:
        return None
    return mean_over_seeds([run.analyses[NAME][season]["swings"] for run in group.runs], digits=1)


def _cell(found: Mapping[str, Any], role: str) -> str:
    from lrcnet_paper.interpret import side

    cell = found["cells"][role]
    way = side(cell["r"])
    return f"cell {cell['number']}: r = {cell['r']:+.2f}{'' if way == 'neither' else f', {way}'}"


def _table(groups: Mapping[str, Group]) -> Table:
    from lrcnet_paper.artefacts.driving_runs import POLICIES

    rows: list[tuple[Cell, ...]] = []
    for model in [policy.name for policy in POLICIES]:
        for season in SEASONS:
            group = groups.get(model)
            if group is None:
                rows.append((palette.model_label(model), season, *[None] * 7))
                continue
            first = group.runs[0].analyses[NAME]
            cells = [_cell(first[season], role) for role in first[season]["cells"]]
            driven = [run.analyses[NAME][season]["metres"] for run in group.runs]
            rows.append(
                (
                    palette.model_label(model),
                    season,
                    *cells,
                    _swings(group, season),
                    sum(driven) / len(driven),
                    len(group.runs),
                )
            )
    return Table(
        "cells",
        "Cells and the way they turn (first seed), and how restless neurons are (all seeds)",
        (
            "model",
            "season",
            "cell 1",
            "cell 2",
            "most left",
            "most right",
            "swings per km, mean of all neurons",
            "driven (m)",
            "seeds",
        ),
        rows,
        f"{RULE} A swing is a way from a neuron's lowest to its highest activity, or back. Which cell is the first is "
        "an accident of the initial weights.",
    )


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    claims = []
    for season in SEASONS:
        ours = _swings(groups.get("lrcu-s"), season)
        others = {m: e for m in GATED if (e := _swings(groups.get(m), season)) is not None}
        calmest = min(others, key=lambda m: others[m].mean) if len(others) == len(GATED) else None
        shown = "–"
        if ours is not None and calmest is not None:
            shown = f"{ours} against {others[calmest]} swings per km ({palette.model_label(calmest)})"
        used = [g for m in ("lrcu-s", calmest) if m is not None and (g := groups.get(m)) is not None]
        claims.append(
            Claim(
                f"{season.capitalize()}: the activity of LRCU-S varies more gently than that of any gated unit.",
                "“very gentle” against “scattered”",
                shown,
                ahead((ours, others.get(calmest or "")), conditions(*used), larger_is_better=False),
            )
        )
    return [*claims, _sides_claim(groups.get("lrcu-s"))]


def _sides_claim(group: Group | None) -> Claim:
    """In winter, where the paper says it; over the seeds."""
    from lrcnet_paper.interpret import side

    shown, verdict = "–", Verdict("open", ("not measured",))
    if group is not None:
        under = conditions(group)
        told, opposite = [], 0
        for run in group.runs:
            cells = run.analyses[NAME]["winter"]["cells"]
            sides = [side(cells[role]["r"]) for role in ("cell 1", "cell 2")]
            opposite += set(sides) == {"left", "right"}
            told.append(f"seed {run.result.seed}: {' and '.join(sides)}")
        word: Word = "open" if under.smoke else "reproduced" if opposite == len(group.runs) else "not reached"
        notes = (*under.notes, *(["smoke runs"] if under.smoke else []), *(["1 seed"] if len(group.runs) == 1 else []))
        shown, verdict = "; ".join(told), Verdict(word, notes)
    return Claim(
        "Winter: of cells 1 and 2 of LRCU-S one turns left and the other right.",
        "left and right (text), right and left (caption)",
        shown,
        verdict,
    )


def _picture(groups: Mapping[str, Group], season: str) -> Picture:
    first = {model: group.runs[0].analyses[NAME] for model, group in groups.items()}
    return Picture(
        f"roads-{season}",
        f"Activity of neurons along a drive in {season}, seen from above; the dot is the start. Above, the cells that "
        f"the paper draws, below, the most road-like ones. {RULE} Weights: "
        f"{format_provenances(one['source'] for one in first.values())}.",
        "A grid of maps, models across and cells down: the driven road as a line, coloured by the neuron's activity "
        "from its lowest to its highest.",
        draw_roads({model: (one[season], one["source"]) for model, one in first.items()}),
    )


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
