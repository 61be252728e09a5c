"""Test errors on the six systems, and the numbers of iterations after which they are shown and judged."""

from __future__ import annotations

from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group
from lrcnet_paper.training.problems.trajectories import SHOWN_AT

METRIC = "mean_absolute_error"
MARKS = SHOWN_AT
JUDGED = 2000
"""The number of iterations after which claims are judged."""


def judged_mark(group: Group) -> int | None:
    """Return the number of iterations to judge: 2000, or 1000 if the run is shorter; None below that."""
    return next((mark for mark in (JUDGED, MARKS[0]) if group.epochs >= mark), None)


def mean_error(group: Group | None, *, solver: str = "", at: int | None = None, best: bool = False) -> Estimate | None:
    """Return the test error of the last or the best roll-out up to `at` iterations (None: the number to judge).

    The solver is the run's own, or the one named.
    """
    if group is None:
        return None
    mark = judged_mark(group) if at is None else at
    name = METRIC + (f"_{solver}" if solver else "") + ("_min" if best else "") + (f"@{mark}" if mark else "")
    return group.metric(name, digits=4)
