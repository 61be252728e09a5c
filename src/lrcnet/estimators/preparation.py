"""From series to the tensors that a network takes, as learned from the training data.

Missing values are filled with the channel's last value, or its mean before the first one. If the training data have
any, a mask with one more channel per channel tells the network which values were measured.

Axes: B series, T time, n channels.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from lrcnet.data import Floats, fill_missing, pad
from lrcnet.estimators.series import Series


class Inputs(NamedTuple):
    """Inputs of a network: x (B, T, n), dt (B, T) or None, lengths (B,)."""

    x: Tensor
    dt: Tensor | None
    lengths: Tensor

    def take(self, chosen: Tensor) -> Inputs:
        """Return some series, without the padding that none of them needs."""
        lengths = self.lengths[chosen]
        longest = int(lengths.max())
        dt = None if self.dt is None else self.dt[chosen, :longest]
        return Inputs(self.x[chosen, :longest], dt, lengths)

    def uneven_lengths(self) -> Tensor | None:
        """Return the lengths if they differ; without them a network needs no packing."""
        return None if bool((self.lengths == self.x.shape[1]).all()) else self.lengths


@dataclass(frozen=True)
class Preparation:
    """The constants of a preparation, which can be written as JSON.

    Attributes:
        mean, scale: of each channel over the measured values; a constant channel has the scale 1.
        mask: whether the mask is fed as n further channels.
        time_scale: the median gap; None if the series have no times.
        after: whether dt is the gap after each reading, as for forecasts, instead of the gap before it.
    """

    mean: list[float]
    scale: list[float]
    mask: bool
    time_scale: float | None
    after: bool = False

    @classmethod
    def learn(cls, series: Series, *, after: bool = False) -> Self:
        """Measure the training series."""
        rows = np.concatenate(series.values)
        measured = ~np.isnan(rows)
        counts = np.maximum(measured.sum(0), 1)
        mean = np.where(measured, rows, 0).sum(0) / counts
        spread = np.sqrt((np.where(measured, rows - mean, 0) ** 2).sum(0) / counts)
        # A spread below the precision of float32 is rounding.
        constant = spread <= np.finfo(np.float32).eps * np.abs(mean)
        gaps = series.gaps()
        between = None if gaps is None else np.concatenate([one[1:] for one in gaps])
        scale = None if between is None else float(np.median(between)) if len(between) else 1.0
        return cls(mean.tolist(), np.where(constant, 1.0, spread).tolist(), series.has_missing, scale, after)

    @property
    def inputs(self) -> int:
        """The number of channels that the network takes."""
        return len(self.mean) * (2 if self.mask else 1)

    def input_scaling(self) -> tuple[Tensor, Tensor]:
        """Return mean and scale of the network's inputs; a mask passes as it is."""
        extra = self.inputs - len(self.mean)
        return torch.tensor([*self.mean, *[0.0] * extra]), torch.tensor([*self.scale, *[1.0] * extra])

    def prepare(self, series: Series, last_gaps: Floats | None = None) -> Inputs:
        """Turn series into the inputs of the network.

        Args:
            series: with the channels of the training series, and times if those had some.
            last_gaps: (B,), the gap after the last reading if `after`; the time scale if None.

        Raises:
            ValueError: if the channels or the times do not fit those of training.
        """
        if series.channels != len(self.mean):
            raise ValueError(
                f"series must have {len(self.mean)} channels as in training, but have {series.channels}; pass the same"
            )
        if (series.times is None) != (self.time_scale is None):
            trained, advice = ("without", "leave them out") if self.time_scale is None else ("with", "pass times too")
            given = "none are" if series.times is None else "some are"
            raise ValueError(f"the network was trained {trained} times of readings, but {given} given now; {advice}")
        values = []
        for one in series.values:
            filled, measured = fill_missing(one, np.array(self.mean))
            values.append(np.concatenate([filled, measured], 1) if self.mask else filled)
        lengths = torch.tensor([len(one) for one in values])
        return Inputs(pad(values), self._dt(series, last_gaps), lengths)

    def _dt(self, series: Series, last_gaps: Floats | None) -> Tensor | None:
        gaps = series.gaps()
        if gaps is None or self.time_scale is None:
            return None
        if not self.after:
            # Nobody knows the time before the first reading; a typical gap makes the network read it.
            return pad([np.concatenate([[self.time_scale], one[1:]]) for one in gaps])
        last = np.full(len(gaps), self.time_scale) if last_gaps is None else last_gaps
        return pad([np.concatenate([one[1:], last[i : i + 1]]) for i, one in enumerate(gaps)])

    def to_json(self) -> dict[str, Any]:
        """Return the constants as data."""
        return asdict(self)
