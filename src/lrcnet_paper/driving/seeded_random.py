"""Random numbers that belong to a seed alone: an episode is the same in a batch of one and in a batch of a thousand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_MASK = (1 << 64) - 1


def _mixed(seed: int, stream: int) -> int:
    # The finaliser of splitmix64: neighbouring seeds must not give neighbouring generators, and torch's generator on
    # the CPU looks at 32 bits only.
    value = (seed * 0x9E3779B97F4A7C15 + (stream + 1) * 0xD1B54A32D192ED03) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return (value ^ (value >> 31)) >> 32


def generator(seed: int, stream: int) -> torch.Generator:
    """A generator of its own for each purpose (`stream`) of a seed."""
    return torch.Generator().manual_seed(_mixed(seed, stream))


def uniforms(seeds: Sequence[int], count: int, *, stream: int) -> Tensor:
    """Numbers in [0, 1) for each seed.

    Args:
        seeds: one per episode.
        count: numbers per episode.
        stream: what they are for; streams of one seed are independent.

    Returns:
        (batch, count), float64.

    >>> bool((uniforms([3, 4], 5, stream=0)[1] == uniforms([4], 5, stream=0)[0]).all())
    True
    """
    rows = [torch.rand(count, generator=generator(seed, stream), dtype=torch.float64) for seed in seeds]
    return torch.stack(rows) if rows else torch.empty(0, count, dtype=torch.float64)


def between(low: float, high: float, u: Tensor) -> Tensor:
    """u in [0, 1) stretched to [low, high)."""
    return low + (high - low) * u
