"""CfC's whole-sequence function against its plain loop, and the cell against its equation and its wiring."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

import lrcnet
from lrcnet.cells import cfc, cfc_kernel, cfc_sequence
from lrcnet.cells.cfc_equation import ACTIVATIONS, MODES
from lrcnet.wirings import AutoNCP
from tests.tolerances import REARRANGED

BLOCKS = (1, 40, 1 << 17)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Call something with the plain loop in place of the whole-sequence function."""

    def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(cfc, "serves", lambda *_: False)
            return function(*arguments, **named)

    return call


def run(cell: lrcnet.CfCCell, x: Tensor, h: Tensor, dt: float | Tensor, **named: Any) -> list[Tensor]:
    """Return the states and all gradients of a loss in which each number has a weight of its own."""
    states = cell.scan(x, h, dt, **named)
    weights = torch.linspace(-1, 1, states.numel(), dtype=states.dtype).view_as(states)
    leaves = [x, h, *([dt] if isinstance(dt, Tensor) else []), *cell.parameters()]
    return [states.detach(), *torch.autograd.grad((states * weights).sum(), [v for v in leaves if v.requires_grad])]


def inputs(units: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    shapes = ((6, 3, 2), (3, units), (6, 3))
    x, h, dt = (torch.randn(shape, dtype=dtype) for shape in shapes)
    return x.requires_grad_(), h.requires_grad_(), dt.abs().requires_grad_()


@pytest.mark.parametrize(("mode", "layers", "activation"), [*product(MODES, (0, 1, 3), ("lecun_tanh",))])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients_equal_the_plain_loop(
    mode: str, layers: int, activation: str, bias: bool, plain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = lrcnet.CfCCell(2, 4, bias, dtype=torch.float64, mode=mode, backbone_layers=layers, backbone_units=5)
    x, h, gaps = inputs(4)
    for dt, block, batch_major in zip((gaps, 0.7, gaps), BLOCKS, (False, True, True), strict=True):
        monkeypatch.setattr(cfc_sequence, "_BLOCK", block)
        results = run(cell, x, h, dt, batch_major=batch_major)
        torch.testing.assert_close(results, plain(run, cell, x, h, dt), rtol=0, atol=REARRANGED)


@pytest.mark.parametrize(("mode", "layers"), [*product(("default", "no_gate"), (0, 1, 2))])
@pytest.mark.skipif(lrcnet.kernels.unavailable() is not None, reason="the fused kernels are not built")
def test_compiled_loops_equal_the_plain_loop(
    mode: str, layers: int, plain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    call = cfc_kernel.native.call
    monkeypatch.setattr(cfc_kernel.native, "call", lambda name: calls.append(name) or call(name))
    cell = lrcnet.CfCCell(2, 16, layers < 2, dtype=torch.float64, mode=mode, backbone_layers=layers, backbone_units=32)
    x, h, gaps = inputs(16)
    for dt, block, batch_major in zip((gaps, 0.7, gaps), (1, 600, 1 << 17), (False, True, True), strict=True):
        monkeypatch.setattr(cfc_sequence, "_BLOCK", block)
        calls.clear()
        results = run(cell, x, h, dt, batch_major=batch_major)
        assert calls[:2] == ["cfc", "cfc"]
        torch.testing.assert_close(results, plain(run, cell, x, h, dt), rtol=0, atol=REARRANGED)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_equals_the_plain_loop(activation: str, plain: Callable[..., Any]) -> None:
    cell = lrcnet.CfCCell(2, 4, dtype=torch.float64, activation=activation, backbone_units=5, backbone_layers=2)
    given = inputs(4)
    torch.testing.assert_close(run(cell, *given), plain(run, cell, *given), rtol=0, atol=REARRANGED)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("units", [20, 32], ids=["torch's operations", "compiled loops"])
@pytest.mark.parametrize("scale", [1.0, 10.0], ids=["ordinary weights", "gates nearly open or shut"])
def test_the_error_in_float32_is_that_of_the_plain_loop(
    mode: str, scale: float, units: int, plain: Callable[..., Any]
) -> None:
    # Squares over all numbers of several networks, as for the liquid kernels: a single number or network may be right
    # by luck.
    sums: dict[int, list[float]] = {}
    for seed in range(4):
        torch.manual_seed(seed)
        cell, truth = (lrcnet.CfCCell(3, units, dtype=dtype, mode=mode) for dtype in (torch.float32, torch.float64))
        with torch.no_grad():
            cell.weight_ih.mul_(scale)
        truth.load_state_dict({name: value.double() for name, value in cell.state_dict().items()})
        x, h, dt = torch.randn(50, 16, 3), torch.randn(16, units), torch.rand(50, 16)
        exact = plain(run, truth, x.double().requires_grad_(), h.double(), dt.double())
        fast, loop = run(cell, x.requires_grad_(), h, dt), plain(run, cell, x, h, dt)
        for place, (ours, theirs, true) in enumerate(zip(fast, loop, exact, strict=True)):
            total = sums.setdefault(place, [0.0, 0.0, 0.0])
            for i, part in enumerate((ours.double() - true, theirs.double() - true, true)):
                total[i] += float(part.square().sum())
    # The law of the fused kernels: twice the plain loop's error for values, three times for gradients.
    for place, squares in sums.items():
        ours, theirs = (math.sqrt(square / squares[2]) for square in squares[:2])
        assert ours <= (3 if place else 2) * max(theirs, torch.finfo(torch.float32).eps), place


def gradients(layer: lrcnet.CfC, x: Tensor, h: Tensor, dt: Tensor, grad: Tensor, **named: Any) -> list[Tensor]:
    """Return the gradients of the state and of all parameters for a gradient of the output."""
    with torch.autograd.graph.saved_tensors_hooks(lambda v: v, named.get("unpack", lambda v: v)):
        output, _ = layer(x, h.requires_grad_(), dt=dt)
    return list(torch.autograd.grad(output, [h, *layer.parameters()], grad))


@pytest.mark.parametrize("units", [20, 32], ids=["torch's operations", "compiled loops"])
def test_memory_that_is_not_plain_gives_the_same_gradients(units: int) -> None:
    torch.manual_seed(0)
    layer = lrcnet.CfC(3, units, dtype=torch.float64)
    x, h, dt = (torch.rand(shape, dtype=torch.float64) for shape in ((6, 5, 3), (1, 5, units), (6, 5)))
    grad = torch.randn(6, 5, units, dtype=torch.float64)
    expected = gradients(layer, x, h, dt, grad)

    def scatter(values: Tensor) -> Tensor:
        return torch.stack([values, torch.full_like(values, torch.nan)], -1)[..., 0]

    given = {
        "negated": (x, h, torch._neg_view(-dt), torch._neg_view(-grad)),
        "gaps": (scatter(x), scatter(h.detach()), scatter(dt), scatter(grad)),
        "transposed": (x, h.detach().transpose(1, 2).contiguous().transpose(1, 2), dt.t().contiguous().t(), grad),
    }
    for name, arguments in given.items():
        for ours, theirs in zip(gradients(layer, *arguments), expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=REARRANGED, msg=name)
    for ours, theirs in zip(gradients(layer, x, h, dt, grad, unpack=scatter), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=REARRANGED)
    zeros = torch._efficientzerotensor(grad.shape, dtype=torch.float64)
    assert not any(g.any() for g in gradients(layer, x, h, dt, zeros))


@pytest.mark.parametrize("units", [20, 32], ids=["torch's operations", "compiled loops"])
def test_saved_tensors_of_another_dtype_are_named(units: int) -> None:
    layer = lrcnet.CfC(3, units)
    given = (torch.rand(6, 5, 3), torch.rand(1, 5, units), torch.rand(6, 5), torch.rand(6, 5, units))
    with pytest.raises(ValueError, match=r"a saved tensor must be torch.float32 .* but hooks returned torch.float16"):
        gradients(layer, *given, unpack=torch.Tensor.half)


@pytest.mark.parametrize("mode", MODES)
def test_first_and_second_derivatives_are_right(mode: str) -> None:
    cell = lrcnet.CfCCell(2, 3, dtype=torch.float64, mode=mode, backbone_units=4)
    x, h, dt = torch.randn(3, 2, 2).double(), torch.randn(2, 3).double(), torch.rand(3, 2).double()
    leaves = [value.requires_grad_() for value in (x, h, dt)]

    def scan(*tensors: Tensor) -> Tensor:
        return cell.scan(*tensors)

    assert torch.autograd.gradcheck(scan, leaves)
    assert torch.autograd.gradgradcheck(scan, leaves)


def test_only_what_is_asked_for_gets_a_gradient(plain: Callable[..., Any]) -> None:
    cell = lrcnet.CfCCell(2, 4, dtype=torch.float64)
    cell.weight_hh.requires_grad_(False)
    x, h, dt = (value.detach() for value in inputs(4))
    torch.testing.assert_close(run(cell, x, h, dt), plain(run, cell, x, h, dt), rtol=0, atol=REARRANGED)
    with torch.no_grad():
        assert not cell.scan(x, h, dt).requires_grad


def test_a_batch_of_gradients_at_once_equals_one_after_the_other() -> None:
    layer, x = lrcnet.CfC(2, 3, dtype=torch.float64, backbone_units=4), torch.randn(4, 1, 2, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian
    torch.testing.assert_close(jacobian(lambda v: layer(v)[0], x, vectorize=True), jacobian(lambda v: layer(v)[0], x))


def test_compiled_and_exported_layers_equal_the_eager_one() -> None:
    layer, x = lrcnet.CfC(2, 3, backbone_units=4).eval(), torch.randn(4, 2, 2)
    expected = layer(x)
    torch.testing.assert_close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x), expected)
    torch.testing.assert_close(torch.export.export(layer, (x,)).module()(x), expected)


def test_the_backbones_dropout_acts_in_training_only() -> None:
    layer, x = lrcnet.CfC(2, 3, backbone_dropout=0.5), torch.randn(4, 2, 2)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_bad_options_are_named() -> None:
    for options, message in (
        ({"mode": "closed"}, "mode must be one of default, pure, no_gate"),
        ({"activation": "sine"}, "activation must be one of lecun_tanh"),
        ({"backbone_dropout": 1.0}, "backbone_dropout must be at least 0 and below 1, but is 1.0"),
        ({"backbone_layers": -1}, "backbone_layers must be at least 0"),
        ({"backbone_units": 0}, "backbone_units must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            lrcnet.CfC(3, 4, **options)


@pytest.mark.parametrize("mode", MODES)
def test_a_unit_depends_on_connected_units_only(mode: str) -> None:
    cell = lrcnet.WiredCfCCell(5, wiring=AutoNCP(14, 3, sparsity_level=0.7), mode=mode, dtype=torch.float64)
    x, h = torch.randn(5, dtype=torch.float64), torch.randn(14, dtype=torch.float64)
    slopes = torch.autograd.functional.jacobian(cell, (x, h))
    first = cell.sizes[0]
    connected = torch.as_tensor(cell.wiring.sensory_adjacency_matrix != 0).t()[cell.wiring.get_neurons_of_layer(0)]
    assert torch.equal(slopes[0][:first] != 0, connected)
    dense = lrcnet.WiredCfCCell(5, wiring=AutoNCP(14, 3, sparsity_level=0.7), mode=mode, dense_gates=True)
    free = torch.autograd.functional.jacobian(dense, (x.float(), h.float()))[0][:first] != 0
    assert bool(free.all()) == (mode != "pure")


def test_a_wired_layer_reads_out_its_motor_neurons() -> None:
    layer = lrcnet.WiredCfC(5, wiring=AutoNCP(14, 3), num_layers=2, bidirectional=True, batch_first=True)
    output, h_n = layer(torch.randn(2, 7, 5), dt=torch.rand(2, 7))
    assert (output.shape, h_n.shape, layer.proj_size) == ((2, 7, 6), (4, 2, 14), 3)
    assert torch.equal(output[:, -1, :3], h_n[2][:, -3:])
    steps, state = [], None
    layer = lrcnet.WiredCfC(5, wiring=AutoNCP(14, 3))
    x = torch.randn(6, 2, 5)
    for reading in x:
        step, state = layer.step(reading, state)
        steps.append(step)
    torch.testing.assert_close(torch.stack(steps), layer(x)[0])
