"""The boundary of the kernels: tensors whose memory is not their value, and arguments that would corrupt memory."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.circuit import STEP_LETTERS, Circuit, Switches
from lrcnet.kernels import native
from lrcnet.kernels.operators import run
from lrcnet.kernels.problem import Problem
from tests.kernels.conftest import CPU

SOLVERS = {"ltc": lrcnet.LTC, "stc": lrcnet.STC, "lrc": lrcnet.LRC, "lrcu": lrcnet.LRCU}


def negated(values: Tensor) -> Tensor:
    """The same numbers, stored with the other sign and torch's negative bit."""
    lazy = torch.complex(torch.zeros_like(values), -values.detach()).conj().imag
    assert lazy.is_neg()
    return lazy


def negated_dense(values: Tensor) -> Tensor:
    """The same as `negated`, without gaps in memory."""
    return torch._neg_view(-values.detach())


def zeros_without_memory(values: Tensor) -> Tensor:
    return torch._efficientzerotensor(values.shape, dtype=values.dtype)


@pytest.mark.parametrize("lazy", [negated, negated_dense])
@pytest.mark.parametrize("name", SOLVERS)
def test_a_lazily_negated_input_counts_with_its_sign(name: str, lazy: Callable[[Tensor], Tensor]) -> None:
    layer, values = SOLVERS[name](3, 4), torch.randn(5, 2, 3)
    dt, h = torch.rand(5, 2), torch.randn(1, 2, 4)
    expected = layer(values, h, dt=dt)[0]
    for x, start, gap in (
        (lazy(values), h, dt),
        (values, lazy(h), dt),
        (values, h, lazy(dt)),
    ):
        assert torch.equal(layer(x, start, dt=gap)[0], expected)


@pytest.mark.parametrize("name", SOLVERS)
def test_gradients_through_a_conjugate_have_the_right_sign(name: str) -> None:
    layer = SOLVERS[name](3, 4)

    def gradient(make: Callable[[Tensor], Tensor]) -> Tensor:
        imaginary = torch.linspace(-1, 1, 30).reshape(5, 2, 3).requires_grad_()
        layer(make(imaginary))[0].sum().backward()
        assert imaginary.grad is not None
        return imaginary.grad

    lazy = gradient(lambda im: torch.complex(torch.ones_like(im), im).conj().imag)
    assert torch.equal(lazy, gradient(lambda im: -im))


@pytest.mark.parametrize("lazy", [negated, negated_dense])
def test_lazily_negated_parameters_and_gradients_count_with_their_sign(lazy: Callable[[Tensor], Tensor]) -> None:
    layer, x = lrcnet.LRCU(3, 4, dtype=torch.float64), torch.randn(5, 2, 3, dtype=torch.float64)
    plain = lrcnet.LRCU(3, 4, dtype=torch.float64)
    plain.load_state_dict(layer.state_dict())
    for name, parameter in list(layer.cells[0].named_parameters()):
        setattr(layer.cells[0], name, nn.Parameter(lazy(parameter)))
    direction = torch.randn(5, 2, 4, dtype=torch.float64)
    layer(x)[0].backward(lazy(direction))
    plain(x)[0].backward(direction)
    for (name, one), (_, other) in zip(layer.named_parameters(), plain.named_parameters(), strict=True):
        assert torch.equal(one.grad, other.grad), name
    with torch.no_grad():
        # A square map of one sample is the same with and without gaps in memory.
        assert torch.equal(layer.step(lazy(x[0]))[0], plain.step(x[0])[0])
        state = torch.randn(1, 2, 4, dtype=torch.float64)
        assert torch.equal(layer.step(x[0], lazy(state), 0.5)[0], plain.step(x[0], state, 0.5)[0])


def test_zeros_without_memory_are_zeros() -> None:
    layer, x, h = lrcnet.LRCU(3, 4), torch.randn(5, 2, 3), torch.randn(1, 2, 4)
    zeros = zeros_without_memory
    assert torch.equal(layer(zeros(x))[0], layer(torch.zeros_like(x))[0])
    assert torch.equal(layer(x, zeros(h))[0], layer(x, torch.zeros_like(h))[0])
    assert torch.equal(layer(x, h, dt=zeros(x[..., 0]))[0], layer(x, h, dt=0.0)[0])
    with torch.no_grad():
        assert torch.equal(layer.step(zeros(x[0]))[0], layer.step(torch.zeros(2, 3))[0])
        assert torch.equal(layer.step(x[0], zeros(h))[0], layer.step(x[0], torch.zeros_like(h))[0])
    output = layer(x)[0]
    expected = torch.autograd.grad(output, list(layer.parameters()), torch.zeros_like(output), retain_graph=True)
    assert all(
        torch.equal(one, other)
        for one, other in zip(
            torch.autograd.grad(output, list(layer.parameters()), zeros(output)), expected, strict=True
        )
    )


def letters(**changes: Any) -> Circuit:
    return lrcnet.LRCUCell(3, 4).values()._replace(**changes)


@pytest.mark.parametrize("name", STEP_LETTERS)
def test_a_letter_of_zeros_without_memory_is_zero(name: str) -> None:
    circuit, x, h = letters(), torch.randn(5, 2, 3), torch.randn(2, 4)
    shape = getattr(circuit, name)
    lazy, plain = (circuit._replace(**{name: make(shape)}) for make in (zeros_without_memory, torch.zeros_like))
    with torch.no_grad():
        assert torch.equal(*(CPU.scan(one, Switches(), x, h, 1.0)[0] for one in (lazy, plain)))
        assert torch.equal(*(CPU.step(one, Switches(), x[0], h, 1.0) for one in (lazy, plain)))


def flat(**changes: Any) -> tuple[Any, ...]:
    """The operator's arguments for a small network, with some of them changed."""
    switches = Switches(**{name: changes.pop(name) for name in Switches._fields if name in changes})
    tensors = {"x": torch.randn(5, 2, 3), "h": None, "dt": None, **letters()._asdict(), **changes}
    x, h, dt = (tensors.pop(name) for name in ("x", "h", "dt"))
    problem = Problem(x, h, dt, Circuit(**tensors), 1.0, switches)
    return (*problem.tensors(), *problem.numbers())


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("unknown", [{"unfolds": 0}, {"unfolds": -3}, {"solver": "rk4"}, {"elastance": "square"}])
def test_the_operator_refuses_switches_that_it_does_not_know(unknown: dict[str, Any], keep: bool) -> None:
    with pytest.raises(ValueError, match=r"a kernel needs a solver in .*, but was given"):
        torch.ops.lrcnet.scan(*flat(**unknown), keep)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.complex64])
def test_the_operator_refuses_other_dtypes(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match="x must be float32 or float64"):
        torch.ops.lrcnet.scan(*flat(x=torch.ones(5, 2, 3, dtype=dtype)), False)
    with pytest.raises(ValueError, match=r"g must be torch\.float32"):
        torch.ops.lrcnet.scan(*flat(g=torch.ones(7, 4, dtype=dtype)), False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("way", ["export", "trace"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_converting_a_recorded_program_to_half_precision_is_an_error(way: str, dtype: torch.dtype) -> None:
    layer, x = lrcnet.LRCU(3, 4).eval(), torch.randn(5, 2, 3)
    if way == "export":
        program = torch.export.export(layer, (x,)).module()
    else:
        program = torch.jit.trace(layer, (x,), check_trace=False)
    program.to(dtype)
    for given in (x, x.to(dtype)):
        # TorchScript wraps the error in its own.
        with pytest.raises((ValueError, RuntimeError), match=r"must be (torch\.)?float32"):
            program(given)


def with_hooks(pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> dict[str, Tensor]:
    """The gradients of a small layer whose saved tensors pass through hooks."""
    torch.manual_seed(1)
    layer, x = lrcnet.LRC(3, 4, unfolds=2), torch.randn(5, 2, 3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        output = layer(x, dt=torch.rand(5, 2))[0]
    output.square().sum().backward()
    return {"x": x.grad, **{name: parameter.grad for name, parameter in layer.named_parameters()}}


def spread(tensor: Tensor) -> Tensor:
    """The same numbers with the axes in another order in memory, and gaps between them."""
    room = torch.full([2 * size for size in reversed(tensor.shape)], torch.nan, dtype=tensor.dtype)
    view = room.permute(*reversed(range(tensor.dim())))[tuple(slice(None, None, 2) for _ in tensor.shape)]
    view.copy_(tensor)
    return view


@pytest.mark.parametrize("unpack", [spread, negated, negated_dense])
def test_saved_tensors_may_come_back_with_other_strides(unpack: Callable[[Tensor], Tensor]) -> None:
    expected, gradients = with_hooks(lambda t: t, lambda t: t), with_hooks(lambda t: t.detach(), unpack)
    for name, value in expected.items():
        assert torch.equal(gradients[name], value), name


def test_saved_tensors_must_come_back_in_their_dtype_and_shape() -> None:
    with pytest.raises(ValueError, match=r"must be (float32 or float64|torch\.float32)"):
        with_hooks(lambda t: t.half(), lambda t: t)
    with pytest.raises(ValueError, match=r"must have (shape|3 dimensions)"):
        with_hooks(lambda t: t.flatten(), lambda t: t)


@pytest.mark.parametrize("training", [True, False])
def test_a_parameter_whose_storage_was_freed_is_an_error(training: bool) -> None:
    layer, x = lrcnet.LRCU(3, 4), torch.randn(5, 2, 3)
    layer(x)
    layer.cells[0].k.untyped_storage().resize_(0)
    with torch.set_grad_enabled(training):
        with pytest.raises(ValueError, match=r"k must have|k have no memory"):
            layer(x)
        with pytest.raises(ValueError, match="k have no memory"):
            layer.step(x[0])


def test_a_parameter_whose_storage_was_freed_before_the_first_call_is_an_error() -> None:
    layer = lrcnet.LRCU(3, 4)
    layer.cells[0].a.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match=r"cells\.0\.a must have its numbers in memory"):
        layer(torch.randn(5, 2, 3))


def test_an_input_whose_storage_was_freed_is_an_error() -> None:
    layer, x = lrcnet.LRCU(3, 4), torch.randn(40, 2, 3)
    layer.eval()(x)
    x.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="the input must have its numbers in memory"):
        layer(x)


@pytest.fixture
def arguments() -> Iterator[list[Any]]:
    """The compiled function's arguments of one small scan, whose memory lives as long as the test."""
    recorded: list[Any] = []
    original = native.library.scan

    class Spy:
        @staticmethod
        def scan(*arguments: Any) -> Any:
            recorded.extend(arguments)
            return original(*arguments)

    problem = Problem(torch.randn(5, 2, 3), torch.randn(2, 4), None, letters(), 1.0, Switches())
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", Spy)
        states = run(problem, gradient=False, keep=False)
    yield recorded
    del problem, states


# place in the arguments -> value that must be refused, and a part of the sentence.
REFUSED = {
    "dtype": (0, 2, "float32"),
    "saturation": (2, 7, "saturation"),
    "elastance": (3, 9, "elastance"),
    "solver": (4, -1, "solver"),
    "unfolds": (5, 0, "1 unfolding"),
    "units": (6, 0, "units"),
    "inputs": (7, -1, "inputs"),
    "hidden units": (8, 0, "1 unit"),
    "letter": (9, 0, "letters a, b"),
    "misaligned letter": (9, 3, "whole numbers"),
    "steps": (22, -1, "sizes"),
    "too many steps": (22, 2**62, "sizes"),
    "input": (24, 0, "an input"),
    "stride": (25, -1, "strides"),
    "states": (33, 0, "memory for the states"),
    "overlap": (34, 1, "side by side"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_compiled_library_refuses_nonsense(case: str, arguments: list[Any]) -> None:
    place, value, part = REFUSED[case]
    arguments[place] = value
    with pytest.raises(ValueError, match=part):
        native.library.scan(*arguments)


def test_the_compiled_library_counts_its_arguments(arguments: list[Any]) -> None:
    with pytest.raises(TypeError, match="too few"):
        native.library.scan(*arguments[:-1])
    with pytest.raises(TypeError, match="too many"):
        native.library.scan(*arguments, 0)
