"""Table: the same policies in two worlds from other projects, VISTA and CarRacing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.driving_runs import POLICIES, TASK, Model, TrainingBudget
from lrcnet_paper.artefacts.policy_measurements import PRIMARY_READING
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.road_seeds import OTHER_WORLDS, first_seeds
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

NAME = "other-worlds"
TITLE = "The policies in VISTA and CarRacing"

# The paper drives in VISTA with its own recordings; the closed-loop table has its numbers.
CLAIMED: Mapping[str, Any] = {"simulator": "VISTA"}

CAR_RACING = "carracing"
NOISES = (0.0, 0.1, 0.2)
CAR_RACING_BUDGETS: Mapping[str, TrainingBudget | None] = {
    "smoke": None,
    "quick": TrainingBudget(CAR_RACING, 1, epochs=10, samples=480, batch_size=4, piece=8, learning_rate=1e-3),
    "paper": TrainingBudget(CAR_RACING, 3),
}
# Metres; a whole drive takes at least 300 steps of 1/30 s. VISTA renders only about 36 frames per second, so each
# policy drives once there.
LENGTHS = {"vista": 200.0, CAR_RACING: 200.0}
DRIVES_PER_NOISE = {"vista": 1, CAR_RACING: 4}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan policies trained in our own world, which drive in VISTA, and policies trained in CarRacing."""
    own = driving.plan_runs(POLICIES, check_budget(budget), 1 if seeds is None else seeds)
    settings = CAR_RACING_BUDGETS[budget]
    return own if settings is None else own + driving.plan_runs_with(settings, POLICIES, budget, seeds)


def wants(result: Result) -> bool:
    """Return whether a result is of seed 0 in our own world, or of any seed in CarRacing; smoke runs are excluded."""
    if result.budget == "smoke" or result.task != TASK:
        return False
    if result.variant == CAR_RACING:
        return not result.spec.change
    return driving.wants(result) and result.seed == 0


def analyse(folder: Path) -> dict[str, Any]:
    """Drive a policy in CarRacing if it was trained there, else in VISTA."""
    from lrcnet_paper.driving import STEP, PolicyStep, drive
    from lrcnet_paper.driving.environment import OUTCOMES
    from lrcnet_paper.driving.worlds import make_world
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    name = CAR_RACING if trained.spec.variant == CAR_RACING else "vista"
    roads = first_seeds(OTHER_WORLDS, DRIVES_PER_NOISE[name])
    season = "mixed" if name == CAR_RACING else "summer"
    drives = []
    for noise in NOISES:
        world = make_world(name, roads, season=season, length=LENGTHS[name])
        metres = [0.0] * len(world)

        def add_metres(step: PolicyStep, metres: list[float] = metres) -> None:
            for car in step.cars.tolist():
                metres[car] += STEP * float(step.situation.speed[car])

        outcomes = drive(world, policy.step, noise=noise, reading=PRIMARY_READING, watch=add_metres)
        names = [OUTCOMES[code] for code in outcomes.status.tolist()]
        drives.append({"noise": noise, "metres": [round(m, 1) for m in metres], "outcomes": names})
    return {"world": name, "length": LENGTHS[name], "drives": drives}


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate how each drive ended, and after how many metres."""
    rows = [
        row
        for world, variants in (("vista", driving.OWN_VARIANTS), (CAR_RACING, {CAR_RACING}))
        for model in POLICIES
        if (row := _row(runs, world, variants, model)) is not None
    ]
    if not rows:
        return Rendered(skipped=["drives in other worlds: none has been made"])
    table = Table(
        "other-worlds",
        "Outcomes of drives in worlds from other projects, by noise variance",
        ("world", "model", *(f"noise {noise:g}" for noise in NOISES), "length (m)", "validation loss", "budget"),
        rows,
        "VISTA replays recordings from shifted viewpoints; these recordings were made in our own world, where the "
        "policies were trained (seed 0). CarRacing takes its track, colours and physics from gymnasium; the camera is "
        "ours, and the policies were trained there. The variance of the noise is a share of the frame's own, as in the "
        "closed loop of our own world. The paper has no such table.",
    )
    return Rendered(tables=[table])


def _row(runs: Sequence[FinishedRun], world: str, variants: Collection[str], model: Model) -> tuple[Cell, ...] | None:
    """Return the row of the first run of a model that drove in a world, or None without such a run."""
    for group in group_runs(runs, TASK):
        if group.variant not in variants or not driving.is_run_of(group.spec, (model,)):
            continue
        for run in group.finished:
            measurement = run.analyses.get(NAME, {})
            if measurement.get("world") == world:
                outcomes = {drives["noise"]: _describe_outcomes(drives) for drives in measurement["drives"]}
                return (
                    world,
                    driving.label(model),
                    *(outcomes.get(noise) for noise in NOISES),
                    f"{measurement['length']:g}",
                    run.result.metrics.get("validation_curvature_loss"),
                    group.budget,
                )
    return None


def _describe_outcomes(drives: Mapping[str, Any]) -> str:
    """Say how many drives arrived, and how and after how many metres the others ended."""
    metres_by_outcome: dict[str, list[float]] = {}
    for outcome, metres in zip(drives["outcomes"], drives["metres"], strict=True):
        metres_by_outcome.setdefault(outcome, []).append(metres)
    arrived = len(metres_by_outcome.pop("arrived", []))
    failures = [
        f"{outcome} after {', '.join(f'{m:.0f}' for m in metres)} m" for outcome, metres in metres_by_outcome.items()
    ]
    return "; ".join([f"{arrived} of {len(drives['outcomes'])} arrived", *failures])


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse, part="sensitivity"
)
