"""How the kernels divide their work: one configuration for each size class, no tuner.

A tile of synapses is (samples or points) x rows x columns numbers; a thread has 8 to 32 of them.
"""

from typing import NamedTuple

import torch

MOST_UNITS = 256
"""The largest hidden size; the tests compile every class up to it and look for spilled registers."""


class Scan(NamedTuple):
    """The configuration of the passes through time.

    Attributes:
        samples: samples per program.
        units: m, rounded up to a power of two.
        tile: presynaptic units per tile in the forward pass, postsynaptic ones in the backward pass.
        warps, warps_back: groups of 32 (AMD: 64) threads per program, forward and backward.
    """

    samples: int
    units: int
    tile: int
    warps: int
    warps_back: int

    @property
    def resident(self) -> bool:
        """Whether the weights stay on chip for the whole sequence."""
        return self.tile == self.units


class Flat(NamedTuple):
    """The configuration of a kernel over all points: a tile of points x rows x columns, and its warps."""

    points: int
    rows: int
    columns: int
    warps: int


_SCANS = {
    False: (
        Scan(4, 16, 16, 2, 4),
        Scan(1, 32, 32, 2, 4),
        Scan(1, 64, 64, 8, 8),
        Scan(4, 128, 8, 8, 8),
        Scan(2, 256, 8, 8, 8),
    ),
    True: (
        Scan(4, 16, 16, 4, 4),
        Scan(1, 32, 32, 4, 4),
        Scan(2, 64, 8, 4, 4),
        Scan(2, 128, 4, 8, 8),
        Scan(1, 256, 8, 16, 8),
    ),
}

CURRENTS = Flat(8, 4, 32, 4)
"""Of `input_currents`: points, inputs per tile, units."""
INPUTS = Flat(8, 4, 32, 4)
"""Of `input_gradients`: points, inputs, units per tile."""
WEIGHTS = Flat(2, 16, 32, 4)
"""Of `weight_gradients`: points at a time, presynaptic rows, units."""

_CHUNKS, _SMALLEST_CHUNK = 64, 16


def scan_size(units: int, dtype: torch.dtype) -> Scan:
    """Return the configuration for m units, at most `MOST_UNITS`."""
    return next(size for size in _SCANS[dtype is torch.float64] if units <= size.units)


def chunk_of(points: int) -> int:
    """Return how many points one program adds up; a function of the number of points alone, so that results repeat."""
    return min(points, max(_SMALLEST_CHUNK, -(-points // _CHUNKS)))
