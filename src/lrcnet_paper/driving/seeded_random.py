"""Random numbers that depend on a seed alone: an episode is the same in a batch of one and in a batch of a thousand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_MASK = (1 << 64) - 1


def _mix(seed: int, stream: int) -> int:
    # The finaliser of splitmix64: neighbouring seeds must not give neighbouring generators, and torch's generator on
    # the CPU uses 32 bits only.
    value = (seed * 0x9E3779B97F4A7C15 + (stream + 1) * 0xD1B54A32D192ED03) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return (value ^ (value >> 31)) >> 32


def generator(seed: int, stream: int) -> torch.Generator:
    """Make a separate generator for each purpose (`stream`) of a seed."""
    return torch.Generator().manual_seed(_mix(seed, stream))


def uniforms(seeds: Sequence[int], count: int, *, stream: int) -> Tensor:
    """Draw numbers in [0, 1) for each seed.

    Args:
        seeds: one per episode.
        count: number of numbers per episode.
        stream: number of their purpose; streams of one seed are independent.

    Returns:
        (batch, count), float64.

    >>> bool((uniforms([3, 4], 5, stream=0)[1] == uniforms([4], 5, stream=0)[0]).all())
    True
    """
    rows = [torch.rand(count, generator=generator(seed, stream), dtype=torch.float64) for seed in seeds]
    return torch.stack(rows) if rows else torch.empty(0, count, dtype=torch.float64)


def between(low: float, high: float, u: Tensor) -> Tensor:
    """Scale u in [0, 1) to [low, high)."""
    return low + (high - low) * u
