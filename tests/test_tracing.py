"""Torch's private parts, one test for each use; and layers under torch.compile, torch.export and torch.func."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import lrcnet
from lrcnet import tracing
from tests.collection import make_layer, random_dt

NAMES = ["ltc", "stc", "lrc", "lrcu", "mgu", "ctrnn", "gru-ode"]


# torch.compile itself instantiates the autograd function behind the constraints, which torch deprecates.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_layers_compile_without_a_graph_break(name: str) -> None:
    layer = make_layer(name)
    x, dt = torch.randn(4, 2, 3, dtype=torch.float64), random_dt(name, 4, 2)
    torch.compiler.reset()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, dt=dt), layer(x, dt=dt))


@pytest.mark.parametrize("name", NAMES)
def test_layers_export(name: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = make_layer(name, bidirectional=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output, _ = self.rnn(x)
            return output

    model, x = Model().eval(), torch.randn(4, 2, 3, dtype=torch.float64)
    exported = torch.export.export(model, (x,))
    torch.testing.assert_close(exported.module()(x), model(x))


def test_auto_takes_the_plain_loop_under_torch_func() -> None:
    layer = lrcnet.LRCU(3, 4)
    x = torch.randn(5, 2, 3)
    jacobian = torch.func.jacrev(lambda v: layer(v)[1].sum(-1))(x)
    hessian_ready = lrcnet.LRCU(3, 4, backend="reference")
    hessian_ready.load_circuit(layer.circuit())
    expected = torch.autograd.functional.jacobian(lambda v: hessian_ready(v)[1].sum(-1), x)
    torch.testing.assert_close(jacobian, expected)


def test_the_plain_loop_is_twice_differentiable() -> None:
    layer = lrcnet.LRCU(2, 3, backend="reference", dtype=torch.float64)
    x = torch.randn(3, 1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda v: layer(v)[0], (x,))


def test_meta_device_builds_and_infers_shapes() -> None:
    layer = lrcnet.LRCU(3, 4, device="meta", backend="reference")
    output, h_n = layer(torch.empty(5, 2, 3, device="meta"))
    assert output.shape == (5, 2, 4)
    assert h_n.is_meta
    real = layer.to_empty(device="cpu")
    real.reset_parameters()
    assert real(torch.randn(5, 2, 3))[0].isfinite().all()


QUESTIONS = ("transform_active", "forward_mode_active", "jit_tracing", "dispatch_mode_active")


def active() -> set[str]:
    """The kinds of tracing that are found to be active now."""
    return {name for name in QUESTIONS if getattr(tracing, name)()}


class Nothing(TorchDispatchMode):
    """Lets every operator pass."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_nothing_is_active_by_default() -> None:
    assert active() == set()
    assert not tracing.dispatcher_needed()
    assert not tracing.compiling()


# torch.func.jacfwd itself uses torch.jit.script, which torch deprecates.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.vmap, torch.func.jacrev, torch.func.jacfwd])
def test_transforms_are_seen(transform: Any) -> None:
    seen: list[set[str]] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(active())
        assert tracing.dispatcher_needed()
        assert not tracing.values_are_readable(x)
        return x.sum()

    transform(function)(torch.ones(2))
    assert all("transform_active" in one for one in seen)
    assert active() == set()


def test_forward_mode_is_seen() -> None:
    with forward_ad.dual_level():
        assert active() == {"forward_mode_active"}
    assert active() == set()


# torch deprecates torch.jit.trace, but people still use it.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_jit_tracing_is_seen() -> None:
    seen: list[set[str]] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(active())
        return x + 1

    torch.jit.trace(function, torch.ones(2), check_trace=False)
    assert seen == [{"jit_tracing"}]
    assert active() == set()


def test_dispatch_modes_are_seen() -> None:
    with Nothing():
        assert active() == {"dispatch_mode_active"}
        assert tracing.dispatcher_needed()
    assert active() == set()


def test_compiling_is_seen() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if tracing.compiling() and not tracing.values_are_readable(x) else x

    torch.compiler.reset()
    assert torch.compile(function, backend="eager", fullgraph=True)(torch.zeros(1)).item() == 1


def test_a_batch_of_gradients_is_seen() -> None:
    seen: list[bool] = []

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            seen.append(tracing.is_batch_of_gradients(gradient))
            return gradient

    x = torch.ones(3, requires_grad=True)
    y = Identity.apply(x)
    torch.autograd.grad(y, x, torch.ones(3), retain_graph=True)
    torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert seen == [False, True]
    assert not tracing.is_batch_of_gradients(None)


def test_below_autograd_operators_leave_no_graph() -> None:
    x = torch.ones(3, requires_grad=True)
    with tracing.below_autograd():
        y = x * 2
    assert not y.requires_grad
    assert (x * 2).requires_grad


# torch decomposes programs with a class that it deprecates.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_fake_tensors_do_not_decompose_the_operator() -> None:
    layer, x = lrcnet.LRCU(3, 4), torch.randn(5, 2, 3)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: torch.export.Dim("time")},))
    assert "lrcnet.scan" in str(program.graph)
    assert "higher_order.scan" not in str(program.graph)
    operator = torch.ops.lrcnet.scan.default
    table = {operator: torch._decomp.decomposition_table[operator]}
    assert "higher_order.scan" in str(program.run_decompositions(table).graph)


def test_subclasses_are_not_ordinary() -> None:
    class Own(torch.Tensor):
        pass

    plain = torch.ones(1)
    assert tracing.are_ordinary(plain, None, nn.Parameter(plain))
    assert not tracing.are_ordinary(plain, plain.as_subclass(Own))


def test_numbers_of_the_meta_device_cannot_be_read() -> None:
    assert tracing.values_are_readable(torch.ones(1))
    assert not tracing.values_are_readable(torch.ones(1), torch.ones(1, device="meta"))


def test_no_other_file_uses_torchs_private_parts() -> None:
    private = re.compile(r"torch\._(?!_version__)|forward_ad\._")
    source = Path(lrcnet.__file__).parent
    users = {str(path.relative_to(source)) for path in source.rglob("*.py") if private.search(path.read_text())}
    assert users == {"tracing.py"}
