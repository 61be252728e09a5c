"""Table: training time per epoch of the lane-keeping policies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.driving_runs import Model
from lrcnet_paper.artefacts.sentences import join_words
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
    """Tabulate the seconds per epoch, also as multiples of the LSTM's."""
    groups = driving.find_groups(runs, MODELS, wanted=driving.wants_shared_head)
    lstm = groups.get(Model("lstm"))
    rows: list[tuple[Cell, ...]] = []
    for model in MODELS:
        group = groups.get(model)
        rows.append(
            (
                driving.label(model),
                CLAIMED[model.name],
                None if group is None else group.seconds_per_epoch(),
                f"{CLAIMED[model.name] / CLAIMED['lstm']:.2f}",
                None if group is None or lstm is None else f"{_ratio(group, lstm):.2f}",
                None if group is None else len(group.runs),
            )
        )
    return Rendered(
        tables=[
            Table(
                "training-time",
                "Training time per epoch",
                ("model", "paper (min)", "ours (s)", "paper, × LSTM", "ours, × LSTM", "seeds"),
                rows,
                "Our time is the median epoch of each run, averaged over seeds, of the recurrent part alone: all "
                "models read the features of a shared head. The paper's times include the head, which is the same for "
                f"all models. {_compare_ratios(groups)}The command “lrcnet bench driving” times whole policies side by "
                "side in one process.",
            )
        ],
        skipped=[] if groups else ["times per epoch: no network has been trained on a shared head"],
    )


def _compare_ratios(groups: Mapping[Model, Group]) -> str:
    """Name the models whose time relative to the LSTM's is further from 1 than in the paper, and those closer to it."""
    lstm = groups.get(Model("lstm"))
    if lstm is None:
        return ""
    further: list[str] = []
    closer: list[str] = []
    for model, group in groups.items():
        if model.name != "lstm":
            ours, paper = (abs(math.log(r)) for r in (_ratio(group, lstm), CLAIMED[model.name] / CLAIMED["lstm"]))
            (further if ours > paper else closer).append(driving.label(model))
    sides = {"further from 1": further, "closer to 1": closer}
    parts = [f"{side} than the paper's for {join_words(names)}" for side, names in sides.items() if names]
    return f"Our ratios to the LSTM's time are {', and '.join(parts)}. " if parts else ""


def _ratio(group: Group, lstm: Group) -> float:
    return group.seconds_per_epoch() / lstm.seconds_per_epoch()


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render)
