"""Which runs the classification table is made of, at each budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from lrcnet.training.spec import RunSpec

MODELS = ("lrcu-s", "lrcu-a", "lstm", "gru", "mgu")
TASKS = ("person", "imdb", "psmnist")
TITLES = {"person": "Localization", "imdb": "IMDB", "psmnist": "psMNIST"}

# The paper's person data; without timestamps and cut to 10 cm; its first four sequences; and the clean split of each.
# Whoever lacks a file runs the rest.
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "person": ("full", "full-clean", "coarse", "coarse-clean", "a01-a04", "a01-a04-clean"),
    "imdb": ("text",),
    "psmnist": ("permuted",),
}
# Irregular data with a better solver than LRCU's one Euler step.
SOLVER_CHANGES = ("hybrid-1", "exponential-1", "rk4-1")
SOLVER_VARIANT = "a01-a04"
# The protocol names one rate for person activity, where the paper says that it searched three by validation loss. The
# faithful split has no validation set, so the rate is searched on the clean split of the same data.
SEARCHED = "person"


class Effort(NamedTuple):
    """What a budget spends: seeds, and epochs per task (None: the paper's)."""

    seeds: int
    epochs: Mapping[str, int | None]


EFFORTS: Mapping[str, Effort] = {
    "smoke": Effort(1, {"person": 1, "imdb": 1, "psmnist": 1}),
    "quick": Effort(2, {"person": 10, "imdb": 1, "psmnist": 2}),
    "paper": Effort(3, {"person": None, "imdb": None, "psmnist": None}),
}
# Budget -> task -> samples of each split, where not all are taken.
SAMPLES: Mapping[str, Mapping[str, int]] = {
    "smoke": {"person": 64, "imdb": 32, "psmnist": 8},
    "quick": {"psmnist": 5000},
}
# The short budgets leave out the clean split, which has no number of the paper beside it.
FAITHFUL_ONLY = ("smoke", "quick")


def planned_runs(budget: str, seeds: int | None) -> list[RunSpec]:
    """Seeds outermost, so that an interrupted grid has whole tables."""
    from lrcnet.training.spec import RunSpec

    effort = EFFORTS[budget]
    planned = []

    def add(task: str, variant: str, model: str, seed: int, solver: str = "", rate: float | None = None) -> None:
        planned.append(
            RunSpec(
                task,
                variant,
                model,
                solver=solver,
                seed=seed,
                epochs=effort.epochs[task],
                budget=budget,
                samples=SAMPLES.get(budget, {}).get(task),
                learning_rate=rate,
            )
        )

    for seed in range(effort.seeds if seeds is None else seeds):
        for task in TASKS:
            for variant in VARIANTS[task]:
                if budget in FAITHFUL_ONLY and variant.endswith("-clean"):
                    continue
                for model in MODELS:
                    add(task, variant, model, seed)
                if (task, variant) == ("person", SOLVER_VARIANT):
                    for solver in SOLVER_CHANGES:
                        add(task, variant, "lrc-s", seed, solver=solver)
                if task == SEARCHED and budget == "paper":
                    for rate in _other_rates(task, variant):
                        for model in MODELS:
                            add(task, variant, model, seed, rate=rate)
    return planned


def _other_rates(task: str, variant: str) -> list[float]:
    from lrcnet import tasks
    from lrcnet.training.search import RATES

    return [rate for rate in RATES if rate != tasks.find(task, variant).recipe.learning_rate]
