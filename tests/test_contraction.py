"""The limits of a diagonal LRC that make every step a contraction: a search for violations of the factor."""

from itertools import product

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


def corner_cell(dtype: torch.dtype, **options: object) -> DiagonalLRCCell:
    """Return a cell whose stored values are 0, of ordinary size, or 1e6 of either sign, in all mixtures."""
    cell = DiagonalLRCCell(2, 4 * UNITS, dtype=dtype, **options)
    with torch.no_grad():
        for parameter in cell.parameters():
            sign = torch.randn_like(parameter).sign()
            choices = torch.stack([torch.zeros_like(parameter), parameter, 4 * torch.randn_like(parameter), 1e6 * sign])
            parameter.copy_(choices.gather(0, torch.randint(4, (1, *parameter.shape)))[0])
    return cell


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("unfolds", [1, 7])
@pytest.mark.parametrize("solver", list(LONGEST))
def test_the_factor_holds_in_the_corners(solver: str, unfolds: int, dtype: torch.dtype) -> None:
    """Search the longest step, the edge of the box, potentials of zero, and parameters and inputs of 1e6."""
    # In float32 a step at a potential of 1e6 rounds its slope in the seventh digit, once per unfolding.
    tolerance = REARRANGED if dtype is torch.float64 else 2e-6 * unfolds
    for elastance, synapses, c in product(("symmetric", "asymmetric"), ("mixed", "per-channel"), (1e-6, 0.01, 0.05)):
        own = {"elastance": elastance, "synapses": synapses, "contraction": c}
        cell = corner_cell(dtype, solver=solver, unfolds=unfolds, **own)
        e_l = cell.circuit()["e_l"].abs()
        assert bool((e_l == 0).any() & (e_l == 1e6).any())
        x = 1e6 * torch.tensor([[0, 0], [1, 1], [-1, 1], [1, -1], [1e-6, -1e-6]], dtype=dtype).repeat(6, 1)
        h = torch.tensor([2.0, -2.0, 0.0], dtype=dtype).repeat_interleave(10)[:, None] * e_l
        dt = torch.full((30,), LONGEST[solver] * unfolds, dtype=dtype)
        dt[::2] *= torch.rand(15, dtype=dtype)
        slope, limit = steepest_slope(cell, x, h, dt), contraction_factor(c, dt, solver, unfolds)[:, None]
        assert bool((slope <= limit + tolerance).all()), f"{own}: {float((slope - limit).max())}"


@pytest.mark.parametrize("solver", list(LONGEST))
def test_states_outside_the_box_do_not_move_away_from_it(solver: str) -> None:
    cell = extreme_cell(solver=solver, contraction=0.01)
    e_l = cell.circuit()["e_l"].abs()
    x = 10 * torch.randn(100, 8, 3, dtype=torch.float64)
    dt = torch.rand(100, 8, dtype=torch.float64) * LONGEST[solver]
    start = torch.tensor([[-50.0], [-5.0], [-2.1], [-2.0], [2.0], [2.1], [5.0], [50.0]], dtype=torch.float64) * e_l
    sizes = torch.cat([start.abs()[None], cell.scan(x, start, dt).abs()])
    outside = sizes[:-1] > 2 * e_l
    assert bool((sizes[1:] <= sizes[:-1] * (1 + REARRANGED))[outside].all())
    assert bool((sizes[-1] < sizes[0])[outside[0]].any())


def diverging_layer() -> lrcnet.DiagonalLRC:
    """Return a layer with c = 0.001 whose states, under inputs of 0, drift apart in steps of 1.7."""
    layer = lrcnet.DiagonalLRC(1, 1, elastance="asymmetric", contraction=0.001, dtype=torch.float64)
    values = {"a_x": 1.0, "k_x": -1.0, "g_l": 20.0, "e_l": 1.0, "v": 1e3, "k_u": -39.0}
    with torch.no_grad():
        for name, parameter in layer.cells[0].named_parameters():
            parameter.fill_(values.get(name, 0.0))
    return layer


def test_a_step_beyond_four_thirds_warns() -> None:
    layer, x = diverging_layer(), torch.zeros(40, 1, 1, dtype=torch.float64)
    assert layer.cells[0].longest_stable_step() == pytest.approx(4 / 3)
    layer(x, dt=4 / 3)
    with pytest.warns(
        lrcnet.StabilityWarning, match=r"contracts only up to dt = 1\.33: beyond, two states may"
    ) as record:
        near = layer(x, torch.full((1, 1, 1), 1e-3, dtype=torch.float64), dt=1.7)[0]
    far = layer(x, torch.full((1, 1, 1), -1e-3, dtype=torch.float64), dt=1.7)[0]
    assert bool((near - far)[-1].abs() > 0.1), "the warning is about something real"
    assert record[0].filename == __file__


def test_the_limit_of_a_step_follows_unfolds_scale_and_solver() -> None:
    x = torch.randn(5, 2, 3)
    layer = lrcnet.DiagonalLRC(3, 4, contraction=0.01, unfolds=3, time_scale=10.0)
    layer(x, dt=torch.full((5, 2), 40.0))  # Warnings are errors: 40 is 4/3 times 3 times 10.
    with pytest.warns(lrcnet.StabilityWarning, match="up to dt = 40"):
        layer(x, dt=torch.full((5, 2), 41.0))
    # The float32 nearest to 4/3 is above it.
    lrcnet.DiagonalLRC(3, 4, contraction=0.01)(x, dt=torch.full((5, 2), 4 / 3))
    lrcnet.DiagonalLRC(3, 4, contraction=0.01, solver="exponential")(x, dt=torch.full((5, 2), 50.0))
    assert lrcnet.DiagonalLRC(3, 4).cells[0].longest_stable_step() == pytest.approx(2)


def test_contraction_refuses_steps_without_a_factor() -> None:
    for solver in ("rk4", "heun"):
        with pytest.raises(ValueError, match=f"euler, hybrid, exponential, but the solver is '{solver}'; choose one"):
            lrcnet.DiagonalLRC(3, 4, contraction=0.01, solver=solver)
    with pytest.raises(ValueError, match="holds for dt >= 0 only, but negative_dt is 'allow'"):
        lrcnet.LrcSSM(3, 2, contraction=0.01, negative_dt="allow")
    lrcnet.DiagonalLRC(3, 4, contraction=0.01, negative_dt="clamp")


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
