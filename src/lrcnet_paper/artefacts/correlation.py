"""Table: how closely the policies' neurons follow what they steer, over drives of 1 km."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.attention.similarity import SEASONS, conditions, measured
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.source import source, told_all
from lrcnet_paper.results.verdict import Verdict, judge_comparison, judge_number
from lrcnet_paper.road_seeds import NEURON_DRIVES, first_seeds
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lrcnet_paper.interpret import WatchedDrive
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.results.finished import Finished
    from lrcnet_paper.results.groups import Group
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

    Drives = Mapping[str, Sequence[WatchedDrive]]  # by season

TITLE = "Correlation of neural activity with the road"


def _r(mean: float, std: float) -> Estimate:
    return Estimate(mean, std, seeds=3, digits=3)


# Mean and standard deviation over neurons and three runs.
CLAIMED: Mapping[str, Any] = {
    "summer": {
        "lstm": _r(0.400, 0.299),
        "gru": _r(0.363, 0.256),
        "mgu": _r(0.317, 0.227),
        "lrcu-a": _r(0.500, 0.314),
        "lrcu-s": _r(0.645, 0.321),
    },
    "winter": {
        "lstm": _r(0.450, 0.262),
        "gru": _r(0.389, 0.248),
        "mgu": _r(0.308, 0.232),
        "lrcu-a": _r(0.533, 0.292),
        "lrcu-s": _r(0.766, 0.243),
    },
}
NAME = "correlation"
SHORTEST = 100.0
"""m. A drive that ends before says nothing about how a neuron follows the road, unless there is no longer one."""


class Effort(NamedTuple):
    """What is driven at a budget: roads per season, and their length, m."""

    roads: int
    length: float


EFFORTS: Mapping[str, Effort] = {"smoke": Effort(1, 12.0)}
FULL = Effort(2, 1000.0)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """The five lane-keeping policies."""
    from lrcnet_paper.artefacts import lane_keeping

    return lane_keeping.runs(check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """Whether a run is one of the policies."""
    from lrcnet_paper.artefacts import driving_runs

    return driving_runs.wants(result)


def analyse(folder: Path) -> dict[str, Any]:
    """Each neuron's correlation with the steered curvature, drive by drive, both seasons."""
    came_from, driven = driven_by(folder)
    return {"source": came_from, **measure(driven)}


def driven_by(folder: Path) -> tuple[dict[str, Any], Drives]:
    """Where a run's policy comes from, and its drives; the last run's are remembered, as two artefacts want them."""
    from lrcnet_paper.training.trained_network import load_trained

    file = load_trained(folder).file
    return _driven_by(folder, file.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _driven_by(folder: Path, changed: int) -> tuple[dict[str, Any], Drives]:
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    assert isinstance(trained.network, Policy)
    came_from = source(trained)
    return came_from, drive_roads(trained.network, EFFORTS.get(trained.spec.budget, FULL))


def drive_roads(policy: Policy, effort: Effort) -> Drives:
    """Closed-loop drives over roads that no policy was trained on, both seasons."""
    from lrcnet_paper.driving import World
    from lrcnet_paper.interpret import drive_and_watch

    roads = first_seeds(NEURON_DRIVES, effort.roads)
    worlds = {season: World(roads, season=season, length=effort.length) for season in SEASONS}
    return {season: drive_and_watch(policy, world) for season, world in worlds.items()}


def measure(driven: Drives) -> dict[str, Any]:
    """season -> r of every neuron in every drive, with the metres of each and how many arrived."""
    from lrcnet_paper.interpret import correlation

    found = {}
    for season, drives in driven.items():
        long = [one for one in drives if one.metres >= SHORTEST] or [max(drives, key=lambda one: one.metres)]
        found[season] = {
            "r": [[round(v, 4) for v in correlation(one.activity, one.curvature).tolist()] for one in long],
            "metres": [round(one.metres, 1) for one in drives],
            "arrived": sum(one.arrived for one in drives),
        }
    return found


def render(runs: Sequence[Finished]) -> Rendered:
    """The paper's table with ours beside it, and every neuron as a dot."""
    groups = measured(runs, NAME)
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups)] if groups else [],
        claims=_claims(groups),
        skipped=[] if groups else ["correlations: no lane-keeping policy has been driven"],
    )


def _sizes(run: Finished, season: str) -> list[float]:
    """|r| of every neuron in every drive of a run."""
    return [abs(r) for drive in run.analyses[NAME][season]["r"] for r in drive]


def _pooled(group: Group | None, season: str) -> Estimate | None:
    """Mean and standard deviation over neurons, drives and runs, as the paper has them."""
    if group is None:
        return None
    over_all = mean_over_seeds([r for run in group.runs for r in _sizes(run, season)])
    assert over_all is not None
    return Estimate(over_all.mean, over_all.std, len(group.runs), digits=3)


def _of_runs(group: Group | None, season: str) -> Estimate | None:
    """Mean over runs of each run's mean: its spread is that of the mean, which is what models are compared by."""
    if group is None:
        return None
    means = [sum(sizes) / len(sizes) for sizes in (_sizes(run, season) for run in group.runs)]
    return mean_over_seeds(means, digits=3)


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in CLAIMED["summer"]:
        group = groups.get(model)
        cells: list[Cell] = [palette.model_label(model)]
        for season in SEASONS:
            cells += [CLAIMED[season][model], _pooled(group, season), _judge(model, group, season)]
        rows.append((*cells, _driven(group), len(group.runs) if group else None, group.budget if group else None))
    return Table(
        "correlation",
        "Absolute correlation of neurons with the steered curvature: mean ± std over neurons, drives and runs",
        (
            "model",
            "summer: paper",
            "summer: ours",
            "summer: verdict",
            "winter: paper",
            "winter: ours",
            "winter: verdict",
            "drives that arrived",
            "seeds",
            "budget",
        ),
        rows,
        "Pearson's r at no delay between the state h of a neuron and the curvature that the policy steers, over closed-"
        "loop drives of 1 km in our own synthetic world; a neuron that stands still counts 0. A drive that ended early "
        f"counts as far as it went, if it went {SHORTEST:g} m. The spread is over neurons, as in the paper; the claims "
        "above compare means over neurons, with their spread over seeds.",
    )


def _driven(group: Group | None) -> str | None:
    if group is None:
        return None
    found = [run.analyses[NAME][season] for run in group.runs for season in SEASONS]
    return f"{sum(one['arrived'] for one in found)} of {sum(len(one['metres']) for one in found)}"


def _judge(model: str, group: Group | None, season: str) -> Verdict | None:
    ours = _pooled(group, season)
    if group is None or ours is None:
        return None
    return judge_number(CLAIMED[season][model], ours, larger_is_better=True, under=conditions(group))


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    claims = []
    for season in SEASONS:
        for other in ("lstm", "gru", "mgu", "lrcu-a"):
            ours = _of_runs(groups.get("lrcu-s"), season), _of_runs(groups.get(other), season)
            paper = CLAIMED[season]["lrcu-s"], CLAIMED[season][other]
            used = [groups[m] for m in ("lrcu-s", other) if m in groups]
            claims.append(
                Claim(
                    f"{season.capitalize()}: neurons of LRCU-S correlate with the road more than those of "
                    f"{palette.model_label(other)}.",
                    f"{paper[0]} against {paper[1]}",
                    f"{ours[0] or '–'} against {ours[1] or '–'}",
                    judge_comparison(paper, ours, larger_is_better=True, under=conditions(*used)),
                )
            )
    return claims


def _picture(groups: Mapping[str, Group]) -> Picture:
    everyone = told_all(run.analyses[NAME]["source"] for group in groups.values() for run in group.runs)
    return Picture(
        "neurons",
        "Absolute correlation with the steered curvature: one dot per neuron, drive and seed; the bar is ours, the "
        f"hollow diamond the paper's mean. Weights: {everyone}.",
        "Two panels, summer and winter: for each model a strip of dots between 0 and 1, with two marks for the means.",
        _draw(groups),
    )


def _draw(groups: Mapping[str, Group]) -> Figure:
    import random

    from matplotlib.figure import Figure

    scatter = random.Random(0)
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        for panel, season in zip(figure.subplots(1, 2, sharey=True), SEASONS, strict=True):
            for place, (model, group) in enumerate(groups.items()):
                sizes = [r for run in group.runs for r in _sizes(run, season)]
                where = [place + scatter.uniform(-0.3, 0.3) for _ in sizes]
                style = palette.model_style(model)
                panel.plot(where, sizes, style.marker, color=style.colour, alpha=0.45, markersize=3, rasterized=True)
                mean = sum(sizes) / len(sizes)
                panel.plot([place - 0.36, place + 0.36], [mean, mean], color=palette.INK, linewidth=2)
                panel.plot(
                    [place], [CLAIMED[season][model].mean], "D", markerfacecolor=palette.PAPER,
                    markeredgecolor=palette.INK, markersize=5,
                )  # fmt: skip
            panel.set_xticks(range(len(groups)), [palette.model_label(model) for model in groups])
            panel.set(title=season, xlabel="model", ylim=(-0.02, 1.02))
            panel.grid(False, axis="x")
            if panel.get_subplotspec().is_first_col():
                panel.set_ylabel("|r| with the curvature")
    return figure


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
