"""Wirings by name, for estimators, which know the number of units but not yet that of the inputs."""

from __future__ import annotations

from collections.abc import Callable

from lrcnet.errors import one_of
from lrcnet.wirings import AutoNCP, FullyConnected, Random, Wiring

# Half of the synapses, which is AutoNCP's own default too.
SPARSITY = 0.5
WIRINGS: dict[str, Callable[[int], Wiring]] = {
    "auto-ncp": lambda units: AutoNCP(units, max(1, units // 4), SPARSITY),
    "fully-connected": lambda units: FullyConnected(units),
    "random": lambda units: Random(units, sparsity_level=SPARSITY),
}
"""Each name and how to make its wiring of some units; a quarter of an AutoNCP are motor neurons."""


def make_wiring(name: str, units: int) -> Wiring:
    """Return the wiring of a name.

    >>> make_wiring("auto-ncp", 32).output_dim
    8
    """
    return WIRINGS[one_of("wiring", name, WIRINGS)](units)
