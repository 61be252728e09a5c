"""`RaggedSamples`: a split of sequences of unequal lengths, padded batch by batch."""

from __future__ import annotations

import torch
from torch import Tensor

from .task import Index


class RaggedSamples:
    """Sequences of unequal lengths with one label each; a batch is padded to its longest sequence.

    `samples[index]` is `(x, dt, y)`. The last channel of x (sample, time, n + 1) is 1 at readings and 0 at the padding
    after them, where everything else is 0 too.

    Args:
        rows: the readings of all sequences one after the other, (rows, n).
        gaps: the time that belongs to each reading, (rows,), or None where time is regular.
        lengths: number of readings of each sequence, (sample,); all at least 1.
        y: labels, (sample,).

    Raises:
        ValueError: when the lengths do not fit the rows or the labels.

    Example:
        >>> split = RaggedSamples(torch.ones(5, 1), torch.ones(5), torch.tensor([3, 2]), torch.tensor([0, 1]))
        >>> x, dt, y = split[[1, 0]]
        >>> x[..., -1].tolist(), dt.tolist()
        ([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    """

    def __init__(self, rows: Tensor, gaps: Tensor | None, lengths: Tensor, y: Tensor) -> None:
        if len(lengths) != len(y) or int(lengths.sum()) != len(rows) or (len(lengths) and int(lengths.min()) < 1):
            raise ValueError(
                f"lengths must be at least 1, one for each of {len(y)} labels, and add up to {len(rows)} rows; got "
                f"{len(lengths)} lengths that add up to {int(lengths.sum())}"
            )
        self.rows, self.gaps, self.lengths, self.y = rows, gaps, lengths, y
        self.starts = lengths.cumsum(0) - lengths

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Index) -> tuple[Tensor, Tensor | None, Tensor]:
        if isinstance(index, slice):
            index = range(len(self))[index]
        chosen = torch.as_tensor(index, dtype=torch.long, device=self.rows.device)
        x, dt, y = self._pad(chosen.reshape(-1))
        return (x, dt, y) if chosen.ndim else (x[0], None if dt is None else dt[0], y[0])

    def _pad(self, chosen: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        lengths = self.lengths[chosen]
        steps = torch.arange(int(lengths.max()) if len(chosen) else 0, device=lengths.device)
        valid = steps < lengths.unsqueeze(1)
        places = torch.where(valid, self.starts[chosen].unsqueeze(1) + steps, 0)
        mask = valid.to(self.rows.dtype)
        x = torch.cat([self.rows[places] * mask.unsqueeze(-1), mask.unsqueeze(-1)], -1)
        return x, None if self.gaps is None else self.gaps[places] * mask, self.y[chosen]

    def order(self, generator: torch.Generator) -> Tensor:
        """Return the indices of the samples of one epoch, in the order of training."""
        return torch.randperm(len(self), generator=generator)

    def evenly_spaced(self, count: int) -> RaggedSamples:
        """Select `count` samples, evenly spaced because some files are sorted by class."""
        return self.select(torch.arange(count) * len(self) // count) if count < len(self) else self

    def select(self, chosen: Tensor) -> RaggedSamples:
        """Return some of the sequences, in this order."""
        lengths = self.lengths[chosen]
        within = torch.arange(int(lengths.sum())) - torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
        places = torch.repeat_interleave(self.starts[chosen], lengths) + within
        gaps = None if self.gaps is None else self.gaps[places]
        return RaggedSamples(self.rows[places], gaps, lengths, self.y[chosen])

    def to(self, device: torch.device) -> RaggedSamples:
        """Move the samples to a device."""
        gaps = None if self.gaps is None else self.gaps.to(device)
        return RaggedSamples(self.rows.to(device), gaps, self.lengths.to(device), self.y.to(device))
