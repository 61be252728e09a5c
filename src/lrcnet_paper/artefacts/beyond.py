"""What the artefacts beyond the paper share: the scores of models on a task, which are compared but never judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lrcnet.pages import palette
from lrcnet_paper import tasks
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.training.spec import RunSpec

PUBLISHED = "published, other implementation"
# Custom runs say more than smoke runs, but must not replace a whole budget.
_BUDGETS = ("paper", "quick", "custom", "smoke")


@dataclass(frozen=True)
class Score:
    """The runs of one model with one set of options, over seeds and the splits that belong to them.

    Attributes:
        spec: the first run.
        value: mean of the reported metric in percent, over the runs that did not diverge; None if all did.
        runs: the runs.
    """

    spec: RunSpec
    value: Estimate | None
    runs: tuple[FinishedRun, ...]

    @property
    def parameters(self) -> int:
        """The number of trainable parameters."""
        return self.runs[0].result.parameters

    @property
    def epochs(self) -> float:
        """The mean number of epochs trained; early stopping makes it differ between runs."""
        return sum(run.result.epochs for run in self.runs) / len(self.runs)

    @property
    def minutes(self) -> float:
        """The mean training time of a run, in minutes."""
        seconds = [run.result.seconds_per_epoch * run.result.epochs for run in self.runs]
        return sum(seconds) / len(seconds) / 60

    @property
    def label(self) -> str:
        """The model for people, with the options that tell two rows of it apart."""
        model = palette.model_label(self.spec.model)
        return f"{model}, contraction" if "contraction" in self.spec.options else model


def longest_budget(runs: Iterable[FinishedRun], task: str) -> list[FinishedRun]:
    """Return the runs of a task that have its longest budget; numbers of different budgets are never compared."""
    own = [run for run in runs if run.result.task == task]
    budgets = {run.result.budget for run in own}
    longest = next((budget for budget in _BUDGETS if budget in budgets), "")
    return [run for run in own if run.result.budget == longest]


def score_runs(runs: Sequence[FinishedRun], key: Callable[[RunSpec], str]) -> list[Score]:
    """Group runs that share model, solver, rate, options and key, and average them over their seeds."""
    groups: dict[tuple[object, ...], list[FinishedRun]] = {}
    for run in runs:
        spec = run.result.spec
        options = tuple(spec.options.items())
        groups.setdefault((key(spec), spec.model, spec.solver, spec.rate, options), []).append(run)
    return [_score(sorted(members, key=lambda run: run.result.seed)) for members in groups.values()]


def _score(runs: Sequence[FinishedRun]) -> Score:
    spec = runs[0].result.spec
    metric = tasks.find(spec.task, spec.variant).metric
    values = {run.result.seed: 100 * run.result.metrics[metric] for run in runs if metric in run.result.metrics}
    return Score(spec, mean_over_seeds(values, len(runs) - len(values), digits=1), tuple(runs))


def rank(scores: Iterable[Score]) -> list[Score]:
    """Sort scores from the best to the worst; those whose runs all diverged are left out."""
    return sorted((one for one in scores if one.value), key=lambda one: -one.value.mean if one.value else 0.0)


def describe(score: Score) -> str:
    """Write a model with its number, such as "GRU (98.1 ± 0.2)"."""
    return f"{score.label} ({score.value})"


def published_rows(numbers: Mapping[str, Estimate], columns: int) -> list[tuple[str | Estimate | None, ...]]:
    """Return rows of published numbers: a name, the number, the words that mark it, and dashes."""
    return [(name, value, PUBLISHED, *[None] * (columns - 3)) for name, value in numbers.items()]
