"""Table: correlation of neurons with the steered curvature, on the same drives for all models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts import lane_keeping
from lrcnet_paper.artefacts.artefact import Claim, Comparison, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.neuron_drives import drive_run
from lrcnet_paper.artefacts.policy_measurements import GATED, SEASONS
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds, standard_deviation
from lrcnet_paper.results.provenance import format_provenances, provenance_of
from lrcnet_paper.results.verdict import judge_comparison
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lrcnet_paper.artefacts.neuron_drives import DrivesBySeason
    from lrcnet_paper.interpret import WatchedDrive
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec
    from lrcnet_paper.training.trained_network import TrainedNetwork

TITLE = "Correlation of neural activity with the road"
SAYS = "Neurons of LRCUs follow the road more closely than those of gated units."


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
SHARED, CLOSED = "shared head", "closed loop"
STRETCH, SHORTEST = 100.0, 100.0
"""In metres: correlations are stored over stretches that are multiples of the first; the second is the least."""


def wants(result: Result) -> bool:
    """Return whether a result belongs to one of the five models, on a shared head or end to end."""
    return driving.wants(result) or driving.wants_shared_head(result, driving.POLICIES)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the five models on the features of a shared head, on which claims are judged, and end to end."""
    return [
        *driving.plan_shared_head_runs(driving.POLICIES, check_budget(budget), seeds),
        *lane_keeping.runs(budget, seeds),
    ]


def analyse(folder: Path) -> dict[str, Any]:
    """Measure the correlation of each neuron with the steered curvature in both seasons.

    On a shared head: along the expert's drives of the validation recording, which all arrive and are the same for all
    models. End to end: along the policy's own drives.
    """
    from lrcnet_paper.tasks.driving import FEATURE_VARIANTS
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    if trained.spec.variant in FEATURE_VARIANTS:
        return {"source": provenance_of(trained), "kind": SHARED, **_measure_on_features(trained)}
    provenance, drives = drive_run(folder)
    return {"source": provenance, "kind": CLOSED, **measure(drives)}


def _measure_on_features(trained: TrainedNetwork) -> dict[str, Any]:
    """Return season -> r of every neuron over all of the expert's drives in that season, and their length."""
    import torch

    from lrcnet_paper.driving.vehicle import STEP
    from lrcnet_paper.interpret import correlation
    from lrcnet_paper.tasks.driving import FEATURE_VARIANTS, recording
    from lrcnet_paper.training.shared_head import shared_features

    policy: Any = trained.network
    source = FEATURE_VARIANTS[trained.spec.variant]
    drives = recording(source, "validation")
    features = torch.from_numpy(shared_features(source, trained.spec.seed)["validation"])
    measurement = {}
    for code, season in enumerate(SEASONS):
        activity, curvature, metres = [], [], 0.0
        for start, end in pairwise(drives.starts.tolist()):
            if drives.season[start] == code:
                with torch.inference_mode():
                    output, _ = policy.layer(features[None, start:end])
                    curvature.append(policy.head(output)[0, :, 0])
                activity.append(output[0])
                metres += STEP * float(drives.speed[start:end].sum())
        if activity:
            r = correlation(torch.cat(activity), torch.cat(curvature))
            measurement[season] = {"r": [[round(v, 4) for v in r.tolist()]], "metres": [round(metres, 1)]}
    return measurement


def measure(drives_by_season: DrivesBySeason) -> dict[str, Any]:
    """Return season -> r of every neuron in every drive over its first 100, 200, ... metres, and how drives ended."""
    from lrcnet_paper.interpret import correlation

    measurement = {}
    for season, drives in drives_by_season.items():
        measurement[season] = {
            "r_within": [
                [
                    [round(v, 3) for v in correlation(drive.activity[:steps], drive.curvature[:steps]).tolist()]
                    for steps in _stretch_steps(drive)
                ]
                for drive in drives
            ],
            "metres": [round(drive.metres, 1) for drive in drives],
            "arrived": sum(drive.arrived for drive in drives),
        }
    return measurement


def _stretch_steps(drive: WatchedDrive) -> list[int]:
    """Return the number of steps within the first 100, 200, ... metres; all of them if the drive is shorter."""
    stretches = range(1, int(drive.metres / STRETCH) + 1)
    return [drive.steps_within(STRETCH * k) for k in stretches] or [len(drive.x)]


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our table beside the paper's, and draw every neuron as a dot."""
    groups = _find_groups(runs, SHARED)
    closed = _find_groups(runs, CLOSED)
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups)] if groups else [],
        claims=_claims(groups),
        skipped=[] if groups else ["correlations: no model has been trained on a shared head"],
        differences=(*driving.shared_head_differences(groups), OPEN_LOOP),
        # A stretch that all policies drove says nothing about one policy alone.
        sensitivities=[_closed_loop_table(closed)] if len(closed) > 1 else [],
    )


OPEN_LOOP = (
    "The paper records neurons on drives of its policies. Here the expert drives, so that all drives arrive and all "
    "models see the same frames; r is with the curvature that the model would steer."
)


def _find_groups(runs: Sequence[FinishedRun], kind: str) -> dict[str, Group]:
    """Return model -> the group of its measured runs of one kind."""
    wanted = driving.wants_shared_head if kind == SHARED else driving.wants
    groups = {}
    for model, group in driving.find_groups(runs, driving.POLICIES, wanted=wanted).items():
        measured = tuple(run for run in group.finished if run.analyses.get(NAME, {}).get("kind") == kind)
        if measured:
            groups[model.name] = replace(group, runs=measured)
    return groups


def _magnitudes(run: FinishedRun, season: str) -> list[float]:
    """List |r| of every neuron of a run on a shared head."""
    return [abs(r) for drive in run.analyses[NAME].get(season, {}).get("r", []) for r in drive]


def _mean_over_neurons(group: Group | None, season: str) -> Estimate | None:
    """Return mean and standard deviation over neurons and runs, as in the paper."""
    magnitudes = [] if group is None else [r for run in group.runs for r in _magnitudes(run, season)]
    if group is None or len(magnitudes) < 2:
        return None
    return Estimate(fmean(magnitudes), standard_deviation(magnitudes), len(group.runs), digits=3)


def _mean_over_runs(group: Group | None, season: str) -> Estimate | None:
    """Return the mean over runs of each run's mean; models are compared by this mean and its spread over runs."""
    values = {} if group is None else {run.result.seed: _magnitudes(run, season) for run in group.runs}
    return mean_over_seeds({seed: fmean(rs) for seed, rs in values.items() if rs}, digits=3)


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in CLAIMED["summer"]:
        group = groups.get(model)
        cells: list[Cell] = [palette.model_label(model)]
        for season in SEASONS:
            cells += [CLAIMED[season][model], _mean_over_neurons(group, season), _mean_over_runs(group, season)]
        rows.append((*cells, driving.sharp_bend_gain(group), len(group.runs) if group else None))
    return Table(
        "correlation",
        "Absolute correlation of neurons with the steered curvature",
        (
            "model",
            "summer: paper ± over neurons",
            "summer: ours ± over neurons",
            "summer: ours ± over seeds",
            "winter: paper ± over neurons",
            "winter: ours ± over neurons",
            "winter: ours ± over seeds",
            "gain in sharp bends",
            "seeds",
        ),
        rows,
        "Pearson's r without delay between the output of a neuron and the curvature that the model would steer, over "
        f"{_describe_length(groups)} of the expert's drives, which all arrive; a neuron that does not change counts "
        "as 0. The spread over neurons is not the uncertainty of the mean: claims compare means by their spread over "
        "seeds.",
    )


def _describe_length(groups: Mapping[str, Group]) -> str:
    lengths = [
        f"{sum(run.analyses[NAME][season]['metres']) / 1000:.1f} km in {season}"
        for group in list(groups.values())[:1]
        for run in group.runs[:1]
        for season in SEASONS
        if season in run.analyses[NAME]
    ]
    return " and ".join(lengths) or "the validation recording"


def common_stretch(groups: Mapping[str, Group], season: str) -> float:
    """Return the metres, a multiple of 100, that all policies drove on every road of a season; 0 if that is less."""
    driven = [
        metres for group in groups.values() for run in group.runs for metres in run.analyses[NAME][season]["metres"]
    ]
    return STRETCH * int(min(driven, default=0.0) / STRETCH)


def _closed_loop_table(groups: Mapping[str, Group]) -> Table:
    """Tabulate policies trained end to end on their own drives, over the stretch that all of them drove."""
    stretches = {season: common_stretch(groups, season) for season in SEASONS}

    def over_seeds(group: Group, season: str) -> Estimate | None:
        index = round(stretches[season] / STRETCH) - 1
        if stretches[season] < SHORTEST:
            return None
        values = {
            run.result.seed: fmean(abs(r) for drive in run.analyses[NAME][season]["r_within"] for r in drive[index])
            for run in group.runs
        }
        return mean_over_seeds(values, digits=3)

    rows: list[tuple[Cell, ...]] = [
        (
            palette.model_label(model),
            *(over_seeds(group, season) for season in SEASONS),
            _arrivals(group),
            len(group.runs),
        )
        for model, group in groups.items()
    ]
    described = " and ".join(f"{metres:g} m in {season}" for season, metres in stretches.items())
    return Table(
        "closed-loop-correlation",
        "Absolute correlation in the closed loop, policies trained end to end: mean over neurons ± over seeds",
        ("model", *SEASONS, "drives that arrived", "seeds"),
        rows,
        f"Over the stretch that all policies drove, {described}; a stretch below {SHORTEST:g} m is not compared.",
    )


def _arrivals(group: Group) -> str:
    seasons = [run.analyses[NAME][season] for run in group.runs for season in SEASONS]
    return f"{sum(season['arrived'] for season in seasons)} of {sum(len(season['metres']) for season in seasons)}"


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    def compare(season: str, model: str, other: str) -> Comparison:
        ours = _mean_over_runs(groups.get(model), season), _mean_over_runs(groups.get(other), season)
        paper = CLAIMED[season][model], CLAIMED[season][other]
        compared = [groups[m] for m in (model, other) if m in groups]
        return Comparison(
            f"{paper[0]} against {paper[1]}",
            f"{ours[0] or '–'} against {ours[1] or '–'}",
            judge_comparison(paper, ours, larger_is_better=True, under=driving.conditions(*compared)),
        )

    return [
        Claim.against_all(
            f"{season.capitalize()}: neurons of {palette.model_label(model)} correlate with the road more than those "
            "of LSTM, GRU and MGU.",
            {palette.model_label(other): compare(season, model, other) for other in GATED},
        )
        for season in SEASONS
        for model in ("lrcu-a", "lrcu-s")
    ]


def _picture(groups: Mapping[str, Group]) -> Picture:
    provenance = format_provenances(run.analyses[NAME]["source"] for group in groups.values() for run in group.runs)
    return Picture(
        "neurons",
        "Absolute correlation with the steered curvature: one dot per neuron and seed.",
        "Two panels, summer and winter: for each model a strip of dots between 0 and 1, with two marks for the means.",
        _draw_neurons(groups),
        details=f"Weights: {provenance}.",
    )


def _finding(groups: Mapping[str, Group]) -> str:
    means = {m: e for m, group in groups.items() if (e := _mean_over_runs(group, "summer")) is not None}
    if not means:
        return "Correlation of neurons with the road"
    first, last = max(means, key=lambda m: means[m].mean), min(means, key=lambda m: means[m].mean)
    return (
        f"In summer the neurons of {palette.model_label(first)} follow the road most closely (mean |r| "
        f"{means[first].mean:.2f}{driving.within_spread(means, largest=True)}), those of {palette.model_label(last)} "
        f"least ({means[last].mean:.2f}{driving.within_spread(means, largest=False)})"
    )


def _draw_neurons(groups: Mapping[str, Group]) -> Figure:
    import random

    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    jitter = random.Random(0)
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.5), layout="constrained")
        for panel, season in zip(figure.subplots(1, 2, sharey=True), SEASONS, strict=True):
            for column, (model, group) in enumerate(groups.items()):
                magnitudes = [r for run in group.runs for r in _magnitudes(run, season)]
                where = [column + jitter.uniform(-0.3, 0.3) for _ in magnitudes]
                style = palette.model_style(model)
                panel.plot(
                    where, magnitudes, style.marker, color=style.colour, alpha=0.45, markersize=3, rasterized=True
                )
                mean = _mean_over_runs(group, season)
                if mean is not None:
                    panel.errorbar(
                        column, mean.mean, mean.std or 0.0, fmt="_", color=palette.INK, markersize=26, capsize=5,
                        markeredgewidth=2, label="our mean ± deviation of seeds",
                    )  # fmt: skip
                panel.plot(
                    [column], [CLAIMED[season][model].mean], "D", markerfacecolor=palette.PAPER,
                    markeredgecolor=palette.INK, markersize=5, label="the paper's mean",
                )  # fmt: skip
            panel.set_xticks(range(len(groups)), [palette.model_label(model) for model in groups])
            panel.set(title=season, xlabel="model", ylim=(-0.02, 1.02))
            panel.grid(False, axis="x")
            if panel.get_subplotspec().is_first_col():
                panel.set_ylabel("|r| with the curvature")
        dot = Line2D([], [], color=palette.GREY, marker="o", markersize=3, linestyle="none", label="one neuron")
        handles = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
        figure.legend(handles=[dot, *handles.values()], loc="outside lower center", ncols=3)
        write_finding(figure, _finding(groups))
    return figure


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse, says=SAYS
)
