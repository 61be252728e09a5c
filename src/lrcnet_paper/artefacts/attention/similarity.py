"""Figures: what the lane-keeping policies look at, and how far noise in the picture moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.attention.figures import draw_boxes, draw_grid, packed
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.provenance import format_provenances, provenance_of
from lrcnet_paper.results.verdict import Conditions, Verdict, judge_comparison
from lrcnet_paper.road_seeds import EXAMPLE_ROAD
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from torch import Tensor

    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Attention of the lane-keeping policies under noise"

# The paper shows box plots without numbers: of 1,600 pairs per season, the LRCUs' lie closest to 1.
CLAIMED: Mapping[str, Any] = {"pairs": 1600, "variances": (0.1, 0.2), "most similar": ("lrcu-a", "lrcu-s")}

NAME = "attention"
SEASONS = ("summer", "winter")
VARIANCES: tuple[float, ...] = CLAIMED["variances"]
GATED = ("lstm", "gru", "mgu")
# The scene that the grid shows: half-way along a short road with a bend.
EXAMPLE_LENGTH = 80.0


class Effort(NamedTuple):
    """What is measured at a budget: pairs per season, and the length of the roads they are seen on, m."""

    pairs: int
    length: float


EFFORTS: Mapping[str, Effort] = {"smoke": Effort(2, 20.0)}
FULL = Effort(CLAIMED["pairs"], 400.0)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """The five lane-keeping policies."""
    from lrcnet_paper.artefacts import lane_keeping

    return lane_keeping.runs(check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """Whether a run is one of the policies."""
    from lrcnet_paper.artefacts import driving_runs

    return driving_runs.wants(result)


def analyse(folder: Path) -> dict[str, Any]:
    """Similarity of the attention with and without noise, both seasons, and the maps of one scene."""
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    assert isinstance(trained.network, Policy)
    came_from = provenance_of(trained)
    return {"source": came_from, **measure(trained.network, EFFORTS.get(trained.spec.budget, FULL))}


def measure(policy: Policy, effort: Effort) -> dict[str, Any]:
    """The measurement on a policy: season -> variance -> box, and season -> variance -> map of the example."""
    from lrcnet_paper.interpret import attention_under_noise, box, scenes

    boxes: dict[str, dict[str, dict[str, float]]] = {}
    maps: dict[str, dict[str, str]] = {}
    for season in SEASONS:
        found = attention_under_noise(policy, scenes(season, effort.pairs, length=effort.length), VARIANCES)
        boxes[season] = {f"{v:g}": box(row).as_dict() for v, row in zip(VARIANCES, found, strict=True)}
        maps[season] = example_maps(policy, example(season))
    return {"similarity": boxes, "maps": maps}


@lru_cache(maxsize=2)
def example(season: str) -> Tensor:
    """The scene of the grid, without noise and with each variance, (1 + variances, 48, 160, 3), 0 to 1."""
    import torch

    from lrcnet_paper.driving import add_noise
    from lrcnet_paper.interpret import scenes

    clean = scenes(season, 1, first_road=EXAMPLE_ROAD, length=EXAMPLE_LENGTH)
    shaken = [add_noise(clean, v, torch.Generator().manual_seed(0)) for v in VARIANCES]
    return torch.cat([clean.float() / 255, *shaken])


def example_maps(policy: Policy, frames: Tensor) -> dict[str, str]:
    """variance -> the attention to the example, as small text."""
    from lrcnet_paper.interpret import attention

    return {f"{v:g}": packed(one) for v, one in zip((0.0, *VARIANCES), attention(policy, frames), strict=True)}


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Similarities by model, season and variance, box plots, and the grid of pictures."""
    groups = measured(runs, NAME)
    return Rendered(
        tables=[_table(groups)],
        pictures=_pictures(groups),
        claims=_claims(groups),
        skipped=[] if groups else ["attention: no lane-keeping policy has been looked into"],
    )


def measured(runs: Sequence[FinishedRun], name: str) -> dict[str, Group]:
    """model -> the group of its runs, those only that have been measured; models of which none has are missing."""
    from dataclasses import replace

    from lrcnet_paper.artefacts import driving_runs

    kept = {}
    for model, group in driving_runs.find_groups(runs, driving_runs.POLICIES).items():
        with_it = tuple(run for run in group.finished if name in run.analyses)
        if with_it:
            kept[model.name] = replace(group, runs=with_it)
    return kept


def conditions(*groups: Group) -> Conditions:
    """What differs from the paper."""
    from lrcnet_paper.artefacts import driving_runs

    return driving_runs.conditions(*groups)


def _similarity(group: Group | None, season: str, variance: float) -> Estimate | None:
    """Mean over the seeds of the mean over the pairs."""
    if group is None:
        return None
    found = [run.analyses[NAME]["similarity"][season][f"{variance:g}"]["mean"] for run in group.runs]
    return mean_over_seeds(found, digits=3)


def _table(groups: Mapping[str, Group]) -> Table:
    from lrcnet_paper.artefacts.driving_runs import POLICIES

    rows: list[tuple[Cell, ...]] = []
    for model in [policy.name for policy in POLICIES]:
        group = groups.get(model)
        numbers = [_similarity(group, season, v) for season in SEASONS for v in VARIANCES]
        pairs = None
        if group is not None:
            pairs = int(group.runs[0].analyses[NAME]["similarity"][SEASONS[0]][f"{VARIANCES[0]:g}"]["count"])
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
        "similarity",
        "Structural similarity of the attention with and without noise: mean over pairs, ± over seeds",
        (
            "model",
            *(f"{season}, variance {v:g}" for season in SEASONS for v in VARIANCES),
            "pairs per season",
            "seeds",
            "budget",
        ),
        rows,
        "Attention by VisualBackProp, from 0 to 1 in each picture; structural similarity by torchmetrics with its "
        "usual window (Gaussian of 1.5 pixels). Pictures are a driver's views of 16 roads that no policy was trained "
        "on; all policies see the same pictures and the same noise. The paper shows boxes without numbers.",
    )


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    claims = []
    for season in SEASONS:
        for v in VARIANCES:
            others = {m: e for m in GATED if (e := _similarity(groups.get(m), season, v)) is not None}
            best = max(others, key=lambda m: others[m].mean) if len(others) == len(GATED) else None
            for model in CLAIMED["most similar"]:
                ours = _similarity(groups.get(model), season, v), others.get(best or "")
                used = [g for m in (model, best) if m is not None and (g := groups.get(m)) is not None]
                label = palette.model_label(model)
                shown = "–"
                if best is not None and ours[0] is not None:
                    shown = f"{ours[0]} against {others[best]} ({palette.model_label(best)})"
                claims.append(
                    Claim(
                        f"{season.capitalize()}, variance {v:g}: the attention of {label} changes less than that of "
                        "any gated unit.",
                        "closer to 1",
                        shown,
                        ahead(ours, conditions(*used)),
                    )
                )
    return claims


def ahead(
    ours: tuple[Estimate | None, Estimate | None], under: Conditions, *, larger_is_better: bool = True
) -> Verdict:
    """The verdict on "A is ahead of B" where the paper gives no numbers: its margin counts as 0."""
    nothing = Estimate(0.0, 0.0, 3)
    found = judge_comparison((nothing, nothing), ours, larger_is_better=larger_is_better, under=under)
    # By how much the paper has A ahead is not known, so nothing can be better than it.
    return Verdict("reproduced", found.conditions) if found.word == "better" else found


def _pictures(groups: Mapping[str, Group]) -> list[Picture]:
    if not groups:
        return []
    boxes = {
        model: {
            season: {v: [run.analyses[NAME]["similarity"][season][f"{v:g}"] for run in group.runs] for v in VARIANCES}
            for season in SEASONS
        }
        for model, group in groups.items()
    }
    everyone = format_provenances(run.analyses[NAME]["source"] for group in groups.values() for run in group.runs)
    first = {model: group.runs[0].analyses[NAME] for model, group in groups.items()}
    pictures = [
        Picture(
            "boxes",
            "Structural similarity of the attention with and without noise: quartiles, median, and whiskers within 1.5 "
            "quartile distances, each averaged over the seeds; the dot is the mean. Light: variance 0.1; dark and "
            f"hatched: 0.2. Weights: {everyone}.",
            "Two panels of box plots, summer and winter: two boxes for each model, one per variance of the noise.",
            draw_boxes(boxes),
        )
    ]
    return pictures + [_grid(season, first) for season in SEASONS]


def _grid(season: str, first: Mapping[str, Any]) -> Picture:
    """The grid of a season, out of model -> the measurement of its first seed."""
    return Picture(
        f"grid-{season}",
        f"What the policies look at in {season}: the picture in the first column, then the attention of each policy to "
        "it; without noise in the first row, with Gaussian noise of variance 0.1 and 0.2 below. Weights: "
        f"{format_provenances(one['source'] for one in first.values())}.",
        "Three rows by noise; in each the camera's picture and a map of attention per model, bright where it looks.",
        draw_grid(example(season).numpy(), {m: (one["maps"][season], one["source"]) for m, one in first.items()}),
    )


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
