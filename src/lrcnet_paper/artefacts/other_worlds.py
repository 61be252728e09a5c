"""Table: the same policies in worlds that nobody here wrote, VISTA and CarRacing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.closed_loop import NOISES
from lrcnet_paper.artefacts.driving_runs import POLICIES, TASK, Effort, Model
from lrcnet_paper.results.groups import grouped
from lrcnet_paper.road_seeds import OTHER_WORLDS, first_seeds
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished import Finished
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

NAME = "other-worlds"
TITLE = "The policies in VISTA and CarRacing"

# The paper drives in VISTA beside recordings of its own; see the closed-loop table for its numbers.
CLAIMED: Mapping[str, Any] = {"simulator": "VISTA"}

CAR_RACING = "carracing"
EFFORTS: Mapping[str, Effort | None] = {
    "smoke": None,
    "quick": Effort(CAR_RACING, 1, epochs=10, samples=480, batch_size=4, piece=8, learning_rate=1e-3),
    "paper": Effort(CAR_RACING, 3),
}
# VISTA draws about 36 pictures a second, so one drive of each policy there; at least 300 steps of 1/30 s.
LENGTHS = {"vista": 200.0, CAR_RACING: 200.0}
DRIVES = {"vista": 1, CAR_RACING: 4}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Policies trained in our own world, for VISTA, and others trained in CarRacing."""
    own = driving.planned(POLICIES, check_budget(budget), 1 if seeds is None else seeds)
    effort = EFFORTS[budget]
    return own if effort is None else own + driving.specs(POLICIES, budget, effort, seeds)


def wants(result: Result) -> bool:
    """Seed 0 of what was trained in our own world, and all that was trained in CarRacing; no smoke runs."""
    if result.budget == "smoke" or result.task != TASK:
        return False
    return result.variant == CAR_RACING or (driving.wants(result) and result.seed == 0)


def analyse(folder: Path) -> dict[str, Any]:
    """Drives a policy in the world it is for: CarRacing if it was trained there, else VISTA."""
    from lrcnet_paper.driving import drive
    from lrcnet_paper.driving.environment import OUTCOMES
    from lrcnet_paper.driving.worlds import make_world
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    name = CAR_RACING if trained.spec.variant == CAR_RACING else "vista"
    roads = first_seeds(OTHER_WORLDS, DRIVES[name])
    season = "mixed" if name == CAR_RACING else "summer"
    drives = []
    for noise in NOISES:
        world = make_world(name, roads, season=season, length=LENGTHS[name])
        ended = drive(world, policy.step, noise=noise)
        outcomes = [OUTCOMES[code] for code in ended.status.tolist()]
        drives.append({"noise": noise, "steps": ended.steps.tolist(), "outcomes": outcomes})
    return {"world": name, "length": LENGTHS[name], "drives": drives}


def render(runs: Sequence[Finished]) -> Rendered:
    """How each drive ended, and after how many steps."""
    rows: list[tuple[Cell, ...]] = []
    for world, variants in (("vista", _own_variants()), (CAR_RACING, {CAR_RACING})):
        for model in POLICIES:
            found = [
                (group, run)
                for group in grouped(runs, TASK)
                if group.variant in variants and Model(group.model, group.change) == model
                for run in group.finished
                if run.analyses.get(NAME, {}).get("world") == world
            ]
            for group, run in found[:1]:
                seen = run.analyses[NAME]
                words = {drives["noise"]: _ended(drives) for drives in seen["drives"]}
                loss = run.result.metrics.get("validation_curvature_loss")
                ends = [words.get(noise) for noise in NOISES]
                rows.append((world, driving.label(model), *ends, f"{seen['length']:g}", loss, group.budget))
    return Rendered(
        skipped=[] if rows else ["drives in other worlds: none has been made"],
        tables=[
            Table(
                "other-worlds",
                "How drives ended in worlds from elsewhere, by the variance of the noise",
                (
                    "world",
                    "model",
                    *(f"noise {noise:g}" for noise in NOISES),
                    "length (m)",
                    "validation loss",
                    "budget",
                ),
                rows,
                "VISTA replays recordings from shifted viewpoints; these recordings were made in our own world, where "
                "the policies were trained (seed 0). CarRacing's track, colours and physics are gymnasium's, the "
                "camera is ours, and the policies were trained there. Noise is as in the closed loop of our own "
                "world; numbers are steps of 1/30 s. Not in the paper in this form.",
            )
        ],
    )


def _ended(drives: Mapping[str, Any]) -> str:
    """How many arrived, and how and when the others ended."""
    after: dict[str, list[int]] = {}
    for outcome, steps in zip(drives["outcomes"], drives["steps"], strict=True):
        after.setdefault(outcome, []).append(steps)
    arrived = len(after.pop("arrived", []))
    short = [f"{outcome} after {', '.join(map(str, steps))}" for outcome, steps in after.items()]
    return "; ".join([f"{arrived} of {len(drives['steps'])} arrived", *short])


def _own_variants() -> set[str]:
    return {effort.variant for effort in driving.EFFORTS.values()}


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
