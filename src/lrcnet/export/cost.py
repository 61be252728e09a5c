"""What one step of generated C costs: memory, and operations in the worst case."""

from dataclasses import dataclass, replace

from lrcnet.export.c_cells import KINDS, Kind, has_memory, terms_per_unit
from lrcnet.export.c_numbers import Arithmetic
from lrcnet.export.c_solvers import evaluations
from lrcnet.export.c_tables import groups_of, present_entries, vector_names
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
    if network.switches.get("mode") == "pure":
        kind = replace(kind, exponentials=1)
    weights = products = exponentials = 0
    pieces = [(piece, kind, runs) for cell in network.cells for piece in cell.parts or [cell]]
    pieces += [(cell.memory, KINDS["lstm"], 1) for cell in network.cells if cell.memory]
    for piece, own_kind, times in pieces:
        own = _count_cell(piece, own_kind, times, numbers.bytes_per_weight)
        weights, products, exponentials = (a + b for a, b in zip((weights, products, exponentials), own, strict=True))
        products += times * piece.units * (2 * terms_per_unit(network) + 4)
    around = [cell.block for cell in network.cells if cell.block] + ([network.encoder] if network.encoder else [])
    for piece in around:  # a norm, a GELU and a gate per feature; the encoder has none of them
        size = sum(matrix.size for matrix in piece.matrices.values())
        vectors = sum(vector.size for vector in piece.vectors.values())
        weights += (size + vectors) * numbers.bytes_per_weight
        products += size + vectors + (0 if piece is network.encoder else 16 * piece.units)
        exponentials += 0 if piece is network.encoder else 2 * piece.units
    if network.embedding is not None:
        weights += network.embedding.size * numbers.bytes_per_weight
    if network.head is not None:
        size = network.head[0].size + network.head[1].size
        weights, products = weights + size * numbers.bytes_per_weight, products + size
    return Cost(weights, _state_bytes(network, network.cells[0]), products, exponentials)


def _count_cell(cell: CellData, kind: Kind, runs: int, bytes_per_weight: int) -> tuple[int, int, int]:
    """Return bytes of weights, products of the matrices, and exponentials of one cell."""
    weights = products = exponentials = 0
    for group in groups_of(cell):
        # The input's part is computed once per step, the state's part at every evaluation of the right-hand side.
        times = 1 if group == "in" else runs
        matrices = [value for name, value in cell.matrices.items() if name.startswith(f"{group}_")]
        entries = int(present_entries(cell, group).sum())
        weights += entries * (len(matrices) * bytes_per_weight + (2 if entries < matrices[0].size else 0))
        products += times * entries * ((len(matrices) - 1) if kind.per_synapse else 1)
        exponentials += times * entries if kind.per_synapse else 0
        # A backbone has an activation before each of its further matrices.
        exponentials += matrices[0].shape[1] if group.startswith("deep") else 0
    weights += sum(cell.vectors[name].size for name in vector_names(cell)) * bytes_per_weight
    return weights, products, exponentials + runs * cell.units * kind.exponentials


def _state_bytes(network: NetworkData, cell: CellData) -> int:
    numbers = len(network.cells) * cell.units * (2 if has_memory(network) else 1)
    numbers += cell.outputs if network.pooling != "last" else 0
    return 4 * (numbers + (network.pooling != "last" or network.fill_first_gap))
