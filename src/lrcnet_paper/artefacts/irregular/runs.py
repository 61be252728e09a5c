"""The runs behind the tables and the figure of irregular sampling, and the rates that a search picked for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lrcnet_paper.tasks.thinned import DROPPED
from lrcnet_paper.training.spec import RunSpec

HEADLINE = ("lrcu-s", "lrc-s", "diagonal-lrc", "lrc-ssm", "ltc", "cfc", "torch-gru", "gru-d")
# One seed each, without a comparison.
FURTHER = ("lrcu-a", "lstm", "gru-ode")
MODELS = HEADLINE + FURTHER


@dataclass(frozen=True)
class Benchmark:
    """One task of the comparison.

    Attributes:
        title: one line for people.
        variants: the task's variants; seed k has the k-th.
        parameters: number of parameters that every network comes as near to as its width allows.
        epochs: length of a run at the paper budget, which early stopping may shorten; a search has a tenth of it.
        rates: the rates of the search, the same for every model.
        quick: (epochs, samples) of the quick budget.
    """

    title: str
    variants: tuple[str, ...]
    parameters: int
    epochs: int
    rates: tuple[float, float, float]
    quick: tuple[int, int]


_FOLDS = tuple(f"fold-{number}" for number in range(1, 6))
BENCHMARKS: Mapping[str, Benchmark] = {
    "xor": Benchmark("Event-based XOR", ("events",), 10_000, 40, (1e-3, 3e-3, 1e-2), (8, 100_000)),
    "physionet": Benchmark("PhysioNet 2012", _FOLDS, 20_000, 30, (1e-3, 3e-3, 1e-2), (3, 1_000)),
    "event-mnist": Benchmark("Event-based MNIST", ("events",), 20_000, 30, (5e-4, 1.5e-3, 5e-3), (3, 20_000)),
}
# The figure: readings are dropped from a generated oscillation. Its rate is searched at the middle share.
FIGURE = "thinned"
FIGURE_BENCHMARK = Benchmark("Thinned oscillations", ("drop-60",), 5_000, 30, (1e-3, 3e-3, 1e-2), (10, 1_000))
FIGURE_SHARES = {"smoke": (0, 90), "quick": (0, 60, 90), "paper": DROPPED}

SEEDS: Mapping[str, int] = {"smoke": 1, "quick": 1, "paper": 3}
SMOKE_SAMPLES = 16

PICKED: Mapping[tuple[str, str], float] = {
    ("xor", "lrcu-s"): 1e-2,
    ("xor", "lrc-s"): 3e-3,
    ("xor", "diagonal-lrc"): 1e-2,
    ("xor", "lrc-ssm"): 3e-3,
    ("xor", "ltc"): 3e-3,
    ("xor", "cfc"): 3e-3,
    ("xor", "torch-gru"): 1e-2,
    ("xor", "gru-d"): 3e-3,
    ("xor", "lrcu-a"): 1e-2,
    ("xor", "lstm"): 1e-2,
    ("xor", "gru-ode"): 1e-2,
    ("physionet", "lrcu-s"): 1e-2,
    ("physionet", "lrc-s"): 3e-3,
    ("physionet", "diagonal-lrc"): 1e-2,
    ("physionet", "lrc-ssm"): 1e-2,
    ("physionet", "ltc"): 1e-2,
    ("physionet", "cfc"): 1e-2,
    ("physionet", "torch-gru"): 1e-2,
    ("physionet", "gru-d"): 1e-2,
    ("physionet", "lrcu-a"): 3e-3,
    ("physionet", "lstm"): 1e-2,
    ("physionet", "gru-ode"): 1e-2,
    ("event-mnist", "lrcu-s"): 5e-3,
    ("event-mnist", "lrc-s"): 5e-3,
    ("event-mnist", "diagonal-lrc"): 5e-3,
    ("event-mnist", "lrc-ssm"): 5e-3,
    ("event-mnist", "ltc"): 1.5e-3,
    ("event-mnist", "cfc"): 5e-4,
    ("event-mnist", "torch-gru"): 5e-3,
    ("event-mnist", "gru-d"): 5e-3,
    ("event-mnist", "lrcu-a"): 5e-3,
    ("thinned", "lrcu-s"): 1e-2,
    ("thinned", "lrc-s"): 1e-2,
    ("thinned", "diagonal-lrc"): 1e-2,
    ("thinned", "lrc-ssm"): 1e-2,
    ("thinned", "ltc"): 3e-3,
    ("thinned", "cfc"): 1e-3,
    ("thinned", "torch-gru"): 1e-2,
    ("thinned", "gru-d"): 1e-2,
}
"""(task, model) -> the rate with the best validation in the search; a test compares them with the runs in results/."""


def plan_runs(budget: str, seeds: int | None) -> list[RunSpec]:
    """List the runs of a budget: the search (paper budget only), then seed by seed the tables and the figure."""
    count = SEEDS[budget] if seeds is None else seeds
    runs = [spec for seed in range(count) for spec in _runs_of_one_seed(budget, seed)]
    return [*plan_search(), *runs] if budget == "paper" else runs


def plan_search() -> list[RunSpec]:
    """List the runs of the search: every model at three rates, one seed, a tenth of the length.

    A run of the picked rate is left out: the run of the table continues it.
    """
    return [
        spec
        for task, benchmark in {**BENCHMARKS, FIGURE: FIGURE_BENCHMARK}.items()
        for model in MODELS
        if task != FIGURE or model in HEADLINE
        for rate in benchmark.rates
        if rate != PICKED.get((task, model))
        for spec in [_run(task, benchmark, benchmark.variants[0], model, "paper", 0, rate)]
        for spec in [spec.with_(epochs=search_epochs(benchmark))]
    ]


def search_epochs(benchmark: Benchmark) -> int:
    """Return the length of a search: a tenth of a run."""
    return max(1, benchmark.epochs // 10)


def _runs_of_one_seed(budget: str, seed: int) -> Iterator[RunSpec]:
    for task, benchmark in BENCHMARKS.items():
        for model in MODELS if seed == 0 and budget == "paper" else HEADLINE:
            rate = PICKED.get((task, model))
            if rate is not None or budget != "paper":
                variant = benchmark.variants[seed % len(benchmark.variants)]
                yield _run(task, benchmark, variant, model, budget, seed, rate)
    for share in FIGURE_SHARES[budget]:
        for model in HEADLINE:
            rate = PICKED.get((FIGURE, model))
            if rate is not None or budget != "paper":
                for gaps in ("", "none"):
                    yield _run(FIGURE, FIGURE_BENCHMARK, f"drop-{share}", model, budget, seed, rate, gaps)


def _run(
    task: str,
    benchmark: Benchmark,
    variant: str,
    model: str,
    budget: str,
    seed: int,
    rate: float | None,
    gaps: str = "",
) -> RunSpec:
    epochs, samples = {"smoke": (1, SMOKE_SAMPLES), "quick": benchmark.quick}.get(budget, (benchmark.epochs, None))
    known = {"gaps": gaps} if gaps else {}
    return RunSpec(
        task,
        variant,
        model,
        seed=seed,
        epochs=epochs,
        learning_rate=rate,
        budget=budget,
        samples=samples,
        options={"parameters": benchmark.parameters, **known},
    )
