"""`GridTable`: the runs of a grid as one table on a terminal, redrawn as they end."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence

from lrcnet.progress import format_duration, set_head, status
from lrcnet_paper import tasks
from lrcnet_paper.reproduction.countdown import AT_ONCE
from lrcnet_paper.training.metric_text import format_value, shorten
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.spec import RunSpec

# Lines of the terminal that the table leaves free: its own first line, a bar of two lines, the prompt.
_OTHER_LINES = 6
_FEWEST_ROWS = 4


class GridTable:
    """Shows which runs of a grid are done, with their results, and which is next.

    Args:
        specs: the runs of the grid, in their order.
    """

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        self.specs = list(dict.fromkeys(specs))
        self.outcomes: dict[RunSpec, str] = {}
        self.trained = 0
        self.started = self.last = time.monotonic()
        self.width = max((len(_name(spec)) for spec in self.specs), default=0)
        status("training")
        set_head(self.lines())

    def add(self, spec: RunSpec, result: Result) -> None:
        """Enter the result of a run that has ended."""
        now = time.monotonic()
        self.trained += now - self.last > AT_ONCE
        self.last = now
        metric = tasks.find(spec.task, spec.variant).metric
        value = result.metrics.get(metric)
        self.outcomes[spec] = result.status if value is None else f"{shorten(metric)} {format_value(metric, value)}"
        set_head(self.lines())

    def close(self) -> None:
        """Remove the table from the terminal."""
        set_head([])

    def lines(self) -> list[str]:
        """Return a line about the whole grid, then a window of rows around the run that is next."""
        done, total = len(self.outcomes), len(self.specs)
        left = (total - done) * (self.last - self.started) / self.trained if self.trained else 0.0
        time_left = f", about {format_duration(left)} left" if left > 1 else ""
        room = max(shutil.get_terminal_size().lines - _OTHER_LINES, _FEWEST_ROWS)
        waiting = [i for i, spec in enumerate(self.specs) if spec not in self.outcomes]
        first = min(max((waiting[0] if waiting else total) - room // 2, 0), max(total - room, 0))
        rows = [self._row(spec, waiting, i) for i, spec in enumerate(self.specs)][first : first + room]
        return [f"{done} of {total} runs done{time_left}", *rows]

    def _row(self, spec: RunSpec, waiting: Sequence[int], index: int) -> str:
        state = "✓" if spec in self.outcomes else "▶" if waiting[:1] == [index] else "·"
        return f"{state} {_name(spec):<{self.width}}  {self.outcomes.get(spec, '')}".rstrip()


def _name(spec: RunSpec) -> str:
    return f"{spec.task} {spec.label()} {spec.model} seed {spec.seed}"
