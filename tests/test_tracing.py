"""The layers under torch.compile, torch.export and torch.func, on the plain loop."""

import pytest
import torch
from torch import nn

import lrcnet
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
