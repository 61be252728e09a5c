"""Table: LTC and STC as lane-keeping policies, trained end to end as the five policies of the paper are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.attention.similarity import mean_similarity
from lrcnet_paper.artefacts.closed_loop import likelihood
from lrcnet_paper.artefacts.driving_runs import EFFICIENCY, FURTHER, Model
from lrcnet_paper.artefacts.policy_measurements import SEASONS, measured_part
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Lane keeping by LTC and STC"

# The paper compares these networks by their losses and constants alone; see the efficiency table.
CLAIMED: Mapping[str, Any] = {"networks": tuple(EFFICIENCY)}
NOISES = (0.0, 0.1, 0.2)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the networks that are not among the five policies; the shorter budgets leave them out."""
    return driving.plan_runs(FURTHER, budget, seeds) if check_budget(budget) == "paper" else []


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate losses, crashes and the change of attention under noise, the LRCUs beside them."""
    groups = driving.find_groups(runs, tuple(EFFICIENCY.values()))
    missing = not any(model in groups for model in FURTHER)
    rows = [_row(name, groups.get(model)) for name, model in EFFICIENCY.items()]
    return Rendered(
        tables=[
            Table(
                "liquid-policies",
                "LTC, STC and LRC as policies, trained end to end",
                (
                    "network",
                    "validation loss",
                    "weighted loss",
                    "gain in sharp bends",
                    *(f"crashes, {noise:g}" for noise in NOISES),
                    *(f"attention, {season}" for season in SEASONS),
                    "seeds",
                ),
                rows,
                "Crashes: the share of drives over both seasons, by the variance of the noise on the normalised frame. "
                "Attention: structural similarity with and without noise, the mean over both variances. "
                f"{_failures(groups)}{driving.describe(groups)} The paper has no such table.",
            )
        ],
        skipped=["LTC and STC as policies: none has been trained end to end"] if missing else [],
        differences=(*driving.end_to_end_differences(groups), driving.LOSSES),
    )


def _failures(groups: Mapping[Model, Group]) -> str:
    """Name the seeds that did not learn to steer: they are in the means, and explain their spread."""
    failed = [
        f"{name} with seed {run.result.seed} (gain {gain:.2f})"
        for name, model in EFFICIENCY.items()
        if model in groups
        for run in groups[model].runs
        if (gain := run.result.metrics.get(driving.GAIN, math.nan)) < driving.ENOUGH_GAIN
    ]
    return f"Not learned, and included in the means: {', '.join(failed)}. " if failed else ""


def _row(name: str, group: Group | None) -> tuple[Cell, ...]:
    if group is None:
        return (name, *[None] * (4 + len(NOISES) + len(SEASONS)))
    attention = measured_part(group, "attention")
    return (
        name,
        group.metric("validation_curvature_loss"),
        group.metric("validation_weighted_loss"),
        driving.sharp_bend_gain(group),
        *(likelihood(group, noise) for noise in NOISES),
        *(mean_similarity(attention, season) for season in SEASONS),
        len(group.runs),
    )


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, part="sensitivity")
