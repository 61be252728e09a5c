"""Table: training time per epoch of the lane-keeping policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Cell, Claim, Rendered, Table
from lrcnet_paper.artefacts.driving_runs import Model
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import Verdict
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished import Finished
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
NEAR = 0.05  # times within 5 % of each other are the same


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """The seven networks of the paper's table."""
    return driving.planned(MODELS, check_budget(budget), seeds)


def render(runs: Sequence[Finished]) -> Rendered:
    """Seconds per epoch, and each as a multiple of the LSTM's."""
    found = driving.found(runs, MODELS)
    base = found.get(Model("lstm"))
    rows: list[tuple[Cell, ...]] = []
    for model in MODELS:
        group = found.get(model)
        rows.append(
            (
                driving.label(model),
                CLAIMED[model.name],
                None if group is None else group.seconds_per_epoch(),
                f"{CLAIMED[model.name] / CLAIMED['lstm']:.2f}",
                None if group is None or base is None else f"{_ratio(group, base):.2f}",
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
                "Ours is the median epoch of each run, the mean over seeds; an epoch here is shorter than the paper's, "
                "so the ratios are to be compared. Nearly all of it goes into the convolutional head, which is the "
                "same for all models; `lrcnet bench driving` times one model beside the other in one process.",
            )
        ],
        claims=[_claim(found, model) for model in ("lrcu-a", "lrcu-s")],
        skipped=[] if found else ["times per epoch: no policy has been trained"],
    )


def _ratio(group: Group, base: Group) -> float:
    return group.seconds_per_epoch() / base.seconds_per_epoch()


def _claim(found: Mapping[Model, Group], model: str) -> Claim:
    group, base = found.get(Model(model)), found.get(Model("lstm"))
    claimed = CLAIMED[model] / CLAIMED["lstm"]
    ours = None if group is None or base is None else _ratio(group, base)
    under = () if group is None else driving.conditions(group).notes
    if ours is None or group is None or group.budget == "smoke":
        verdict = Verdict("open", under or ("not measured",))
    else:
        within = abs(ours - claimed) <= NEAR * claimed
        verdict = Verdict("reproduced" if within else "better" if ours < claimed else "not reached", under)
    return Claim(
        f"An epoch of {driving.label(Model(model))} takes {claimed:.2f} times an LSTM's.",
        f"{claimed:.2f}",
        "–" if ours is None else f"{ours:.2f}",
        verdict,
    )


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render)
