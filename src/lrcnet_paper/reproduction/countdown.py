"""`Countdown`: one line after each run of a grid, with its number and a rough estimate of the remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable

from lrcnet.progress import format_duration
from lrcnet_paper import tasks
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.spec import RunSpec

# A result that existed before arrives at once; a run that had to be trained takes longer than this, in seconds.
AT_ONCE = 0.05


class Countdown:
    """Reports each run of a grid when it ends.

    Args:
        total: number of runs in the grid.
        report: called with each line.
    """

    def __init__(self, total: int, report: Callable[[str], None]) -> None:
        self.total, self.report = total, report
        self.ended = self.trained = 0
        self.started = self.last = time.monotonic()

    def add(self, spec: RunSpec, result: Result) -> None:
        """Report one run."""
        now = time.monotonic()
        self.ended += 1
        self.trained += now - self.last > AT_ONCE
        self.last = now
        metric = tasks.find(spec.task, spec.variant).metric
        value = f"{metric} {result.metrics[metric]:.4g}" if metric in result.metrics else result.status
        remaining = (self.total - self.ended) * (now - self.started) / self.trained if self.trained else 0.0
        estimate = f"; about {format_duration(remaining)} left" if remaining > 1 else ""
        name = f"{spec.task} {spec.label()} {spec.model} seed {spec.seed}"
        self.report(f"[{self.ended}/{self.total}] {name}: {value}{estimate}")
