"""Table: correlation of the policies' neurons with the steered curvature, over drives of 1 km."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts import lane_keeping
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.neuron_drives import drive_run
from lrcnet_paper.artefacts.policy_measurements import GATED, SEASONS, measured_groups
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds, standard_deviation
from lrcnet_paper.results.provenance import format_provenances
from lrcnet_paper.results.verdict import judge_comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lrcnet_paper.artefacts.neuron_drives import DrivesBySeason
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group

TITLE = "Correlation of neural activity with the road"
SAYS = "Neurons of LRCU-S follow the road more closely than those of the other units."


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
"""In metres. Shorter drives do not show how a neuron follows the road; they count only if there is no longer one."""


def analyse(folder: Path) -> dict[str, Any]:
    """Measure the correlation of each neuron with the steered curvature, by drive, in both seasons."""
    provenance, drives = drive_run(folder)
    return {"source": provenance, **measure(drives)}


def measure(drives_by_season: DrivesBySeason) -> dict[str, Any]:
    """Return season -> r of every neuron in every drive, the metres of each drive, and how many drives arrived."""
    from lrcnet_paper.interpret import correlation

    measurement = {}
    for season, drives in drives_by_season.items():
        long = [drive for drive in drives if drive.metres >= SHORTEST] or [max(drives, key=lambda d: d.metres)]
        measurement[season] = {
            "r": [[round(v, 4) for v in correlation(drive.activity, drive.curvature).tolist()] for drive in long],
            "metres": [round(drive.metres, 1) for drive in drives],
            "arrived": sum(drive.arrived for drive in drives),
        }
    return measurement


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our table beside the paper's, and draw every neuron as a dot."""
    groups = measured_groups(runs, NAME)
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups)] if groups else [],
        claims=_claims(groups),
        skipped=[] if groups else ["correlations: no lane-keeping policy has been driven"],
        differences=driving.DIFFERENCES,
    )


def _magnitudes(run: FinishedRun, season: str) -> list[float]:
    """List |r| of every neuron in every drive of a run."""
    return [abs(r) for drive in run.analyses[NAME][season]["r"] for r in drive]


def _mean_over_neurons(group: Group | None, season: str) -> Estimate | None:
    """Return mean and standard deviation over neurons, drives and runs, as in the paper."""
    if group is None:
        return None
    magnitudes = [r for run in group.runs for r in _magnitudes(run, season)]
    return Estimate(fmean(magnitudes), standard_deviation(magnitudes), len(group.runs), digits=3)


def _mean_over_runs(group: Group | None, season: str) -> Estimate | None:
    """Return the mean over runs of each run's mean; models are compared by this mean and its spread over runs."""
    if group is None:
        return None
    return mean_over_seeds({run.result.seed: fmean(_magnitudes(run, season)) for run in group.runs}, digits=3)


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in CLAIMED["summer"]:
        group = groups.get(model)
        cells: list[Cell] = [palette.model_label(model)]
        for season in SEASONS:
            cells += [CLAIMED[season][model], _mean_over_neurons(group, season), _mean_over_runs(group, season)]
        rows.append((*cells, _arrivals(group), len(group.runs) if group else None, group.budget if group else None))
    return Table(
        "correlation",
        "Absolute correlation of neurons with the steered curvature: mean ± std over neurons, drives and runs",
        (
            "model",
            "summer: paper",
            "summer: ours",
            "summer: ours, over seeds",
            "winter: paper",
            "winter: ours",
            "winter: ours, over seeds",
            "drives that arrived",
            "seeds",
            "budget",
        ),
        rows,
        "Pearson's r without delay between the state h of a neuron and the curvature that the policy steers, over "
        "closed-loop drives of 1 km in our own synthetic world; a neuron that does not change counts as 0. A drive "
        f"that ended early counts if it is at least {SHORTEST:g} m long. The spread is over neurons, as in the paper; "
        "claims compare means over neurons, with their spread over seeds.",
    )


def _arrivals(group: Group | None) -> str | None:
    if group is None:
        return None
    seasons = [run.analyses[NAME][season] for run in group.runs for season in SEASONS]
    return f"{sum(season['arrived'] for season in seasons)} of {sum(len(season['metres']) for season in seasons)}"


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    claims = []
    for season in SEASONS:
        for other in GATED:
            ours = _mean_over_runs(groups.get("lrcu-s"), season), _mean_over_runs(groups.get(other), season)
            paper = CLAIMED[season]["lrcu-s"], CLAIMED[season][other]
            compared = [groups[m] for m in ("lrcu-s", other) if m in groups]
            claims.append(
                Claim(
                    f"{season.capitalize()}: neurons of LRCU-S correlate with the road more than those of "
                    f"{palette.model_label(other)}.",
                    f"{paper[0]} against {paper[1]}",
                    f"{ours[0] or '–'} against {ours[1] or '–'}",
                    judge_comparison(paper, ours, larger_is_better=True, under=driving.conditions(*compared)),
                )
            )
    return claims


def _picture(groups: Mapping[str, Group]) -> Picture:
    provenance = format_provenances(run.analyses[NAME]["source"] for group in groups.values() for run in group.runs)
    return Picture(
        "neurons",
        "Absolute correlation with the steered curvature: one dot per neuron, drive and seed; the bar is our mean, "
        f"the hollow diamond the paper's. Weights: {provenance}.",
        "Two panels, summer and winter: for each model a strip of dots between 0 and 1, with two marks for the means.",
        _draw_neurons(groups),
    )


def _draw_neurons(groups: Mapping[str, Group]) -> Figure:
    import random

    from matplotlib.figure import Figure

    jitter = random.Random(0)
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        for panel, season in zip(figure.subplots(1, 2, sharey=True), SEASONS, strict=True):
            for column, (model, group) in enumerate(groups.items()):
                magnitudes = [r for run in group.runs for r in _magnitudes(run, season)]
                where = [column + jitter.uniform(-0.3, 0.3) for _ in magnitudes]
                style = palette.model_style(model)
                panel.plot(
                    where, magnitudes, style.marker, color=style.colour, alpha=0.45, markersize=3, rasterized=True
                )
                mean = sum(magnitudes) / len(magnitudes)
                panel.plot([column - 0.36, column + 0.36], [mean, mean], color=palette.INK, linewidth=2)
                panel.plot(
                    [column], [CLAIMED[season][model].mean], "D", markerfacecolor=palette.PAPER,
                    markeredgecolor=palette.INK, markersize=5,
                )  # fmt: skip
            panel.set_xticks(range(len(groups)), [palette.model_label(model) for model in groups])
            panel.set(title=season, xlabel="model", ylim=(-0.02, 1.02))
            panel.grid(False, axis="x")
            if panel.get_subplotspec().is_first_col():
                panel.set_ylabel("|r| with the curvature")
    return figure


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=lane_keeping.runs, render=render, wants=driving.wants, analyse=analyse, says=SAYS
)
