"""What one step of generated C costs: memory, and operations in the worst case."""

from dataclasses import dataclass

from lrcnet.export.c_cells import KINDS, terms_per_unit
from lrcnet.export.c_numbers import Arithmetic
from lrcnet.export.c_solvers import evaluations
from lrcnet.export.c_tables import GROUPS, present_entries, vector_names
from lrcnet.export.network import CellData, NetworkData


@dataclass(frozen=True)
class Cost:
    """The cost of a network in C.

    Attributes:
        weight_bytes: constant data, usually in flash.
        state_bytes: memory of one stream.
        products: multiplications and additions of a step, counted as pairs.
        exponentials: evaluations of exp by a step, each with a division.
    """

    weight_bytes: int
    state_bytes: int
    products: int
    exponentials: int

    def __str__(self) -> str:
        return (
            f"{self.weight_bytes} bytes of weights, {self.state_bytes} bytes of state; at most {self.products} "
            f"multiply-adds and {self.exponentials} exponentials per step"
        )


def count(network: NetworkData, numbers: Arithmetic) -> Cost:
    """Count the operations of a step from the sizes of a network; every branch is taken."""
    kind, runs = KINDS[network.kind], evaluations(network)
    weights = products = exponentials = 0
    for cell in network.cells:
        # The input's part is computed once per step, the state's part at every evaluation of the right-hand side.
        for group, times in zip(GROUPS, (1, runs), strict=True):
            entries = int(present_entries(cell, group).sum())
            arrays = sum(name.startswith(f"{group}_") for name in cell.matrices)
            sparse = entries < next(v for n, v in cell.matrices.items() if n.startswith(f"{group}_")).size
            weights += entries * (arrays * numbers.bytes_per_weight + (2 if sparse else 0))
            products += times * entries * ((arrays - 1) if kind.per_synapse else 1)
            exponentials += times * entries if kind.per_synapse else 0
        weights += sum(cell.vectors[name].size for name in vector_names(network)) * numbers.bytes_per_weight
        exponentials += runs * cell.units * kind.exponentials
        products += runs * cell.units * (2 * terms_per_unit(network) + 4)
    if network.head is not None:
        size = network.head[0].size + network.head[1].size
        weights, products = weights + size * numbers.bytes_per_weight, products + size
    return Cost(weights, _state_bytes(network, network.cells[0]), products, exponentials)


def _state_bytes(network: NetworkData, cell: CellData) -> int:
    numbers = len(network.cells) * cell.units * (2 if KINDS[network.kind].has_memory else 1)
    numbers += cell.units if network.pooling != "last" else 0
    return 4 * (numbers + (network.pooling != "last" or network.fill_first_gap))
