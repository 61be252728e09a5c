"""Groups of finished runs that may be averaged: the same run and length, with different seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.training.budgets import CUSTOM, LONG
from lrcnet_paper.training.change import Change
from lrcnet_paper.training.spec import HasRunSpec, RunSpec


@dataclass(frozen=True)
class Group(HasRunSpec):
    """Runs that differ in nothing but their seed.

    Attributes:
        spec: the run that they share, with seed 0 and without a length.
        epochs: number of epochs trained; iterations where the task counts these.
        runs: one per seed.
    """

    spec: RunSpec
    epochs: int
    runs: tuple[FinishedRun, ...]

    @property
    def change(self) -> Change:
        """The solver, schedule and rate where they differ from the default; false if none does."""
        return self.spec.change

    @property
    def follows_recipe(self) -> bool:
        """Whether the runs follow the paper's recipe: no other solver, schedule, rate or option of the model."""
        return not self.change and not self.spec.options

    @property
    def finished(self) -> list[FinishedRun]:
        """The runs that did not diverge."""
        return [run for run in self.runs if run.result.status == "finished"]

    @property
    def diverged(self) -> int:
        """The number of runs that diverged."""
        return len(self.runs) - len(self.finished)

    @property
    def budget_label(self) -> str:
        """The budget for people; for custom runs with their settings."""
        settings = self.spec.settings_label() if self.budget == CUSTOM else ""
        return f"{self.budget}, {settings}" if settings else self.budget

    @property
    def parameters(self) -> int:
        """The number of trainable parameters."""
        return self.runs[0].result.parameters

    def metric(self, name: str, scale: float = 1.0, digits: int | None = None) -> Estimate | None:
        """Average a metric of the results, times a scale, over the seeds; None if no run has it.

        A run that diverged late has metrics for the lengths that it reached before, and counts in their averages.
        """
        values = {r.result.seed: scale * r.result.metrics[name] for r in self.runs if name in r.result.metrics}
        lost = sum(r.result.status == "diverged" and name not in r.result.metrics for r in self.runs)
        return mean_over_seeds(values, lost, digits)

    def seconds_per_epoch(self) -> float:
        """Return the training time of an epoch, the median over the seeds: runs may have shared their machine."""
        return median(run.result.seconds_per_epoch for run in self.runs)

    def total_seconds(self) -> float:
        """Return the training time of a whole run, the median over the seeds."""
        return median(run.result.seconds_per_epoch * run.result.epochs for run in self.runs)


def group_runs(runs: Iterable[FinishedRun], task: str) -> list[Group]:
    """Group the runs of one task: long budgets first, then in order of variant, length and model.

    A diverged run has fewer epochs than its siblings. It belongs to them all the same: it joins the runs with the
    fewest epochs above its own, or else those with the most.
    """
    by_length: dict[RunSpec, dict[int, list[FinishedRun]]] = {}
    diverged: list[FinishedRun] = []
    for run in runs:
        if run.result.task != task:
            continue
        if run.result.status == "diverged":
            diverged.append(run)
        else:
            by_length.setdefault(_without_seed(run), {}).setdefault(run.result.epochs, []).append(run)
    for run in diverged:
        lengths = by_length.setdefault(_without_seed(run), {})
        fitting = [length for length in lengths if length >= run.result.epochs] or [max(lengths, default=0)]
        lengths.setdefault(min(fitting) or run.result.epochs, []).append(run)
    groups = [
        Group(spec, epochs, tuple(members))
        for spec, lengths in by_length.items()
        for epochs, members in lengths.items()
    ]
    return sorted(groups, key=lambda g: (_rank(g.budget), g.variant, -g.epochs, g.model, g.change.slug()))


def _without_seed(run: FinishedRun) -> RunSpec:
    return run.result.spec.without_length().with_(seed=0)


# Custom runs must not replace a whole table of the paper's protocol, but they say more than smoke runs do.
_ORDER = ("paper", LONG, "quick", CUSTOM, "smoke")


def _rank(budget: str) -> int:
    return _ORDER.index(budget)
