"""The plan of the classification runs, held against the nested loops that it stands for."""

import pytest

from lrcnet_paper.artefacts.classification.runs import plan_runs
from lrcnet_paper.training.budgets import BUDGETS

MODELS = ("lrcu-s", "lrcu-a", "lstm", "gru", "mgu")
VARIANTS = {
    "person": ("full", "full-clean", "coarse", "coarse-clean", "a01-a04", "a01-a04-clean"),
    "imdb": ("text",),
    "psmnist": ("permuted",),
}
SEEDS = {"smoke": 1, "quick": 2, "paper": 3}
EPOCHS = {
    "smoke": {"person": 1, "imdb": 1, "psmnist": 1},
    "quick": {"person": 10, "imdb": 1, "psmnist": 2},
    "paper": {"person": None, "imdb": None, "psmnist": None},
}
SAMPLES = {"smoke": {"person": 64, "imdb": 32, "psmnist": 8}, "quick": {"psmnist": 5000}, "paper": {}}


def nested_loops(budget, seeds):
    rows = []
    for seed in range(SEEDS[budget] if seeds is None else seeds):
        for task, variants in VARIANTS.items():
            for variant in variants:
                if budget != "paper" and variant.endswith("-clean"):
                    continue
                rows += [(task, variant, model, "", None, seed) for model in MODELS]
                if variant == "a01-a04":
                    solvers = ("hybrid-1", "exponential-1", "rk4-1")
                    rows += [(task, variant, "lrc-s", solver, None, seed) for solver in solvers]
                if budget == "paper":
                    rows.append((task, variant, "torch-gru", "", None, seed))
                if budget == "paper" and task != "imdb":
                    rows += [(task, variant, model, "", None, seed) for model in ("lrcu-s", "lrcu-a")]
                if task == "person" and budget == "paper":
                    rows += [(task, variant, m, "", rate, seed) for rate in (1e-4, 1e-2) for m in MODELS]
    return rows


@pytest.mark.parametrize("seeds", [None, 1, 4])
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_plan_is_that_of_the_nested_loops(budget, seeds):
    planned = plan_runs(budget, seeds)
    rows = [(s.task, s.variant, s.model, s.solver, s.learning_rate, s.seed) for s in planned]
    assert rows == nested_loops(budget, seeds)
    for spec in planned:
        assert (spec.budget, spec.epochs) == (budget, EPOCHS[budget][spec.task])
        assert spec.samples == SAMPLES[budget].get(spec.task)
        assert (spec.batch_size, spec.schedule) == (None, "constant")
    # The rows with the library's initial values are the only ones with options.
    liquid = [spec for spec in planned if spec.options]
    assert all(spec.options == {"init": "balanced", "parametrisation": "scaled"} for spec in liquid)
    assert len(liquid) == (0 if budget != "paper" else 2 * 7 * len({spec.seed for spec in planned}))
