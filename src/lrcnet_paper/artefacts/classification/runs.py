"""The runs behind the classification table at each budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from lrcnet_paper import tasks
from lrcnet_paper.artefacts.initial_values import OUR_DEFAULTS
from lrcnet_paper.results.groups import Group
from lrcnet_paper.training.change import Change
from lrcnet_paper.training.rate_search import RATES
from lrcnet_paper.training.spec import Option, RunSpec

MODELS = ("lrcu-s", "lrcu-a", "lstm", "gru", "mgu")
# Rows beside the paper's: torch's own GRU, and liquid units that start from the library's default values.
FURTHER = ("torch-gru",)
LIQUID = ("lrcu-s", "lrcu-a")
TITLES = {"person": "Localization", "imdb": "IMDB", "psmnist": "psMNIST"}
TASKS = tuple(TITLES)

# Person activity has the paper's data, the data without timestamps and rounded to 10 cm, and the data's first four
# sequences; each also with the clean split. Variants whose files are missing are skipped.
DATA = (
    ("person", "full"),
    ("person", "full-clean"),
    ("person", "coarse"),
    ("person", "coarse-clean"),
    ("person", "a01-a04"),
    ("person", "a01-a04-clean"),
    ("imdb", "text"),
    ("psmnist", "permuted"),
)
# The short budgets leave out the clean split, for which the paper has no number.
FAITHFUL_ONLY = ("smoke", "quick")
# Irregular data, on which LRC-S has better solvers than the one Euler step of LRCU-S.
SOLVER_CHANGES = ("hybrid-1", "exponential-1", "rk4-1")
SOLVED = ("person", "a01-a04")
# The protocol names one rate for person activity, but the paper says that it searched three by validation loss. The
# faithful split has no validation set, so the rate is searched on the clean split of the same data.
SEARCHED = "person"

SEEDS: Mapping[str, int] = {"smoke": 1, "quick": 2, "paper": 3}
EPOCHS: Mapping[str, Mapping[str, int]] = {
    "smoke": {"person": 1, "imdb": 1, "psmnist": 1},
    "quick": {"person": 10, "imdb": 1, "psmnist": 2},
    "paper": {},
}
"""Budget -> task -> epochs, where they differ from the paper's number."""
SAMPLES: Mapping[str, Mapping[str, int]] = {
    "smoke": {"person": 64, "imdb": 32, "psmnist": 8},
    "quick": {"psmnist": 5000},
    "paper": {},
}
"""Budget -> task -> samples of each split, where not all of them are used."""


@dataclass(frozen=True)
class Setting:
    """One line of the plan: a model, its solver ("" for its own), its rate (None for the recipe's) and its options."""

    model: str
    solver: str = ""
    rate: float | None = None
    options: Mapping[str, Option] = field(default_factory=dict)


def plan_runs(budget: str, seeds: int | None) -> list[RunSpec]:
    """List the runs of a budget seed by seed, so that an interrupted grid has whole tables."""
    count = SEEDS[budget] if seeds is None else seeds
    return [spec.with_(seed=seed) for seed in range(count) for spec in _runs_of_one_seed(budget)]


def _runs_of_one_seed(budget: str) -> Iterator[RunSpec]:
    for task, variant in DATA:
        if budget in FAITHFUL_ONLY and variant.endswith("-clean"):
            continue
        for setting in _settings(budget, task, variant):
            yield RunSpec(
                task,
                variant,
                setting.model,
                solver=setting.solver,
                epochs=EPOCHS[budget].get(task),
                budget=budget,
                samples=SAMPLES[budget].get(task),
                learning_rate=setting.rate,
                options=setting.options,
            )


def _settings(budget: str, task: str, variant: str) -> Iterator[Setting]:
    solvers = SOLVER_CHANGES if (task, variant) == SOLVED else ()
    own_rate = tasks.find(task, variant).recipe.learning_rate
    rates = [rate for rate in RATES if rate != own_rate] if task == SEARCHED and budget == "paper" else []
    return chain(
        (Setting(model) for model in MODELS),
        (Setting("lrc-s", solver=solver) for solver in solvers),
        (Setting(model) for model in (FURTHER if budget == "paper" else ())),
        (Setting(model, options=OUR_DEFAULTS) for model in (LIQUID if budget == "paper" and task != "imdb" else ())),
        (Setting(model, rate=rate) for rate in rates for model in MODELS),
    )


def has_other_solver(group: Group) -> bool:
    """Tell whether a group has one of `SOLVER_CHANGES` and is otherwise trained by the recipe."""
    return group.spec.solver in SOLVER_CHANGES and group.change == Change(solver=group.spec.solver)
