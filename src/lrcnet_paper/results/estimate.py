"""`Estimate`: a mean over seeds with its spread, the one form of the paper's numbers and of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lrcnet.pages.content import RichCell


@dataclass(frozen=True)
class Estimate(RichCell):
    """A mean over seeds.

    Attributes:
        mean: the mean.
        std: standard deviation over the seeds; None for one seed, or if the paper prints none.
        seeds: number of runs in the mean.
        diverged: number of further runs that ended in NaN and are not in the mean.
        digits: number of digits after the point; None shows two digits of the spread.

    Example:
        >>> str(Estimate(0.019, 0.005, seeds=3))
        '0.0190 ± 0.0050'
    """

    mean: float
    std: float | None = None
    seeds: int = 1
    diverged: int = 0
    digits: int | None = None

    numeric = True
    csv_names = ("std", "seeds", "diverged")

    def over(self, whole: float) -> Estimate:
        """Divide the estimate by a number, for comparisons across scales."""
        return replace(self, mean=self.mean / whole, std=None if self.std is None else self.std / whole, digits=None)

    def __str__(self) -> str:
        digits = _digits(self.std if self.std else self.mean) if self.digits is None else self.digits
        mean = f"{self.mean:.{digits}f}"
        return mean if self.std is None else f"{mean} ± {self.std:.{digits}f}"

    def to_text(self) -> str:
        return f"{self} ({self.diverged} NaN)" if self.diverged else str(self)

    def to_csv(self) -> tuple[object, ...]:
        return self.mean, "" if self.std is None else self.std, self.seeds, self.diverged


def _digits(scale: float) -> int:
    # More than two significant digits of a spread mean nothing, and below 1e-6 a number is zero to a reader.
    return min(6, max(0, 1 - math.floor(math.log10(abs(scale))))) if scale and math.isfinite(scale) else 3


def mean_over_seeds(values: Sequence[float], diverged: int = 0, digits: int | None = None) -> Estimate | None:
    """Return mean and standard deviation (with n - 1 in the denominator), or None without a value.

    Args:
        values: one number per finished seed.
        diverged: number of runs that gave no number.
        digits: number of digits to show after the point.

    Example:
        >>> str(mean_over_seeds([1.0, 3.0]))
        '2.0 ± 1.4'
    """
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, 1, diverged, digits)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return Estimate(mean, spread, len(values), diverged, digits)
