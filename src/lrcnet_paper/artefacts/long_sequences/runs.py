"""The runs behind the table of long sequences: SelfRegulationSCP1 and SCP2, five published splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lrcnet_paper.tasks.uea import PUBLISHED
from lrcnet_paper.training.spec import Option, RunSpec

TASK = "uea"
SETS = {"scp1": "SelfRegulationSCP1", "scp2": "SelfRegulationSCP2"}
# The LrcSSM paper's sizes. That each block drops 5 % of its features in training is our choice.
SIZES: Mapping[str, Mapping[str, Option]] = {
    "scp1": {"units": 64, "states": 16, "blocks": 2, "dropout": 0.05},
    "scp2": {"units": 128, "states": 64, "blocks": 2, "dropout": 0.05},
}
# The numbers of parameters of these two networks; the others come as near to them as a whole number of units allows.
PARAMETERS = {"scp1": 24_258, "scp2": 119_042}
CONTRACTION = 0.01


@dataclass(frozen=True)
class Row:
    """One row of the table: a model, its solver ("" for its own), and further options."""

    model: str
    solver: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)


ROWS = (
    Row("lrc-ssm", "euler-1"),
    Row("lrcu-s"),
    Row("lstm"),
    # The unit of the LRC paper's tables: torch's own takes 5 to 10 times as long at this batch of 4.
    Row("gru"),
    Row("lrc-ssm", "euler-1", {"contraction": CONTRACTION}),
)
# The short budgets leave out the certified network.
SHORT_ROWS = ROWS[:4]

SEEDS: Mapping[str, int] = {"smoke": 1, "quick": 1, "paper": len(PUBLISHED)}
EPOCHS: Mapping[str, int | None] = {"smoke": 1, "quick": 10, "paper": None}
SAMPLES: Mapping[str, int | None] = {"smoke": 4, "quick": 128, "paper": None}


def plan_runs(budget: str, seeds: int | None) -> list[RunSpec]:
    """List the runs of a budget; seed k has the k-th published split."""
    count = SEEDS[budget] if seeds is None else seeds
    return [spec for row in (ROWS if budget == "paper" else SHORT_ROWS) for spec in _runs_of(row, budget, count)]


def _runs_of(row: Row, budget: str, count: int) -> Iterator[RunSpec]:
    for name in SETS:
        if row.options and name != "scp1":
            continue  # the certificate's cost is measured on one set
        sizes = SIZES[name] if row.model == "lrc-ssm" else {"parameters": PARAMETERS[name]}
        for seed in range(count):
            yield RunSpec(
                TASK,
                f"{name}-{PUBLISHED[seed % len(PUBLISHED)]}",
                row.model,
                solver=row.solver,
                seed=seed,
                epochs=EPOCHS[budget],
                budget=budget,
                samples=SAMPLES[budget],
                options={**sizes, **row.options},
            )
