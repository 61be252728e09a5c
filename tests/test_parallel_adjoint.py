"""Gradients of a roll-out for all points at once are those of the plain loop."""

from collections.abc import Callable

import pytest
import torch
from torchdiffeq._impl import rk_common

import lrcnet


def _lrc_without_kernels(size: int) -> lrcnet.LRCField:
    return lrcnet.LRCField(size, backend="reference")


@pytest.mark.parametrize("field_type", [lrcnet.LRCField, _lrc_without_kernels, lrcnet.MLPField])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("solver", ["euler", "heun", "rk4", "dopri5"])
def test_gradients_equal_those_of_the_plain_loop(
    field_type: Callable[[int], torch.nn.Module], size: int, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # torchdiffeq differentiates through its choice of the first step size, but not of the later ones.
    chosen = torch.no_grad()(rk_common._select_initial_step)
    monkeypatch.setattr(rk_common, "_select_initial_step", chosen)
    field = field_type(size).double()
    times = torch.cumsum(torch.rand(9, dtype=torch.float64), 0)
    y0 = torch.randn(5, size, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(9, 5, size, dtype=torch.float64)
    results = []
    for backend in ("auto", "reference"):
        states = lrcnet.NeuralODE(field, solver=solver, backend=backend)(y0, times)
        gradients = torch.autograd.grad((weights * states.sin()).sum(), [y0, *field.parameters()])
        results.append((states, gradients))
    torch.testing.assert_close(results[0], results[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_the_choice_of_the_first_step_matters_less_than_the_solvers_error(spread: float) -> None:
    field = lrcnet.MLPField(2).double()
    with torch.no_grad():
        for parameter in field.parameters():
            parameter.mul_(spread)
    times = torch.linspace(0, 5, 7, dtype=torch.float64)
    y0 = torch.randn(6, 2, dtype=torch.float64)

    def gradient(backend: str, tolerance: float) -> torch.Tensor:
        model = lrcnet.NeuralODE(
            field, backend=backend, relative_tolerance=tolerance, absolute_tolerance=tolerance / 100
        )
        gradients = torch.autograd.grad(model(y0, times).square().sum(), list(field.parameters()))
        return torch.cat([gradient.flatten() for gradient in gradients])

    ours, theirs, exact = gradient("auto", 1e-5), gradient("reference", 1e-5), gradient("reference", 1e-12)
    assert (ours - theirs).norm() < 0.1 * (theirs - exact).norm()


@pytest.mark.parametrize("solver", ["euler", "rk4"])
def test_gradients_are_right(solver: str) -> None:
    field = lrcnet.LRCField(2, units=3).double()
    model = lrcnet.NeuralODE(field, solver=solver)
    times = torch.tensor([0.0, 0.1, 0.5, 0.6], dtype=torch.float64)
    y0 = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: model(y, times), (y0,))


@pytest.mark.parametrize("solver", ["euler", "heun", "rk4", "dopri5"])
def test_float32_takes_the_same_way(solver: str) -> None:
    field = lrcnet.LRCField(2)
    y0 = torch.randn(5, 2)
    times = torch.linspace(0, 2, 6)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        field = field.to(dtype)
        model = lrcnet.NeuralODE(field, solver=solver, relative_tolerance=1e-4, absolute_tolerance=1e-6)
        loss = model(y0.to(dtype), times.to(dtype)).square().sum()
        gradients.append([g.double() for g in torch.autograd.grad(loss, list(field.parameters()))])
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("times", [[1.0, 0.5, 0.0], [0.0, -0.5, -0.7]])
@pytest.mark.parametrize("solver", ["euler", "rk4"])
def test_time_that_runs_back_takes_the_plain_loop(solver: str, times: list[float]) -> None:
    field = lrcnet.MLPField(2).double()
    t = torch.tensor(times, dtype=torch.float64)
    y0 = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    model = lrcnet.NeuralODE(field, solver=solver)
    assert torch.autograd.gradcheck(lambda y: model(y, t), (y0,))


@pytest.mark.parametrize("solver", ["euler", "dopri5"])
def test_a_constant_field_has_gradients(solver: str) -> None:
    class Drift(torch.nn.Module):
        autonomous = True

        def __init__(self) -> None:
            super().__init__()
            self.speed = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))

        def forward(self, t: object, y: torch.Tensor) -> torch.Tensor:
            return self.speed.expand_as(y)

    field = Drift()
    times = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
    states = lrcnet.NeuralODE(field, solver=solver)(torch.zeros(2, 2, dtype=torch.float64), times)
    torch.testing.assert_close(states[-1], torch.tensor([[3.0, -6.0]], dtype=torch.float64).expand(2, 2))
    states.sum().backward()
    torch.testing.assert_close(field.speed.grad, torch.full((2,), 8.0, dtype=torch.float64))


def test_one_time_and_an_empty_batch_work() -> None:
    model = lrcnet.NeuralODE(lrcnet.LRCField(2), solver="euler")
    y0 = torch.randn(3, 2)
    assert torch.equal(model(y0, torch.zeros(1))[0], y0)
    assert model(torch.empty(0, 2), torch.linspace(0, 1, 4)).shape == (4, 0, 2)


def test_a_second_derivative_is_refused_or_right() -> None:
    field = lrcnet.MLPField(2).double()
    times = torch.linspace(0, 1, 4, dtype=torch.float64)
    y0 = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    reference = lrcnet.NeuralODE(field, solver="euler", backend="reference")
    assert torch.autograd.gradgradcheck(lambda y: reference(y, times), (y0,))
    (gradient,) = torch.autograd.grad(
        lrcnet.NeuralODE(field, solver="euler")(y0, times).square().sum(), y0, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_many_states_at_once_have_the_reference_slopes_and_gradients():
    y = torch.randn(100, 2, dtype=torch.float64)
    results = []
    for backend in ("auto", "reference"):
        torch.manual_seed(3)
        field = lrcnet.LRCField(2, backend=backend).double()
        points = y.clone().requires_grad_()
        slopes = field(0.0, points)
        slopes.square().sum().backward()
        results.append([slopes.detach(), points.grad, *(p.grad for p in field.parameters())])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
