"""`Estimate`: a mean over seeds with its spread, the one form of the paper's numbers and of ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lrcnet.pages.content import RichCell
from lrcnet.pages.tables import LARGE


@dataclass(frozen=True)
class Estimate(RichCell):
    """A mean over seeds.

    Attributes:
        mean: the mean.
        std: standard deviation over the seeds; None for one seed, or if the paper prints none.
        seeds: number of runs in the mean.
        diverged: number of further runs that ended in NaN and are not in the mean.
        digits: number of digits after the point; None shows two digits of the spread.
        by_seed: (seed, value) of our own runs, by which two models are paired.
        trials: number of trials of each seed, if the values are shares of them, such as drives that crash; else None.

    Example:
        >>> str(Estimate(0.019, 0.005, seeds=3)), str(Estimate(81920.04, 7909.3, seeds=3, digits=1))
        ('0.0190 ± 0.0050', '81,920 ± 7,909')
    """

    mean: float
    std: float | None = None
    seeds: int = 1
    diverged: int = 0
    digits: int | None = None
    by_seed: tuple[tuple[int, float], ...] = ()
    trials: int | None = None

    numeric = True
    csv_names = ("std", "seeds", "diverged")

    def __str__(self) -> str:
        digits = _digits(self.std if self.std else self.mean) if self.digits is None else self.digits
        # Large numbers are written as those of plain cells are.
        digits = 0 if max(abs(self.mean), self.std or 0.0) >= LARGE else digits
        mean = f"{self.mean:,.{digits}f}"
        return mean if self.std is None else f"{mean} ± {self.std:,.{digits}f}"

    @property
    def counting_variance(self) -> float:
        """The binomial variance of one seed's share; 0 for numbers that are no shares.

        One success and one failure are added to those counted, so that a share of 0 or 1 is not certain.
        """
        if self.trials is None:
            return 0.0
        counted = self.trials * self.seeds
        share = (self.mean * counted + 1) / (counted + 2)
        return share * (1 - share) / self.trials

    def to_text(self) -> str:
        return f"{self} ({self.diverged} NaN)" if self.diverged else str(self)

    def to_csv(self) -> tuple[object, ...]:
        return self.mean, "" if self.std is None else self.std, self.seeds, self.diverged


def _digits(scale: float) -> int:
    # More than two significant digits of a spread mean nothing, and below 1e-6 a number is zero to a reader.
    return min(6, max(0, 1 - math.floor(math.log10(abs(scale))))) if scale and math.isfinite(scale) else 3


def mean_over_seeds(
    values: Mapping[int, float], diverged: int = 0, digits: int | None = None, trials: int | None = None
) -> Estimate | None:
    """Return mean and standard deviation (with n - 1 in the denominator), or None without a value.

    Args:
        values: seed -> number of its finished run.
        diverged: number of runs that gave no number.
        digits: number of digits to show after the point.
        trials: number of trials of each seed, if the numbers are shares of them.

    Example:
        >>> str(mean_over_seeds({0: 1.0, 1: 3.0}))
        '2.0 ± 1.4'
    """
    if not values:
        return None
    by_seed = tuple(sorted(values.items()))
    mean = math.fsum(values.values()) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, 1, diverged, digits, by_seed, trials)
    return Estimate(mean, standard_deviation(values.values()), len(values), diverged, digits, by_seed, trials)


def standard_deviation(values: Iterable[float]) -> float:
    """Return the standard deviation with n - 1 in the denominator of two or more values."""
    numbers = list(values)
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (len(numbers) - 1))
