"""Random networks and boxes for the laws of the bounds, and the one-neuron case with a known constant."""

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

import lrcnet
from lrcnet.cells.liquid import LiquidCell
from lrcnet.theory import Domain
from lrcnet.theory.network import BOUNDED_SOLVERS

ELASTANCES = ("none", "asymmetric", "symmetric")


@dataclass(frozen=True)
class Case:
    """A cell, a read-out, a box and a step."""

    cell: LiquidCell
    readout: Tensor
    domain: Domain
    dt: float

    @property
    def model(self) -> tuple[LiquidCell, Tensor]:
        return self.cell, self.readout


@st.composite
def cases(draw: st.DrawFn, unfolds: tuple[int, ...] = (1,), elastances: tuple[str, ...] = ELASTANCES) -> Case:
    """Draw cells of up to 4 units and 3 inputs; each letter has its own scale from 0.1 to 15."""
    m, n = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    elastance = draw(st.sampled_from(elastances))
    options = {
        "solver": draw(st.sampled_from(BOUNDED_SOLVERS)),
        "unfolds": draw(st.sampled_from(unfolds)),
        "input_map": draw(st.booleans()),
        "output_map": draw(st.booleans()),
        "dtype": torch.float64,
    }
    if elastance == "none":
        cell: LiquidCell = lrcnet.STCCell(n, m, **options)
    else:
        cell = lrcnet.LRCCell(n, m, elastance=elastance, **options)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    scale = st.sampled_from((0.1, 1.0, 4.0, 15.0))

    def normal(like: Tensor, size: float) -> Tensor:
        return size * torch.randn(like.shape, generator=generator, dtype=torch.float64)

    circuit = {}
    for name, value in cell.circuit().items():
        if value is not None:
            new_value = normal(value, draw(scale))
            circuit[name] = new_value.abs() if name in ("g", "g_l", "k_eps") else new_value
    cell.load_circuit(circuit)
    centre = normal(torch.empty(m + n), draw(scale))
    radius = normal(torch.empty(m + n), draw(scale)).abs()
    low, high = centre - radius, centre + radius
    domain = Domain((low[:m], high[:m]), (low[m:], high[m:]) if n else None)
    readout = normal(torch.empty(draw(st.integers(1, 3)), m), 1.0)
    return Case(cell, readout, domain, draw(st.sampled_from((0.1, 1.0, 3.0))))


def one_neuron(unfolds: int = 1, solver: str = "euler") -> lrcnet.STCCell:
    """Build an STC of one unit without input; its step has slope 1 - sigma(5) + 20 = 20.0067 at h = 0, less elsewhere.

    At h = 0, u = 0 and s = 1/2, where tanh and the synapse are steepest.
    """
    cell = lrcnet.STCCell(0, 1, solver=solver, unfolds=unfolds, input_map=False, dtype=torch.float64)
    letters = {"g": 0.0, "g_l": 5.0, "k": -10.0, "a": 8.0, "b": 0.0, "e_l": -1.0}
    cell.load_circuit({name: torch.full_like(cell.circuit()[name], value) for name, value in letters.items()})
    return cell
