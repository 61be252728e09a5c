"""The 95 % interval of paired differences over seeds, by which claims are judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lrcnet_paper.results.estimate import Estimate, standard_deviation

FEWEST_SEEDS = 2
"""Fewest seeds of an interval, and so of a verdict."""

# The normal distribution at 97.5 %, and Student's t for 1, 2, ... degrees of freedom, whose last value is a little too
# wide beyond the table.
_NORMAL = 1.960
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120)


@dataclass(frozen=True)
class Interval:
    """The mean of paired differences over seeds with its 95 % interval.

    Attributes:
        mean, low, high: the mean and the ends of the interval; positive on the paper's side.
        seeds: number of pairs.
    """

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.seeds} seeds; {self.mean:+.3g}, 95 % interval {self.low:+.3g} to {self.high:+.3g}"

    def as_factor(self) -> str:
        """Describe the interval of logarithms of ratios by the ratios themselves; above 1 is the paper's side.

        >>> Interval(0.0, -math.log(2), math.log(2), 3).as_factor()
        '3 seeds; a factor of 1, 95 % interval 0.5 to 2'
        """
        mean, low, high = (math.exp(value) for value in (self.mean, self.low, self.high))
        return f"{self.seeds} seeds; a factor of {mean:.3g}, 95 % interval {low:.3g} to {high:.3g}"


def interval_of(differences: Sequence[float], counting_variance: float = 0.0) -> Interval | None:
    """Return the interval of paired differences, or None if there are fewer than two or one is not finite.

    Args:
        differences: one per seed.
        counting_variance: the variance that each has because it counts a finite number of trials. The interval is at
            least as wide as this alone makes it: two seeds with one crash less each are no certainty.

    >>> str(interval_of([1.0, 2.0, 3.0]))
    '3 seeds; +2, 95 % interval -0.484 to +4.48'
    """
    count = len(differences)
    if count < FEWEST_SEEDS or not all(map(math.isfinite, differences)):
        return None
    mean = math.fsum(differences) / count
    factor = _T[min(count - 2, len(_T) - 1)]
    reach = max(factor * standard_deviation(differences), _NORMAL * math.sqrt(counting_variance)) / math.sqrt(count)
    return Interval(mean, mean - reach, mean + reach, count)


def paired_interval(first: Estimate | None, second: Estimate | None, *, by_ratio: bool = False) -> Interval | None:
    """Return the interval of A - B over seeds, or of log(A / B); None without two seeds in common."""
    if first is None or second is None:
        return None
    return interval_of([difference(a, b, by_ratio=by_ratio) for a, b in pairs(first, second)])


def difference(first: float, second: float, *, by_ratio: bool) -> float:
    """Return A - B, or log(A / B) for positive numbers; NaN if one of them is not positive."""
    if not by_ratio:
        return first - second
    return math.log(first / second) if first > 0 and second > 0 else math.nan


def pairs(first: Estimate, second: Estimate) -> list[tuple[float, float]]:
    """Return the values of both models for the seeds that both have."""
    others = dict(second.by_seed)
    return [(value, others[seed]) for seed, value in first.by_seed if seed in others]
