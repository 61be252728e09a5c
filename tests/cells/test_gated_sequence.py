"""The whole-sequence function of MGU and of the paper's GRU against their plain loop, which is the specification."""

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

import lrcnet
from lrcnet.cells import gated_kernel, gated_sequence
from tests.tolerances import REARRANGED

Layer = lrcnet.MGU | lrcnet.ResetBeforeGRU


@pytest.fixture(params=[lrcnet.MGU, lrcnet.ResetBeforeGRU], ids=["MGU", "GRU"])
def kind(request: pytest.FixtureRequest) -> type[Layer]:
    """The class of the layer."""
    layer: type[Layer] = request.param
    return layer


@pytest.fixture(params=["compiled loops", "torch's operators"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The loops over time that run: those of the compiled library, or torch's operators."""
    if request.param == "torch's operators":
        monkeypatch.setattr(gated_kernel, "serves", lambda _: False)
    elif lrcnet.kernels.unavailable() is not None:
        pytest.skip("the fused kernels are not built")
    return str(request.param)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Call something with the plain loop in place of the whole-sequence function."""

    def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(gated_sequence, "serves", lambda *_: False)
            return function(*arguments, **named)

    return call


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The inputs of the whole-sequence function, as it is called."""
    seen: list[Tensor] = []
    scan = gated_sequence.scan

    def spy(step: Any, x: Tensor, *others: Any, **named: Any) -> Tensor:
        seen.append(x)
        return scan(step, x, *others, **named)

    monkeypatch.setattr(gated_sequence, "scan", spy)
    return seen


def run(layer: Layer, x: Any, h: Tensor | None = None, **named: Any) -> dict[str, Tensor]:
    """Output, last state and every gradient of a loss in which each number of both has a weight of its own."""
    layer.zero_grad()
    torch.manual_seed(1)
    output, last = layer(x, h, **named)
    values = output.data if not isinstance(output, Tensor) else output
    (values * torch.randn_like(values)).sum().add((last * torch.randn_like(last)).sum()).backward()
    leaves = {"x": x if isinstance(x, Tensor) else None, "h": h, "dt": named.get("dt")}
    gradients = {name: leaf.grad for name, leaf in leaves.items() if isinstance(leaf, Tensor) and leaf.requires_grad}
    for leaf in leaves.values():
        if isinstance(leaf, Tensor):
            leaf.grad = None
    gradients |= {name: p.grad for name, p in layer.named_parameters()}
    return {"output": values.detach(), "last": last.detach(), **gradients}


CASES = {
    "plain": ({}, (9, 3, 2)),
    "one sample, one step": ({}, (1, 1, 2)),
    "no samples": ({}, (4, 0, 2)),
    "no bias": ({"bias": False}, (9, 3, 2)),
    "batch first": ({"batch_first": True}, (3, 9, 2)),
    "two layers, both directions": ({"num_layers": 2, "bidirectional": True}, (9, 3, 2)),
    "dropout": ({"num_layers": 3, "dropout": 0.4}, (9, 3, 2)),
}


@pytest.mark.parametrize("block", [1, 70, 1 << 17], ids=["a step", "two steps and a remainder", "all steps"])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_equal_the_plain_loop(
    kind: type[Layer],
    case: str,
    block: int,
    loops: str,
    plain: Callable[..., Any],
    scans: list[Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gated_sequence, "_BLOCK", block)
    options, shape = CASES[case]
    layer = kind(2, 7, dtype=torch.float64, **options)
    batch = shape[0] if layer.batch_first else shape[1]
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    h = torch.randn(len(layer.cells), batch, 7, dtype=torch.float64, requires_grad=True)
    found = run(layer, x, h)
    assert len(scans) == len(layer.cells)
    torch.testing.assert_close(found, plain(run, layer, x, h), rtol=0, atol=REARRANGED)


@pytest.mark.parametrize("batch_first", [False, True])
def test_packed_sequences_with_time_equal_the_plain_loop(
    kind: type[Layer], plain: Callable[..., Any], batch_first: bool
) -> None:
    layer = kind(2, 5, bidirectional=True, time_feature=True, batch_first=batch_first, dtype=torch.float64)
    lengths, shape = torch.tensor([3, 7, 1, 5]), (4, 7) if batch_first else (7, 4)
    x = torch.randn(*shape, 2, dtype=torch.float64)
    packed = pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=False)
    h = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    dt = torch.rand(*shape, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(
        run(layer, packed, h, dt=dt), plain(run, layer, packed, h, dt=dt), rtol=0, atol=REARRANGED
    )


def test_only_what_is_asked_for_gets_a_gradient(kind: type[Layer], plain: Callable[..., Any]) -> None:
    layer = kind(3, 4, dtype=torch.float64)
    x = torch.randn(6, 2, 3, dtype=torch.float64)
    layer.cells[0].weight_hh.requires_grad_(False)
    found = run(layer, x)
    assert found["cells.0.weight_hh"] is None
    torch.testing.assert_close(found, plain(run, layer, x), rtol=0, atol=REARRANGED)
    with torch.no_grad():
        assert not layer(x)[0].requires_grad


@pytest.mark.parametrize("scale", [1.0, 30.0], ids=["ordinary weights", "gates nearly open or shut"])
def test_the_error_in_float32_is_that_of_the_plain_loop(
    kind: type[Layer], loops: str, plain: Callable[..., Any], scale: float
) -> None:
    torch.manual_seed(0)
    layer, truth = kind(3, 20), kind(3, 20, dtype=torch.float64)
    with torch.no_grad():
        layer.cells[0].weight_ih.mul_(scale)
    truth.load_state_dict({name: value.double() for name, value in layer.state_dict().items()})
    x = torch.randn(50, 16, 3, requires_grad=True)
    exact = plain(run, truth, x.detach().double().requires_grad_())
    fast, loop = run(layer, x), plain(run, layer, x)

    def error(of: dict[str, Tensor], name: str) -> float:
        return float((of[name].double() - exact[name]).abs().max() / exact[name].abs().max())

    # The law of the fused kernels: twice the plain loop's error for values, three times for gradients.
    for name in exact:
        allowed = (2 if name in ("output", "last") else 3) * max(error(loop, name), torch.finfo(torch.float32).eps)
        assert error(fast, name) <= allowed, name


@pytest.mark.skipif(lrcnet.kernels.unavailable() is not None, reason="the fused kernels are not built")
@pytest.mark.parametrize("units", [1, 16, 33, 100])
def test_compiled_loops_equal_the_plain_loop_on_any_number_of_threads(
    kind: type[Layer], units: int, plain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    call = gated_kernel.native.call
    monkeypatch.setattr(gated_kernel.native, "call", lambda name: calls.append(name) or call(name))
    layer = kind(2, units, dtype=torch.float64)
    x = torch.randn(20, 13, 2, dtype=torch.float64, requires_grad=True)
    expected, threads = plain(run, layer, x), torch.get_num_threads()
    assert not calls
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            torch.testing.assert_close(run(layer, x), expected, rtol=0, atol=REARRANGED)
    finally:
        torch.set_num_threads(threads)
    assert calls == ["gated"] * 6


def test_gradients_are_right_for_every_input(kind: type[Layer], loops: str) -> None:
    cell = kind.cell_type(2, 3, dtype=torch.float64)
    inputs = (torch.randn(5, 2, 2), torch.randn(2, 3), *(torch.randn(p.shape) for p in cell.parameters()))
    leaves = [tensor.double().requires_grad_() for tensor in inputs]

    def scan(*tensors: Tensor) -> Tensor:
        return gated_sequence.scan(cell.next_state, *tensors)

    assert torch.autograd.gradcheck(scan, leaves)
    assert torch.autograd.gradgradcheck(scan, leaves)


def test_a_second_derivative_sees_that_the_state_depends_on_the_input(
    kind: type[Layer], plain: Callable[..., Any]
) -> None:
    layer = kind(2, 3, dtype=torch.float64)
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)

    def penalty() -> tuple[Tensor, ...]:
        first = x.sum((0, 2)).unsqueeze(-1).expand(1, 2, 3)
        (slope,) = torch.autograd.grad(layer(x, first)[0].pow(2).sum(), x, create_graph=True)
        return torch.autograd.grad(slope.pow(2).sum(), (x, *layer.parameters()))

    torch.testing.assert_close(penalty(), plain(penalty), rtol=0, atol=1e3 * REARRANGED)


def test_the_same_graph_may_be_walked_twice(kind: type[Layer]) -> None:
    layer = kind(2, 3)
    output = layer(torch.randn(4, 2, 2))[0].sum()
    first = torch.autograd.grad(output, list(layer.parameters()), retain_graph=True)
    second = torch.autograd.grad(output, list(layer.parameters()))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_batch_of_gradients_at_once_equals_one_after_the_other(kind: type[Layer]) -> None:
    layer = kind(2, 3, dtype=torch.float64)
    x = torch.randn(4, 1, 2, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian
    torch.testing.assert_close(jacobian(lambda v: layer(v)[0], x, vectorize=True), jacobian(lambda v: layer(v)[0], x))


def test_nan_in_one_sample_reaches_its_gradients_only(kind: type[Layer], loops: str) -> None:
    layer = kind(2, 3)
    x = torch.randn(4, 3, 2)
    x[1, 2, 0] = float("nan")
    x.requires_grad_()
    layer(x)[0].sum().backward()
    assert x.grad is not None
    assert x.grad[:2, 2].isnan().all()
    assert x.grad[:, :2].isfinite().all()


# torch scripts its own rules for forward mode when they are first used.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_transforms_and_forward_mode_get_the_plain_loop(kind: type[Layer], scans: list[Tensor]) -> None:
    layer = kind(2, 3, dtype=torch.float64).eval()
    x = torch.randn(4, 1, 2, dtype=torch.float64)
    backward = torch.autograd.functional.jacobian(lambda v: layer(v)[0], x)
    assert len(scans) == 1
    scans.clear()
    torch.testing.assert_close(torch.func.jacrev(lambda v: layer(v)[0])(x), backward)
    torch.testing.assert_close(torch.func.jacfwd(lambda v: layer(v)[0])(x), backward)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        slope = torch.autograd.forward_ad.unpack_dual(layer(dual)[0]).tangent
    torch.testing.assert_close(slope, backward.sum((-1, -2, -3)))
    assert not scans


# Deprecated by torch, but still what older deployments export with.
@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_traced_layer_equals_the_eager_one(kind: type[Layer], scans: list[Tensor]) -> None:
    layer, x = kind(2, 3).eval(), torch.randn(4, 1, 2)
    traced = torch.jit.trace(layer, (x,), check_trace=False)
    assert not scans
    other = torch.randn(4, 1, 2)
    torch.testing.assert_close(traced(other), layer(other))


def test_a_compiled_layer_trains_as_the_eager_one(kind: type[Layer], scans: list[Tensor]) -> None:
    layer = kind(2, 3, dtype=torch.float64)
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)
    expected = run(layer, x)
    scans.clear()
    torch.compiler.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    found = run(compiled, x)
    assert not scans
    torch.testing.assert_close(
        found, {name if name in found else f"_orig_mod.{name}": value for name, value in expected.items()}
    )


def test_exported_programs_save_and_load(kind: type[Layer]) -> None:
    layer, x = kind(2, 3).eval(), torch.randn(4, 2, 2)
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(layer, (x,)), buffer)
    buffer.seek(0)
    torch.testing.assert_close(torch.export.load(buffer).module()(x), layer(x))
