"""Learning-rate schedules by name.

A new schedule is one row of `SCHEDULES`; everything that checks a name looks it up there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lrcnet.errors import one_of


@dataclass(frozen=True)
class Schedule:
    """How the learning rate changes over a run.

    Attributes:
        rate: (initial rate, number of the step, steps of the whole run) -> rate of that step. It depends on nothing
            else, so that a resumed run has no schedule state to restore.
        depends_on_length: whether the rate of a step depends on the length of the run. If it does not, a longer run
            is the continuation of a shorter one.
    """

    rate: Callable[[float, int, int], float]
    depends_on_length: bool


def _constant(initial: float, step: int, steps: int) -> float:
    return initial


def _cosine(initial: float, step: int, steps: int) -> float:
    return initial * (1 + math.cos(math.pi * step / steps)) / 2


SCHEDULES: Mapping[str, Schedule] = MappingProxyType(
    {
        "constant": Schedule(_constant, depends_on_length=False),
        "cosine": Schedule(_cosine, depends_on_length=True),
    }
)
"""Name -> schedule; "cosine" falls to 0 at the last step."""


def make_schedule(name: str, learning_rate: float, steps: int) -> Callable[[int], float]:
    """Return the learning rate as a function of the step's number, 0 .. steps-1.

    Raises:
        ValueError: for an unknown name; the message lists the valid ones.

    >>> rate = make_schedule("cosine", 0.1, 10)
    >>> rate(0), rate(5), rate(10)
    (0.1, 0.05, 0.0)
    """
    schedule = SCHEDULES[one_of("schedule", name, SCHEDULES)]
    return lambda step: schedule.rate(learning_rate, step, steps)
