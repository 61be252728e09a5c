"""Table: training time per epoch of the lane-keeping policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.driving_runs import Model
from lrcnet_paper.results.groups import Group
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Lane keeping: training time per epoch"

# Minutes.
CLAIMED: Mapping[str, Any] = {
    "lstm": 2.57,
    "gru": 2.50,
    "mgu": 3.08,
    "ltc": 10.06,
    "stc": 10.13,
    "lrcu-a": 4.05,
    "lrcu-s": 4.16,
}
MODELS = tuple(Model(name) for name in CLAIMED)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the seven networks of the paper's table."""
    return driving.plan_shared_head_runs(MODELS, check_budget(budget), seeds)


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate the seconds per epoch beside the paper's minutes."""
    groups = driving.find_groups(runs, MODELS, wanted=driving.wants_shared_head)
    rows: list[tuple[Cell, ...]] = []
    for model in MODELS:
        group = groups.get(model)
        rows.append(
            (
                driving.label(model),
                CLAIMED[model.name],
                None if group is None else group.seconds_per_epoch(),
                None if group is None else _describe_range(group),
                None if group is None else len(group.runs),
            )
        )
    return Rendered(
        tables=[
            Table(
                "training-time",
                "Training time per epoch",
                ("model", "paper (min)", "ours (s), median over seeds", "ours (s), range over seeds", "seeds"),
                rows,
                "Our time is the median over seeds of each run's median epoch, of the recurrent part alone: all models "
                "read the features of a shared head. The paper's times include the head, which is the same for all "
                "models. Our runs shared the machine with other runs, so that the times are indications only and no "
                "ratio between models is given. On a quiet machine, the command “lrcnet bench driving” times a "
                "training step of LSTM, LRCU and LTC policies side by side; docs/performance.md has times of the "
                "kernels.",
            )
        ],
        skipped=[] if groups else ["times per epoch: no network has been trained on a shared head"],
        differences=driving.shared_head_differences(groups),
    )


def _describe_range(group: Group) -> str:
    seconds = [run.result.seconds_per_epoch for run in group.runs]
    return f"{min(seconds):.3g} to {max(seconds):.3g}"


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render)
