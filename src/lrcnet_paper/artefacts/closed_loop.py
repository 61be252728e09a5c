"""Table: share of closed-loop drives in which each policy crashes, with and without noise on the camera's frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts import lane_keeping
from lrcnet_paper.artefacts.artefact import Claim, Comparison, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.curves import ONE_DEVIATION, draw_band, legend_below, write_finding
from lrcnet_paper.artefacts.driving_runs import POLICIES, Model
from lrcnet_paper.artefacts.policy_measurements import GATED, PRIMARY_READING, READING_NAMES, READING_NOTE, SEASONS
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.driving.closed_loop import READINGS, NoiseReading
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import judge_comparison
from lrcnet_paper.road_seeds import CLOSED_LOOP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lrcnet_paper.driving import World
    from lrcnet_paper.results.finished_run import FinishedRun

NAME = "closed-loop"
TITLE = "Lane keeping: crashes in the closed loop"
SAYS = "LRCUs crash less often than gated units under noise."

CLAIMED: Mapping[Any, Any] = {
    0.1: {
        "lstm": Estimate(0.0, 0.0, 3, digits=3),
        "gru": Estimate(0.133, 0.189, 3, digits=3),
        "mgu": Estimate(0.267, 0.221, 3, digits=3),
        "lrcu-a": Estimate(0.0, 0.0, 3, digits=3),
        "lrcu-s": Estimate(0.0, 0.0, 3, digits=3),
    },
    0.2: {
        "lstm": Estimate(0.483, 0.254, 3, digits=3),
        "gru": Estimate(0.767, 0.047, 3, digits=3),
        "mgu": Estimate(0.817, 0.037, 3, digits=3),
        "lrcu-a": Estimate(0.200, 0.231, 3, digits=3),
        "lrcu-s": Estimate(0.300, 0.216, 3, digits=3),
    },
}
# The paper's two variances, and a sweep below them, so that crash rates do not sit at the ceiling.
NOISES = (0.0, 0.003, 0.01, 0.03, 0.06, 0.1, 0.2)
# A comparison has a warning if the share of crashes of both policies is not above this.
RARE = 0.05


class DriveBudget(NamedTuple):
    """Number of drives of each policy per season and noise, and the length of each in metres."""

    drives: int
    length: float


# Every seed drives roads of its own: with three seeds, a cell counts at least 100 roads, except in smoke runs.
DRIVE_BUDGETS: Mapping[str, DriveBudget] = {
    "smoke": DriveBudget(2, 4.0),
    "quick": DriveBudget(34, 150.0),
    "paper": DriveBudget(100, 1000.0),
}


def analyse(folder: Path) -> dict[str, Any]:
    """Drive a policy over roads that are in no recording, each season and noise as one batch.

    Returns:
        Drives and crashes by season and noise, and those of the expert ("driver") on the same roads.
    """
    from lrcnet_paper.driving import World, drive
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    count, length = DRIVE_BUDGETS.get(trained.spec.budget, DRIVE_BUDGETS["quick"])
    roads = CLOSED_LOOP[count * trained.spec.seed : count * (trained.spec.seed + 1)]
    cells = []
    by_expert = {"drives": 0, "crashes": 0}
    for season in SEASONS:
        by_expert["drives"] += count
        by_expert["crashes"] += _count_expert_crashes(World(roads, season=season, length=length))
        for noise, reading in _noises(Model(trained.spec.model, trained.spec.solver)):
            # All policies of a seed drive the same roads with the same appearance and the same noise.
            world = World(roads, season=season, length=length)
            outcomes = drive(world, policy.step, noise=noise, reading=reading, seed=trained.spec.seed)
            crashed = int(outcomes.crashed.sum())
            cell = {"season": season, "noise": noise, "reading": reading, "drives": count, "crashes": crashed}
            cells.append(cell | {"length": length})
    return {"cells": cells, "driver": by_expert}


def _noises(model: Model) -> Iterator[tuple[float, NoiseReading]]:
    """Yield every noise of the sweep by both readings; without noise they are the same.

    Networks that the paper does not drive get its two variances by the primary reading only, which is a quarter of the
    drives.
    """
    yield 0.0, PRIMARY_READING
    if model not in POLICIES:
        yield from ((noise, PRIMARY_READING) for noise in CLAIMED)
        return
    for reading in READINGS:
        yield from ((noise, reading) for noise in NOISES if noise)


def _count_expert_crashes(world: World) -> int:
    """Count the crashes of the expert, who wanders and is pushed aside as in the recordings."""
    from lrcnet_paper.driving.expert_drive import expert_drive
    from lrcnet_paper.driving.vehicle import ARRIVED

    for _ in expert_drive(world, world.expert(), frames=False):
        pass
    return int((world.status() != ARRIVED).sum())


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set crash likelihoods beside the paper's; the picture shows every season and noise."""
    groups = driving.find_groups(runs, POLICIES)
    measured = {model: group for model, group in groups.items() if any(NAME in run.analyses for run in group.runs)}
    if not measured:
        return Rendered(
            tables=[_table({})], claims=_claims({}), skipped=["crash likelihoods: no policy has been driven"]
        )
    return Rendered(
        tables=[_table(measured)],
        pictures=[_picture(measured)],
        claims=_claims(measured),
        differences=(*driving.end_to_end_differences(measured), READING_NOTE),
        sensitivities=[_sweep_table(measured)],
    )


def likelihood(
    group: Group, noise: float, season: str | None = None, reading: NoiseReading = PRIMARY_READING
) -> Estimate | None:
    """Return the mean over seeds of the share of drives that crash, in one season or over both."""
    reading = reading if noise else PRIMARY_READING
    shares, drives = {}, []
    for run in group.finished:
        measured = [c for c in _cells(run) if c["noise"] == noise and c["reading"] == reading]
        cells = [c for c in measured if season in (None, c["season"])]
        if cells:
            drives.append(sum(c["drives"] for c in cells))
            shares[run.result.seed] = sum(c["crashes"] for c in cells) / drives[-1]
    return mean_over_seeds(shares, digits=3, trials=min(drives, default=None))


def _table(measured: Mapping[Model, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for model in POLICIES:
        group = measured.get(model)
        cells: list[Cell] = [driving.label(model)]
        for noise in (0.0, *CLAIMED):
            if noise:
                cells.append(CLAIMED[noise][model.name])
            cells += [None if group is None else likelihood(group, noise, season) for season in SEASONS]
        cells += [driving.sharp_bend_gain(group)]
        cells += [None, None] if group is None else [len(group.runs), _drives_per_cell(group)]
        rows.append(tuple(cells))
    columns = [
        f"{source}, {noise:g}" for noise in (0.0, *CLAIMED) for source in (("paper", *SEASONS) if noise else SEASONS)
    ]
    length = next((c["length"] for g in measured.values() for r in g.runs for c in _cells(r)), 0.0)
    return Table(
        "crashes",
        "Share of drives that crash, by season and noise variance",
        ("model", *columns, "gain in sharp bends", "seeds", "roads per cell"),
        rows,
        f"Drives of {length:g} m over roads that are in no recording{_expert_note(measured)}; a "
        "drive crashes when the car is more than 2 m off the middle of its lane or points more than 18° away from it. "
        "Gaussian noise is added to each pixel and colour; its variance is a share of the frame's own, as on a "
        "normalised frame. The sweep below has the other reading too. The paper gives one number for both seasons and "
        "drives in another simulator.",
    )


def _sweep_table(measured: Mapping[Model, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (driving.label(model), reading, *(likelihood(group, noise, reading=reading) for noise in NOISES))
        for model, group in measured.items()
        for reading in READINGS
    ]
    return Table(
        "noise-sweep",
        "Share of drives that crash over a sweep of noise, both seasons together",
        ("model", "variance of", *(f"{noise:g}" for noise in NOISES)),
        rows,
        "Pixels: the variance refers to values from 0 to 1, which are clipped. Normalised: to a frame's own variance.",
        row_headers=2,
    )


def _expert_note(measured: Mapping[Model, Group]) -> str:
    """Describe the expert's crashes on these roads, which are the same for all policies of a seed."""
    by_expert = {
        run.result.seed: run.analyses[NAME]["driver"]
        for group in measured.values()
        for run in group.runs
        if "driver" in run.analyses.get(NAME, {})
    }
    crashes, drives = (sum(one[kind] for one in by_expert.values()) for kind in ("crashes", "drives"))
    return f" (the expert crashes in {crashes} of {drives} drives there)" if drives else ""


def _cells(run: FinishedRun) -> list[Mapping[str, Any]]:
    cells: list[Mapping[str, Any]] = run.analyses.get(NAME, {}).get("cells", [])
    return cells


def _drives_per_cell(group: Group) -> int:
    """Count the drives of one season and noise over all seeds."""
    drives: int = sum(c["drives"] for run in group.runs for c in _cells(run) if not c["noise"])
    return drives // len(SEASONS)


def _claims(measured: Mapping[Model, Group]) -> list[Claim]:
    claims = []
    for noise in CLAIMED:
        for model in ("lrcu-a", "lrcu-s"):
            # Where the means of the paper are equal, it has neither ahead.
            rivals = [other for other in GATED if CLAIMED[noise][other].mean != CLAIMED[noise][model].mean]
            names = join_words([palette.model_label(other) for other in rivals])
            warning = _rare_warning(measured, noise, model, rivals)
            claims.append(
                Claim.against_all(
                    f"Noise {noise:g}: {palette.model_label(model)} crashes less often than {names}.",
                    {palette.model_label(other): _compare(measured, noise, model, other, warning) for other in rivals},
                )
            )
    return claims


def _rare_warning(measured: Mapping[Model, Group], noise: float, model: str, rivals: Sequence[str]) -> tuple[str, ...]:
    """Name the rivals that crash hardly ever, as the model does, but often in the paper; () if there are none."""

    def is_rare(name: str) -> bool:
        group = measured.get(Model(name))
        share = None if group is None else likelihood(group, noise)
        return share is not None and share.mean <= RARE

    rare = [other for other in rivals if is_rare(other) and CLAIMED[noise][other].mean > RARE]
    if not rare or not is_rare(model):
        return ()
    names = join_words([palette.model_label(name) for name in (model, *rare)])
    return (f"{names} each crash in at most {100 * RARE:g} % of the drives, so that a difference can hardly show",)


def _compare(
    measured: Mapping[Model, Group], noise: float, model: str, other: str, warning: tuple[str, ...]
) -> Comparison:
    claimed = CLAIMED[noise][model], CLAIMED[noise][other]
    pair = [measured.get(Model(name)) for name in (model, other)]
    first, second = (None if g is None else likelihood(g, noise) for g in pair)
    under = driving.conditions(*[g for g in pair if g is not None])
    under = replace(under, warnings=(*under.warnings, *warning))
    return Comparison(
        f"{claimed[0].mean:.3f} against {claimed[1].mean:.3f}",
        "–" if first is None or second is None else f"{first} against {second}",
        judge_comparison(claimed, (first, second), larger_is_better=False, under=under),
    )


def _picture(measured: Mapping[Model, Group]) -> Picture:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    with palette.figure_style():
        figure = Figure(figsize=(7.4, 5.6), layout="constrained")
        panels = figure.subplots(len(READINGS), len(SEASONS), sharey=True, sharex=True)
        for line, reading in zip(panels, READINGS, strict=True):
            for axes, season in zip(line, SEASONS, strict=True):
                for model, group in measured.items():
                    _draw_sweep(axes, model, group, season, reading)
                axes.set(title=f"{season}, variance of {READING_NAMES[reading]}", ylim=(-4, 104))
                axes.set_xticks(range(len(NOISES)), [f"{noise:g}" for noise in NOISES])
            line[0].set_ylabel("drives that crash (%)")
        for axes in panels[-1]:
            axes.set_xlabel("variance of the noise (steps of the sweep)")
        diamond = Line2D([], [], marker="D", markerfacecolor=palette.PAPER, markeredgecolor=palette.INK, markersize=6,
                         linestyle="none", label="paper")  # fmt: skip
        legend_below(figure, [panels[0][0]], [diamond])
        write_finding(figure, _finding(measured))
    return Picture(
        "crashes",
        "Share of drives that crash: mean over seeds; bands reach one standard deviation to each side, clipped at 0 "
        "and 100 %. Diamonds are the paper's numbers, drawn at the reading that claims are judged by.",
        "Four panels, two seasons by two readings of the noise, of crash likelihood against noise for each policy.",
        figure,
    )


def _draw_sweep(axes: Axes, model: Model, group: Group, season: str, reading: NoiseReading) -> None:
    """Draw the crash rates of one policy over the noise, and the paper's where it has any."""
    style = palette.model_style(model.name)
    numbers = [likelihood(group, noise, season, reading) for noise in NOISES]
    known = [(i, number) for i, number in enumerate(numbers) if number is not None]
    means = [100 * number.mean for _, number in known]
    down, up = zip(*(_error_bar(number) for _, number in known), strict=True) if known else ((), ())
    where = [i for i, _ in known]
    axes.plot(
        where, means, color=style.colour, linestyle=style.dashes, marker=style.marker, markersize=5, label=style.label
    )
    # Five error bars at one place would hide each other; bands do not.
    draw_band(
        axes,
        where,
        [m - d for m, d in zip(means, down, strict=True)],
        [m + u for m, u in zip(means, up, strict=True)],
        style.colour,
        ONE_DEVIATION,
    )
    if reading == PRIMARY_READING:
        for noise, claimed in CLAIMED.items():
            axes.plot(
                NOISES.index(noise), 100 * claimed[model.name].mean, "D", markerfacecolor=palette.PAPER,
                markeredgecolor=style.colour, markersize=6,
            )  # fmt: skip


def _finding(measured: Mapping[Model, Group]) -> str:
    if note := driving.incomplete(measured):
        return note
    noise = max(CLAIMED)
    rates = {m: e for m, g in measured.items() if (e := likelihood(g, noise)) is not None}
    best, worst = min(rates, key=lambda m: rates[m].mean), max(rates, key=lambda m: rates[m].mean)
    return (
        f"At variance {noise:g} of the normalised frame {driving.label(best)} crashes least "
        f"({100 * rates[best].mean:.0f} %{driving.within_spread(rates, largest=False)}), {driving.label(worst)} most "
        f"({100 * rates[worst].mean:.0f} %{driving.within_spread(rates, largest=True)})"
        f"{driving.too_few_seeds(measured)}"
    )


def _error_bar(number: Estimate) -> tuple[float, float]:
    """Return how far the error bar reaches down and up, in percent."""
    std = 0.0 if number.std is None or math.isnan(number.std) else number.std
    return 100 * min(std, number.mean), 100 * min(std, 1 - number.mean)


ARTEFACT = MeasuringArtefact(
    title=TITLE,
    claimed=CLAIMED,
    runs=lane_keeping.runs,
    render=render,
    wants=driving.wants_end_to_end,
    analyse=analyse,
    says=SAYS,
)
