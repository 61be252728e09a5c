"""The shortest path of a layer over sequences: the numbers of the general path, which runs where it must."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils import prune
from torch.nn.utils.rnn import pack_sequence

import lrcnet
from lrcnet.layers import LiquidLayer
from lrcnet.recurrent_layer import RecurrentLayer

READINGS = (5, 4, 3)


def used(layer: LiquidLayer, x: Tensor) -> LiquidLayer:
    """Return a layer after its first call, whose checks take the general path."""
    layer(x)
    return layer


def inputs(dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(READINGS, dtype=dtype, generator=torch.Generator().manual_seed(0))


def outputs_and_gradients(run: Callable[[Tensor], Any], layer: LiquidLayer, x: Tensor) -> list[Tensor]:
    layer.zero_grad()
    x = x.clone().requires_grad_()
    output, state = run(x)
    (output.square().sum() + state.sum()).backward()
    return [output, state, x.grad, *[p.grad for p in layer.parameters() if p.grad is not None]]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda **options: lrcnet.LRCU(3, 6, **options),
        lambda **options: lrcnet.LRCU(3, 6, elastance="asymmetric", output_map=True, **options),
        lambda **options: lrcnet.LTC(3, 6, dtype=torch.float64, **options),
        lambda **options: lrcnet.STC(3, 6, parametrisation="ab", **options),
        lambda **options: lrcnet.LRC(3, wiring=lrcnet.wirings.AutoNCP(8, 2), **options),
    ],
)
def test_it_returns_the_numbers_of_the_general_path(make: Callable[..., LiquidLayer], batch_first: bool) -> None:
    torch.manual_seed(0)
    layer = make(batch_first=batch_first)
    x = inputs(next(layer.parameters()).dtype)
    used(layer, x)
    assert layer._scan_at_once(x) is not None
    short = outputs_and_gradients(layer, layer, x)
    general = outputs_and_gradients(lambda x: RecurrentLayer.forward(layer, x), layer, x)
    assert [one.shape for one in short] == [one.shape for one in general]
    assert all(torch.equal(a, b) for a, b in zip(short, general, strict=True))
    # A padded or transposed input has other strides.
    strided = torch.cat([x, x], -1)[..., :3]
    assert torch.equal(layer(strided)[0], layer(x)[0])


def test_the_state_is_a_copy() -> None:
    layer, x = lrcnet.LRCU(3, 6), inputs()
    with torch.no_grad():
        output, state = used(layer, x)(x)
        before = state.clone()
        output.zero_()
    assert torch.equal(state, before)


def prune_a_letter(layer: LiquidLayer) -> None:
    prune.l1_unstructured(layer.cells[0], "g", amount=0.3)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(prune_a_letter, id="pruned"),
        pytest.param(lambda layer: setattr(layer.cells[0], "backend", "reference"), id="reference"),
        pytest.param(lambda layer: layer.double(), id="other dtype"),
    ],
)
def test_it_leaves_other_layers_to_the_general_path(change: Callable[[LiquidLayer], None]) -> None:
    layer, x = lrcnet.LRCU(3, 6), inputs()
    used(layer, x)
    change(layer)
    assert layer._scan_at_once(x) is None


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: lrcnet.LRCU(3, 6, 2), id="stacked"),
        pytest.param(lambda: lrcnet.LRCU(3, 6, bidirectional=True), id="bidirectional"),
        pytest.param(lambda: lrcnet.LRCU(3, 6, time_feature=True), id="time as a feature"),
        pytest.param(lambda: lrcnet.LRC(3, 6, solver="rk4"), id="solver without a kernel"),
    ],
)
def test_it_serves_one_layer_of_a_fused_solver(make: Callable[[], LiquidLayer]) -> None:
    x = inputs()
    assert used(make(), x)._scan_at_once(x) is None


def test_it_leaves_other_inputs_to_the_general_path() -> None:
    layer, x = lrcnet.LRCU(3, 6), inputs()
    assert layer._scan_at_once(x) is None, "the first call must be checked"
    used(layer, x)
    assert layer._scan_at_once(x) is not None
    freed = x.clone()
    freed.untyped_storage().resize_(0)
    for other in (x[0], x[..., :2], x.double(), x[:0], x.to_sparse(), x.to("meta"), freed, pack_sequence([x[:, 0]])):
        assert layer._scan_at_once(other) is None
    assert layer._scan_at_once(torch.nn.Parameter(x)) is None
    with torch.autocast("cpu"):
        assert layer._scan_at_once(x) is None
    with layer.cells[0].record_gates() as runs:
        output, _ = layer(x)
    assert torch.equal(runs[0][0], output)
    assert layer._scan_at_once(x) is not None


def test_a_replaced_parameter_is_seen() -> None:
    torch.manual_seed(0)
    layer, x = lrcnet.LRCU(3, 6), inputs()
    used(layer, x)(x)
    with torch.no_grad():
        layer.cells[0].k.mul_(2)
    changed = layer(x)[0]
    layer.cells[0].k = torch.nn.Parameter(layer.cells[0].k.detach() * 2)
    assert torch.equal(layer(x)[0], RecurrentLayer.forward(layer, x)[0])
    assert not torch.equal(layer(x)[0], changed)


def test_gradients_go_through_hooks_on_saved_tensors() -> None:
    torch.manual_seed(0)
    layer, x = lrcnet.LRCU(3, 6, batch_first=True), inputs()
    plain = outputs_and_gradients(used(layer, x), layer, x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
        hooked = outputs_and_gradients(layer, layer, x)
    assert all(torch.equal(a, b) for a, b in zip(plain, hooked, strict=True))
