"""Solvers: order of convergence, exactness, agreement with SciPy, divergence."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch.utils._python_dispatch import TorchDispatchMode

import lrcnet
from lrcnet.solvers import SOLVERS, DormandPrince, ExplicitRungeKutta, advance, solve
from tests.tolerances import ORDER

FIXED = [name for name in SOLVERS if name != "dopri5"]


def held_cell(solver: str, unfolds: int) -> tuple[lrcnet.LRCCell, torch.Tensor, torch.Tensor]:
    """Build an LRC and a held input that are the same for every solver."""
    torch.manual_seed(3)
    cell = lrcnet.LRCCell(2, 6, solver=solver, unfolds=unfolds, dtype=torch.float64)
    circuit = cell.circuit()
    # Leak potentials of order one, so that the dynamics are not hidden by rounding at the smallest steps.
    cell.load_circuit({**circuit, "e_l": circuit["e_l"] * 10})
    return cell, torch.tensor([[0.3, -0.8]], dtype=torch.float64), torch.linspace(-1, 1, 6, dtype=torch.float64)[None]


def truth(span: float) -> np.ndarray:
    cell, x, h = held_cell("euler", 1)

    def field(_: float, state: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return cell.derivative(x, torch.from_numpy(state)[None])[0].numpy()

    return solve_ivp(field, (0, span), h[0].numpy(), method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


@pytest.mark.parametrize("solver", FIXED)
def test_fixed_step_solvers_converge_with_their_order(solver: str) -> None:
    span, exact = 2.0, truth(2.0)
    unfolds = [8, 16, 32, 64]
    errors = []
    for count in unfolds:
        cell, x, h = held_cell(solver, count)
        with torch.no_grad():
            errors.append(np.abs(cell(x, h, dt=span)[0].numpy() - exact).max())
    slope = -np.polyfit(np.log(unfolds), np.log(errors), 1)[0]
    assert slope == pytest.approx(SOLVERS[solver].order, abs=ORDER), errors


def test_adaptive_solver_meets_its_tolerance() -> None:
    exact = truth(2.0)
    cell, x, h = held_cell("euler", 1)
    values = cell.values()
    terms = cell.input_terms(values, x)
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        with torch.no_grad():
            end = DormandPrince(5, tolerance, tolerance).step(lambda s: cell.split(values, terms, s), h, 2.0)
        errors.append(np.abs(end[0].numpy() - exact).max())
        assert errors[-1] < 20 * tolerance
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
def test_roll_out_agrees_with_scipy(solver: str) -> None:
    field = lrcnet.LRCField(2).double()
    times = torch.linspace(0, 3, 301, dtype=torch.float64)
    y0 = torch.tensor([[0.5, -0.2]], dtype=torch.float64)
    with torch.no_grad():
        ours = lrcnet.NeuralODE(field, solver=solver)(y0, times)[:, 0].numpy()

        def right_hand_side(t: float, y: np.ndarray) -> np.ndarray:
            return field(t, torch.from_numpy(y)[None])[0].numpy()

        theirs = solve_ivp(right_hand_side, (0, 3), y0[0].numpy(), t_eval=times.numpy(), rtol=1e-12, atol=1e-13).y.T
    np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_exponential_step_is_exact_for_frozen_gates_and_for_no_decay() -> None:
    decay = torch.tensor([[0.0, 1e-12, 0.3, 5.0, 700.0]], dtype=torch.float64)
    drive, h = torch.full_like(decay, 0.7), torch.full_like(decay, -0.4)
    for d in (0.0, 0.1, 2.0):
        end = advance("exponential", lambda _: (decay, drive), h, d, 3)
        for i, rate in enumerate(decay[0].tolist()):
            gain = d if rate == 0 else -np.expm1(-rate * d) / rate
            assert float(end[0, i]) == pytest.approx(float(h[0, i]) * np.exp(-rate * d) + 0.7 * gain, abs=1e-14)


def test_exponential_step_has_finite_gradients_where_decay_vanishes() -> None:
    decay = torch.tensor([[0.0, 5e-324, 1e-160]], dtype=torch.float64, requires_grad=True)
    drive = torch.ones(1, 3, dtype=torch.float64)
    h = torch.full((1, 3), 0.5, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(advance("exponential", lambda _: (decay, drive), h, 1.0, 1).sum(), decay)
    # d/dr of h exp(-r) + (1 - exp(-r)) / r at r = 0 is -h - 1/2.
    torch.testing.assert_close(gradient, torch.full_like(decay, -1.0))


def test_unknown_solvers_list_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="hybrid, euler, exponential, heun, rk4, dopri5, but is 'rk5'"):
        lrcnet.LRC(3, 4, solver="rk5")
    with pytest.raises(ValueError, match="euler, heun, rk4, dopri5, but is 'hybrid'"):
        lrcnet.NeuralODE(lrcnet.MLPField(2), solver="hybrid")
    with pytest.raises(ValueError, match="solver of LRCUCell must be one of euler"):
        lrcnet.LRCU(3, 4, solver="hybrid")
    with pytest.raises(ValueError, match="unfolds must be at least 1"):
        lrcnet.LTC(3, 4, unfolds=0)


def test_divergence_is_reported_and_not_returned_as_nan_without_a_word() -> None:
    layer = lrcnet.LTC(3, 8, solver="euler", unfolds=1, backend="reference", time_warnings=False)
    circuit = layer.circuit()
    layer.load_circuit({**circuit, "g": circuit["g"] * 100})
    x = torch.zeros(200, 2, 3)
    with pytest.warns(lrcnet.DivergenceWarning, match=r"at step \d+ of sample 1"):
        layer(x, torch.tensor([[[0.0] * 8, [1e30] * 8]]), dt=torch.tensor([0.0, 1.0]).expand(200, 2))
    model = lrcnet.NeuralODE(lambda t, y: y * y, solver="euler")
    with pytest.raises(lrcnet.DivergenceError, match="time index"):
        model(torch.full((1, 1), 10.0), torch.linspace(0, 100, 50))
    with pytest.raises(lrcnet.DivergenceError, match="could not go on"):
        lrcnet.NeuralODE(lambda t, y: y * y)(torch.full((1, 1), 10.0), torch.linspace(0, 1, 2))


def test_a_tableau_checks_itself() -> None:
    with pytest.raises(ValueError, match="tableau"):
        ExplicitRungeKutta(2, ((), (1.0,)), (0.5, 0.6))
    with pytest.raises(ValueError, match="tableau"):
        ExplicitRungeKutta(2, ((), ()), (0.5, 0.5))


def test_fields_may_depend_on_time() -> None:
    times = torch.linspace(0, 2, 41, dtype=torch.float64)
    for solver in ("heun", "rk4", "dopri5"):
        end = solve(
            solver,
            lambda t, y: torch.cos(torch.as_tensor(t)) * torch.ones_like(y),
            torch.zeros(1, 1, dtype=torch.float64),
            times,
            relative_tolerance=1e-8,
            absolute_tolerance=1e-8,
        )
        assert float(end[-1]) == pytest.approx(np.sin(2.0), abs=1e-3)


class Operators(TorchDispatchMode):
    """A dispatch mode that counts the fused operators that run inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.forward = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.forward += func.namespace == "lrcnet" and "backward" not in str(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.skipif(lrcnet.kernels.native.unavailable() is not None, reason="the fused kernels are not built")
@pytest.mark.parametrize(
    ("solver", "unfolds", "elastance", "stages"), [("rk4", 1, "symmetric", 4), ("heun", 2, "asymmetric", 4)]
)
def test_runge_kutta_takes_its_stages_from_the_fused_kernel(
    solver: str, unfolds: int, elastance: str, stages: int
) -> None:
    settings: dict[str, Any] = {"solver": solver, "unfolds": unfolds, "elastance": elastance, "dtype": torch.float64}
    torch.manual_seed(1)
    fused = lrcnet.LRC(3, 40, **settings)
    plain = lrcnet.LRC(3, 40, backend="reference", **settings)
    plain.load_state_dict(fused.state_dict())
    x = torch.randn(5, 12, 3, dtype=torch.float64, requires_grad=True)
    dt = torch.rand(5, 12, dtype=torch.float64, requires_grad=True)
    results = []
    for layer in (fused, plain):
        with Operators() as operators:
            output, _ = layer(x, dt=dt)
        assert operators.forward == (5 * stages if layer is fused else 0)
        results.append((output, *torch.autograd.grad(output.square().sum(), [x, dt, *layer.parameters()])))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-12)
    one_by_one = fused.cells[0](x[0], dt=dt[0])
    torch.testing.assert_close(one_by_one, results[1][0][0], rtol=1e-11, atol=1e-12)
