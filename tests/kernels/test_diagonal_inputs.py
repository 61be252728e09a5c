"""The diagonal LRC with the linear map of its inputs in one operator: both ways to run it, blocks, bad arguments."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import lrcnet
from lrcnet.cells.diagonal import DiagonalLRCCell
from lrcnet.kernels import native_diagonal_inputs, unavailable
from lrcnet.kernels.diagonal import ROWS
from tests.kernels.test_diagonal import draw, run
from tests.tolerances import REARRANGED

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=f"no kernels: {unavailable()}")


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


# Batch and units: a sample for every thread, and so few samples that threads share the units of one.
SERVED = {(5, 24): True, (2, 70): True, (1, 64): True, (1, 130): False}


@pytest.mark.parametrize("synapses", ["mixed", "per-channel"])
@pytest.mark.parametrize(("batch", "units"), SERVED)
def test_both_ways_equal_the_plain_loop(batch: int, units: int, synapses: str) -> None:
    assert native_diagonal_inputs.serves(batch, units) == SERVED[batch, units]
    # Steps: less than a block, one, and some with a part of one.
    for steps, inputs, batch_major in ((5, 3, True), (64, 16, False), (150, 21, True)):
        cell = DiagonalLRCCell(inputs, units, synapses=synapses, dtype=torch.float64)
        tensors = draw(steps, batch, inputs, units, torch.float64)
        for fused, plain in zip(*(run(cell, b, tensors, batch_major) for b in ("fused", "reference")), strict=True):
            torch.testing.assert_close(fused, plain, rtol=1e-9, atol=REARRANGED)


def test_threads_repeat_to_the_bit() -> None:
    cell, tensors = DiagonalLRCCell(9, 40), draw(200, 7, 9, 40, torch.float32)
    for first, second in zip(*(run(cell, "fused", tensors, False) for _ in range(2)), strict=True):
        assert torch.equal(first, second)


def test_inputs_of_any_strides_are_read_in_place() -> None:
    cell, h = DiagonalLRCCell(6, 10, dtype=torch.float64), torch.zeros(3, 10, dtype=torch.float64)
    wide = torch.randn(12, 80, 3, dtype=torch.float64)
    for x in (wide[::2].permute(1, 2, 0), wide[:6].permute(1, 2, 0), torch.randn(6, dtype=h.dtype).expand(80, 3, 6)):
        given = x.detach().requires_grad_()
        states = cell.scan(given, h, 1.0)
        (gradient,) = torch.autograd.grad(states.square().sum(), given)
        contiguous = x.contiguous().requires_grad_()
        (expected,) = torch.autograd.grad(cell.scan(contiguous, h, 1.0).square().sum(), contiguous)
        torch.testing.assert_close(gradient, expected, rtol=0, atol=0)


def test_an_infinite_input_does_not_reach_gradients_that_it_does_not_touch() -> None:
    # 5 units: the lanes beyond them meet infinity times 0.
    cell, (x, h, dt) = DiagonalLRCCell(3, 5), draw(9, 2, 3, 5, torch.float32)
    with torch.no_grad():
        x[6, 1, 0] = torch.inf
    gradients = {}
    for backend in ("fused", "reference"):
        cell.backend = backend
        gradients[backend] = torch.autograd.grad(cell.scan(x, h, dt).sum(), [x, dt])
    for fused, plain in zip(*gradients.values(), strict=True):
        torch.testing.assert_close(fused, plain, equal_nan=True, rtol=1e-4, atol=1e-5)


def test_gradients_that_nobody_wants_are_not_computed() -> None:
    cell, (x, h, dt) = DiagonalLRCCell(3, 5), draw(9, 2, 3, 5, torch.float32)
    cell.scan(x.detach(), h.detach(), dt.detach()).sum().backward()
    alone = [parameter.grad for parameter in cell.parameters()]
    for parameter in cell.parameters():
        parameter.grad = None
    cell.scan(x, h, dt).sum().backward()
    for first, parameter in zip(alone, cell.parameters(), strict=True):
        assert first is not None
        assert parameter.grad is not None
        assert torch.equal(first, parameter.grad)


def test_no_samples_and_no_steps() -> None:
    layer, x = lrcnet.DiagonalLRC(3, 5), torch.randn(4, 0, 3, requires_grad=True)
    output, _ = layer(x)
    output.sum().backward()
    assert output.shape == (4, 0, 5)
    assert x.grad is not None
    assert x.grad.shape == x.shape
    assert layer(torch.randn(0, 4, 3))[0].shape == (0, 4, 5)


def arguments(**changes: Any) -> list[Any]:
    """The arguments of lrcnet::diagonal_scan_inputs for a small network, with some of them changed."""
    given: dict[str, Any] = {
        "x": torch.zeros(5, 2, 3),
        "weight": torch.zeros(8, 3),
        "bias": torch.zeros(8),
        "h": torch.zeros(2, 4),
        "dt": torch.ones(5, 2),
        "letters": torch.zeros(len(ROWS), 4),
        **{"dt_value": 1.0, "mixed": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1},
        "batch_first": False,
    }
    return list((given | changes).values())


def _free(tensor: Tensor) -> Tensor:
    tensor.untyped_storage().resize_(0)
    return tensor


BAD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "half inputs": {"x": torch.zeros(5, 2, 3).half()},
    "flat inputs": {"x": torch.zeros(30)},
    "a weight of fewer inputs": {"weight": torch.zeros(8, 2)},
    "a weight of fewer units": {"weight": torch.zeros(6, 3)},
    "a double weight": {"weight": torch.zeros(8, 3).double()},
    "too short a bias": {"bias": torch.zeros(7)},
    "too few letters": {"letters": torch.zeros(len(ROWS) - 1, 4)},
    "flat letters": {"letters": torch.zeros(len(ROWS) * 4)},
    "a weight without memory": {"weight": _free(torch.zeros(8, 3))},
    "inputs without memory": {"x": _free(torch.zeros(5, 2, 3))},
    "an unknown solver": {"solver": "rk4"},
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_the_operator_refuses_nonsense(case: str) -> None:
    with pytest.raises(ValueError, match=r"must (have|be)|a kernel needs"):
        torch.ops.lrcnet.diagonal_scan_inputs(*arguments(**BAD_ARGUMENTS[case]))


BAD_STATES: dict[str, Callable[[Tensor], Tensor]] = {
    "double": Tensor.double,
    "flat": Tensor.flatten,
    "too short": lambda t: t[:2],
    "without memory": _free,
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("case", BAD_STATES)
def test_its_backward_pass_refuses_nonsense(case: str, place: int) -> None:
    given = [torch.ones(5, 2, 4), torch.ones(5, 2, 4)]
    given[place] = BAD_STATES[case](given[place])
    with pytest.raises(ValueError, match=r"must (have|be)"):
        torch.ops.lrcnet.diagonal_scan_inputs_backward(*given, *arguments(), True, False)


@pytest.mark.parametrize("batch_first", [False, True])
def test_torchs_own_checks_of_an_operator_pass(batch_first: bool) -> None:
    torch.manual_seed(0)
    given = arguments(
        x=torch.randn(5, 2, 3), weight=torch.randn(8, 3), letters=torch.rand(len(ROWS), 4), batch_first=batch_first
    )
    tensors = [value.requires_grad_() if isinstance(value, Tensor) else value for value in given]
    torch.library.opcheck(torch.ops.lrcnet.diagonal_scan_inputs.default, tuple(tensors))
