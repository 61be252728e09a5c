"""Finished runs by what may be averaged: same task, variant, change, model, settings and length, another seed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.finished import Finished
from lrcnet_paper.training.budgets import BUDGETS

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed.

    Attributes:
        task, variant, model, budget: as in a result.
        change: what stands after the variant's plus: "hybrid-1", "cosine" or "lr0.01"; "" for the model's own solver
            and the task's own schedule and rate.
        settings: the flags by which a run left its task's recipe, such as "--lr 0.01".
        epochs: trained; iterations where the task counts these.
        runs: one per seed.
    """

    task: str
    variant: str
    change: str
    model: str
    budget: str
    settings: str
    epochs: int
    runs: tuple[Finished, ...]

    @property
    def finished(self) -> list[Finished]:
        """Those that did not diverge."""
        return [run for run in self.runs if run.result.status == "finished"]

    @property
    def diverged(self) -> int:
        """How many diverged."""
        return len(self.runs) - len(self.finished)

    @property
    def budget_label(self) -> str:
        """The budget; for runs outside the budgets also what they were set to."""
        return self.budget if self.budget in BUDGETS else f"{self.budget} {self.settings}".rstrip()

    @property
    def parameters(self) -> int:
        """Trainable numbers of the model."""
        return self.runs[0].result.parameters

    def metric(self, name: str, scale: float = 1.0, digits: int | None = None) -> Estimate | None:
        """Mean over the seeds of a metric of the result, times a scale, or None where no run has it.

        A run that diverged late has the numbers of the lengths that it had passed, and counts there.
        """
        values = [scale * r.result.metrics[name] for r in self.runs if name in r.result.metrics]
        lost = sum(r.result.status == "diverged" and name not in r.result.metrics for r in self.runs)
        return mean_over_seeds(values, lost, digits)

    def seconds_per_epoch(self) -> float:
        """Mean over the seeds."""
        return sum(run.result.seconds_per_epoch for run in self.runs) / len(self.runs)

    def total_seconds(self) -> float:
        """Training time of one run, mean over the seeds."""
        return sum(run.result.seconds_per_epoch * run.result.epochs for run in self.runs) / len(self.runs)


def grouped(runs: Iterable[Finished], task: str) -> list[Group]:
    """The groups of one task: long budgets first, then in order of variant, length and model.

    A diverged run has fewer epochs than its siblings. It belongs to them all the same: it is put with the runs of the
    fewest epochs above its own, or else with the most.
    """
    found: dict[Key, dict[int, list[Finished]]] = {}
    diverged: list[tuple[Key, Finished]] = []
    for run in runs:
        result = run.result
        if result.task != task:
            continue
        variant, _, change = result.variant.partition("+")
        key = (variant, change, result.model, result.budget, settings(result.command))
        if result.status == "diverged":
            diverged.append((key, run))
        else:
            found.setdefault(key, {}).setdefault(result.epochs, []).append(run)
    for key, run in diverged:
        lengths = found.setdefault(key, {})
        fitting = [length for length in lengths if length >= run.result.epochs] or [max(lengths, default=0)]
        lengths.setdefault(min(fitting) or run.result.epochs, []).append(run)
    groups = [
        Group(task, *key, epochs, tuple(members))
        for key, lengths in found.items()
        for epochs, members in lengths.items()
    ]
    return sorted(groups, key=lambda g: (_rank(g.budget), g.variant, -g.epochs, g.model, g.change))


def settings(command: str) -> str:
    """What a run's command says beyond what a group names apart: the rate, the batch, the samples, and so on.

    Example:
        >>> settings("lrcnet train imdb --model lrcu-s --variant text --lr 0.01 --seed 2 --option units=8")
        '--lr 0.01 --option units=8'
    """
    words = shlex.split(command)
    pairs = [words[i : i + 2] for i in range(3, len(words), 2)]
    return shlex.join(word for flag, *value in pairs if flag not in _NAMED_APART for word in (flag, *value))


_NAMED_APART = ("--model", "--variant", "--solver", "--budget", "--seed", "--epochs", "--iterations")


# Custom runs must not push a whole table of the paper's protocol aside, but they say more than smoke does.
_ORDER = ("paper", "quick", "custom", "smoke")


def _rank(budget: str) -> int:
    return _ORDER.index(budget)
