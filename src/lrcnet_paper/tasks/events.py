"""Run-length encoding: streams of bits as events, each a bit and the time for which it lasted."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from .ragged import RaggedSamples


def encode_runs(
    bits: NDArray[np.bool_], lengths: NDArray[np.int64], labels: NDArray[np.int64], unit: float
) -> RaggedSamples:
    """Encode streams of bits by their runs.

    Args:
        bits: (sample, step).
        lengths: number of valid steps of each stream, (sample,); at least 1.
        labels: (sample,).
        unit: number of steps that count as a time of 1.

    Returns:
        One reading per run: its bit as -1 or 1. The gap of a reading is the time for which its bit lasted.

    Example:
        >>> runs = encode_runs(np.array([[True, True, False]]), np.array([3]), np.array([0]), unit=4)
        >>> runs.rows.tolist(), runs.gaps.tolist()
        ([[1.0], [-1.0]], [0.5, 0.25])
    """
    samples, steps = bits.shape
    valid = np.arange(steps) < lengths[:, None]
    starts = np.ones_like(bits)
    starts[:, 1:] = bits[:, 1:] != bits[:, :-1]
    starts &= valid
    sample, first = np.nonzero(starts)
    # A run ends where the next one of the same stream begins, or with the stream.
    last_of_stream = np.append(sample[1:] != sample[:-1], True)
    end = np.where(last_of_stream, lengths[sample], np.append(first[1:], 0))
    return RaggedSamples(
        torch.from_numpy(np.where(bits[sample, first], 1.0, -1.0).astype(np.float32)).unsqueeze(-1),
        torch.from_numpy(((end - first) / unit).astype(np.float32)),
        torch.from_numpy(np.bincount(sample, minlength=samples)),
        torch.from_numpy(labels),
    )
