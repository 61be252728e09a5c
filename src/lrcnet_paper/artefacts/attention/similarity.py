"""Figures: the attention of the lane-keeping policies, and how much noise in the frames changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts import lane_keeping
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.attention.figures import draw_boxes, draw_grid, pack_map
from lrcnet_paper.artefacts.attention.regions import measure_shares, region_claims, region_pictures, region_tables
from lrcnet_paper.artefacts.driving_runs import POLICIES, Model
from lrcnet_paper.artefacts.policy_measurements import (
    GATED,
    PRIMARY_READING,
    READING_NAMES,
    READING_NOTE,
    SEASONS,
    judge_against_gated,
    measured_groups,
)
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.driving.closed_loop import READINGS, NoiseReading
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.provenance import format_provenances, provenance_of
from lrcnet_paper.road_seeds import EXAMPLE_ROAD

if TYPE_CHECKING:
    from torch import Tensor

    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group

TITLE = "Attention of the lane-keeping policies under noise"
SAYS = "Noise changes the attention of LRCUs less than that of gated units, and LRCUs attend to the horizon."

# The paper shows box plots of 1,600 pairs per season without numbers; the boxes of the LRCUs lie closest to 1.
CLAIMED: Mapping[str, Any] = {"pairs": 1600, "variances": (0.1, 0.2), "most similar": ("lrcu-a", "lrcu-s")}

NAME = "attention"
VARIANCES: tuple[float, ...] = CLAIMED["variances"]
# Metres of the road in the grid's scene, which lies half-way along it.
EXAMPLE_LENGTH = 80.0


class PairPlan(NamedTuple):
    """Number of pairs per season, and the length in metres of the roads on which they are seen."""

    pairs: int
    length: float


SMOKE, FULL = PairPlan(2, 20.0), PairPlan(CLAIMED["pairs"], 400.0)


def analyse(folder: Path) -> dict[str, Any]:
    """Measure how similar the attention is with and without noise in both seasons, and map it for one scene."""
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    assert isinstance(trained.network, Policy)
    plan = SMOKE if trained.spec.budget == "smoke" else FULL
    readings = _readings(Model(trained.spec.model, trained.spec.solver))
    return {"source": provenance_of(trained), **measure(trained.network, plan, readings)}


def _readings(model: Model) -> Sequence[NoiseReading]:
    """Return the readings of the noise to measure: networks that the paper does not drive get the primary one only."""
    return READINGS if model in POLICIES else (PRIMARY_READING,)


def measure(policy: Policy, plan: PairPlan, readings: Sequence[NoiseReading] = READINGS) -> dict[str, Any]:
    """Return by season: boxes of similarities by reading and variance, maps of the example, shares by region."""
    from lrcnet_paper.interpret import attention, attention_under_noise, box, scene_regions, scenes

    boxes: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    maps: dict[str, dict[str, str]] = {}
    shares: dict[str, dict[str, dict[str, float]]] = {}
    for season in SEASONS:
        frames = scenes(season, plan.pairs, length=plan.length)
        clean = attention(policy, frames)
        boxes[season] = {}
        for reading in readings:
            rows = attention_under_noise(policy, frames, VARIANCES, reading=reading, clean=clean)
            boxes[season][reading] = {f"{v:g}": box(row).as_dict() for v, row in zip(VARIANCES, rows, strict=True)}
        shares[season] = measure_shares(clean, scene_regions(season, plan.pairs, length=plan.length))
        maps[season] = attention_maps(policy, example_frames(season))
    return {"similarity": boxes, "maps": maps, "regions": shares}


@lru_cache(maxsize=2)
def example_frames(season: str) -> Tensor:
    """Return the scene of the grid as `noise_series` gives it."""
    from lrcnet_paper.interpret import scenes

    return noise_series(scenes(season, 1, first_road=EXAMPLE_ROAD, length=EXAMPLE_LENGTH))


def noise_series(frame: Tensor) -> Tensor:
    """Return a uint8 frame (1, 48, 160, 3) without noise and with each variance: (1 + variances, 48, 160, 3), float.

    The variances refer to the normalised frame, so values may lie outside [0, 1].
    """
    import torch

    from lrcnet_paper.driving import add_noise

    noisy = [add_noise(frame, v, torch.Generator().manual_seed(0), reading=PRIMARY_READING) for v in VARIANCES]
    return torch.cat([frame.float() / 255, *noisy])


def attention_maps(policy: Policy, frames: Tensor) -> dict[str, str]:
    """Return variance -> the attention to a frame of a noise series, packed as text."""
    from lrcnet_paper.interpret import attention

    maps = attention(policy, frames)
    return {f"{v:g}": pack_map(one) for v, one in zip((0.0, *VARIANCES), maps, strict=True)}


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate similarities by model, season and variance, and draw box plots and the grid of frames."""
    groups = measured_groups(runs, NAME)
    return Rendered(
        tables=[_table(groups, PRIMARY_READING), *region_tables(groups, NAME)],
        pictures=[*_pictures(groups), *region_pictures(groups, NAME)],
        claims=[*_claims(groups), *region_claims(groups, NAME)],
        skipped=[] if groups else ["attention: no lane-keeping policy has been measured"],
        differences=(*driving.end_to_end_differences(groups), READING_NOTE),
        sensitivities=[_table(groups, reading) for reading in READINGS if reading != PRIMARY_READING] if groups else [],
    )


def _box(run: FinishedRun, season: str, reading: NoiseReading, variance: float) -> Mapping[str, float]:
    """Return the numbers of the box plot of all pairs."""
    box: Mapping[str, float] = run.analyses[NAME]["similarity"][season][reading][f"{variance:g}"]
    return box


def _similarity(
    group: Group | None, season: str, variance: float, reading: NoiseReading = PRIMARY_READING
) -> Estimate | None:
    """Return the mean over seeds of the mean similarity of all pairs."""
    if group is None:
        return None
    means = {run.result.seed: _box(run, season, reading, variance)["mean"] for run in group.runs}
    return mean_over_seeds(means, digits=3)


def _table(groups: Mapping[str, Group], reading: NoiseReading) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in [policy.name for policy in POLICIES]:
        group = groups.get(model)
        numbers = [_similarity(group, season, v, reading) for season in SEASONS for v in VARIANCES]
        pairs = None if group is None else int(_box(group.runs[0], SEASONS[0], reading, VARIANCES[0])["count"])
        rows.append(
            (
                palette.model_label(model),
                *numbers,
                pairs,
                len(group.runs) if group else None,
                group.budget if group else None,
            )
        )
    return Table(
        "similarity" if reading == PRIMARY_READING else f"similarity-{reading}",
        f"Structural similarity of the attention with and without noise on {READING_NAMES[reading]}: mean over pairs, "
        "± over seeds",
        (
            "model",
            *(f"{season}, variance {v:g}" for season in SEASONS for v in VARIANCES),
            "pairs per season",
            "seeds",
            "budget",
        ),
        rows,
        "Attention by VisualBackProp, scaled from 0 to 1 in each frame; structural similarity by torchmetrics with its "
        "usual window (Gaussian of 1.5 pixels). The frames show 16 roads that no policy was trained on, as the expert "
        "drives them; all policies see the same frames and the same noise. The paper shows boxes without numbers.",
    )


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    """Judge each LRCU against the gated units, by the mean over both variances."""
    return [
        judge_against_gated(
            f"{season.capitalize()}: noise changes the attention of {palette.model_label(model)} less than that of "
            "any gated unit.",
            "closer to 1",
            model,
            groups,
            {name: mean_similarity(groups.get(name), season) for name in (model, *GATED)},
        )
        for season in SEASONS
        for model in CLAIMED["most similar"]
    ]


def mean_similarity(group: Group | None, season: str) -> Estimate | None:
    """Return the mean similarity over both variances."""
    estimates = [e for v in VARIANCES if (e := _similarity(group, season, v)) is not None]
    if not estimates:
        return None
    by_seed = [dict(estimate.by_seed) for estimate in estimates]
    return mean_over_seeds({seed: fmean(values[seed] for values in by_seed) for seed in by_seed[0]}, digits=3)


def _pictures(groups: Mapping[str, Group]) -> list[Picture]:
    if not groups:
        return []
    boxes = {
        model: {
            season: {v: [_box(run, season, PRIMARY_READING, v) for run in group.runs] for v in VARIANCES}
            for season in SEASONS
        }
        for model, group in groups.items()
    }
    provenance = format_provenances(run.analyses[NAME]["source"] for group in groups.values() for run in group.runs)
    first_seeds = {model: group.runs[0].analyses[NAME] for model, group in groups.items()}
    pictures = [
        Picture(
            "boxes",
            "Structural similarity of the attention with and without noise, whose variance refers to the normalised "
            "frame: quartiles, median, and whiskers within 1.5 interquartile ranges, each averaged over the seeds; the "
            "paper shows such boxes without numbers.",
            "Two panels of box plots, summer and winter: two boxes for each model, one per noise variance.",
            draw_boxes(boxes, _finding(groups)),
            details=f"Weights: {provenance}.",
        )
    ]
    return pictures + [_grid(season, first_seeds) for season in SEASONS]


def _grid(season: str, measurements: Mapping[str, Any]) -> Picture:
    """Draw the grid of a season from model -> the measurement of its first seed."""
    return Picture(
        f"grid-{season}",
        f"Attention of the policies in {season}: the frame in the first column, then the attention of each policy to "
        "it; without noise in the first row, with Gaussian noise of variance 0.1 and 0.2 on the normalised frame "
        "below. Colours follow the square root of the attention.",
        "Three rows by noise; each has the camera's frame and one map of attention per model, bright where it is high.",
        draw_grid(
            example_frames(season).numpy(),
            {model: (m["maps"][season], m["source"]) for model, m in measurements.items()},
            _grid_finding(season, measurements),
        ),
        details=f"Weights: {format_provenances(m['source'] for m in measurements.values())}.",
    )


def _grid_finding(season: str, measurements: Mapping[str, Any]) -> str:
    """Say what is drawn: one frame and one seed of each policy give no verdict."""
    seeds = join_words(sorted({one["source"]["seed"] for one in measurements.values()}))
    variances = join_words([f"{variance:g}" for variance in VARIANCES])
    return (
        f"Seed {seeds} as an example: attention to one frame in {season}, without noise and with noise of variance "
        f"{variances}"
    )


def _finding(groups: Mapping[str, Group]) -> str:
    if note := driving.incomplete(groups):
        return note
    means = {m: e for m, group in groups.items() if (e := mean_similarity(group, "summer")) is not None}
    first, last = max(means, key=lambda m: means[m].mean), min(means, key=lambda m: means[m].mean)
    return (
        f"In summer noise changes the attention of {palette.model_label(first)} least (mean similarity "
        f"{means[first].mean:.2f}{driving.within_spread(means, largest=True)}), that of {palette.model_label(last)} "
        f"most ({means[last].mean:.2f}{driving.within_spread(means, largest=False)}){driving.too_few_seeds(groups)}"
    )


ARTEFACT = MeasuringArtefact(
    title=TITLE,
    claimed=CLAIMED,
    runs=lane_keeping.runs,
    render=render,
    wants=driving.wants_end_to_end,
    analyse=analyse,
    says=SAYS,
)
