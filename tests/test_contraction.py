"""The limits of a diagonal LRC that make every step a contraction: a search for violations of the factor."""

import pytest
import torch

import lrcnet
from lrcnet.cells.diagonal import DiagonalLRCCell
from lrcnet.contraction import LONGEST_EXPLICIT_STEP
from lrcnet.theory import contraction_factor
from tests.tolerances import REARRANGED

UNITS = 64
LONGEST = {"euler": LONGEST_EXPLICIT_STEP, "hybrid": 50.0, "exponential": 50.0}


def steepest_slope(cell: DiagonalLRCCell, x: torch.Tensor, h: torch.Tensor, dt: torch.Tensor) -> torch.Tensor:
    """Return |dh'/dh| of every unit; the Jacobian is diagonal, so one backward pass gives all of them."""
    h = h.requires_grad_()
    (slope,) = torch.autograd.grad(cell(x, h, dt).sum(), h)
    return slope.abs()


def extreme_cell(**options: object) -> DiagonalLRCCell:
    """Return a cell whose stored values are far outside the limits."""
    cell = DiagonalLRCCell(3, UNITS, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.mul_(torch.exp(3 * torch.randn_like(parameter)))
    return cell


@pytest.mark.parametrize("synapses", ["mixed", "per-channel"])
@pytest.mark.parametrize("elastance", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("solver", list(LONGEST))
@pytest.mark.parametrize("unfolds", [1, 3])
def test_no_step_contracts_less_than_the_factor(solver: str, elastance: str, synapses: str, unfolds: int) -> None:
    for c in (0.001, 0.05):
        for _ in range(20):
            cell = extreme_cell(solver=solver, elastance=elastance, synapses=synapses, unfolds=unfolds, contraction=c)
            e_l = cell.circuit()["e_l"]
            # Inputs of all sizes, and states up to the edge of the box within which the factor holds.
            x = torch.randn(200, 3, dtype=torch.float64) * torch.exp(3 * torch.randn(200, 1, dtype=torch.float64))
            h = (4 * torch.rand(200, UNITS, dtype=torch.float64) - 2) * e_l.abs()
            dt = torch.rand(200, dtype=torch.float64) * LONGEST[solver] * unfolds
            limit = contraction_factor(c, dt, solver, unfolds)[:, None]
            assert bool((steepest_slope(cell, x, h, dt) <= limit + REARRANGED).all())


def test_the_factor_would_be_violated_without_the_limits() -> None:
    cell = extreme_cell()
    x, dt = torch.randn(200, 3, dtype=torch.float64), torch.ones(200, dtype=torch.float64)
    h = (4 * torch.rand(200, UNITS, dtype=torch.float64) - 2) * cell.e_l.abs().detach()
    assert bool((steepest_slope(cell, x, h, dt) > contraction_factor(0.001, dt)[:, None]).any())


@pytest.mark.parametrize("solver", list(LONGEST))
def test_states_stay_in_the_box(solver: str) -> None:
    cell = extreme_cell(solver=solver, contraction=0.01)
    x = 10 * torch.randn(300, 8, 3, dtype=torch.float64)
    dt = torch.rand(300, 8, dtype=torch.float64) * LONGEST[solver]
    states = cell.scan(x, torch.zeros(8, UNITS, dtype=torch.float64), dt)
    assert bool((states.abs() <= 2 * cell.e_l.abs() + REARRANGED).all())


def test_two_runs_under_the_same_inputs_meet() -> None:
    layer = lrcnet.DiagonalLRC(3, 16, contraction=0.05, dtype=torch.float64)
    x, e_l = torch.randn(2000, 1, 3, dtype=torch.float64), layer.circuit()["e_l"]
    far, near = (layer(x, scale * e_l.abs().expand(1, 1, 16))[0] for scale in (-2.0, 2.0))
    bound = 4 * e_l.abs() * 0.95 ** torch.arange(1, 2001, dtype=torch.float64)[:, None]
    assert bool(((far - near)[:, 0].abs() <= bound + REARRANGED).all())


def test_bad_arguments_get_a_sentence() -> None:
    for given in (0.0, 0.06, -1, "fast", True):
        with pytest.raises(ValueError, match=r"contraction must be None or above 0 and at most 0\.05, but is"):
            DiagonalLRCCell(3, 4, contraction=given)
    with pytest.raises(ValueError, match=r"dt must be from 0 to 1\.33333 for solver='euler'"):
        contraction_factor(0.01, torch.tensor([0.5, 2.0]))
    with pytest.raises(ValueError, match="solver must be one of"):
        contraction_factor(0.01, torch.tensor([0.5]), "rk4")
