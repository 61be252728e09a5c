"""Gradients of a roll-out for all points at once are those of the plain loop."""

import pytest
import torch

import lrcnet


@pytest.mark.parametrize("field_type", [lrcnet.LRCField, lrcnet.MLPField])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_gradients_equal_those_of_the_plain_loop(field_type: type, size: int) -> None:
    field = field_type(size).double()
    times = torch.cumsum(torch.rand(9, dtype=torch.float64), 0)
    y0 = torch.randn(5, size, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(9, 5, size, dtype=torch.float64)
    found = []
    for backend in ("auto", "reference"):
        states = lrcnet.NeuralODE(field, solver="euler", backend=backend)(y0, times)
        gradients = torch.autograd.grad((weights * states.sin()).sum(), [y0, *field.parameters()])
        found.append((states, gradients))
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_gradients_are_right() -> None:
    field = lrcnet.LRCField(2, units=3).double()
    model = lrcnet.NeuralODE(field, solver="euler")
    times = torch.tensor([0.0, 0.1, 0.5, 0.6], dtype=torch.float64)
    y0 = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: model(y, times), (y0,))


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
    found = []
    for backend in ("auto", "reference"):
        torch.manual_seed(3)
        field = lrcnet.LRCField(2, backend=backend).double()
        points = y.clone().requires_grad_()
        slopes = field(0.0, points)
        slopes.square().sum().backward()
        found.append([slopes.detach(), points.grad, *(p.grad for p in field.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
