"""Memory of backward passes that is used again: never by two at once, and never too much of it."""

import gc

import pytest
import torch
from torch import Tensor

import lrcnet
from lrcnet.kernels import kept_memory
from lrcnet.kernels.kept_memory import new_kept

LIKE = torch.empty(0)
SHAPE = (3, 5, 7)


@pytest.fixture(autouse=True)
def keep_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.setattr(kept_memory, "_SMALLEST", 1)
    monkeypatch.setattr(kept_memory, "_spare", [])


def spare_sizes() -> list[int]:
    return sorted(map(len, kept_memory._spare))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_memory_is_used_again_once_its_tensor_is_freed(dtype: torch.dtype) -> None:
    like = torch.empty(0, dtype=dtype)
    first = new_kept(like, SHAPE)
    assert first.shape == SHAPE
    assert first.dtype == dtype
    assert first.is_contiguous()
    address = first.data_ptr()
    del first
    assert new_kept(like, SHAPE).data_ptr() == address


def test_memory_in_use_is_not_given_away() -> None:
    kept = new_kept(LIKE, SHAPE).fill_(1)
    part = kept[1]  # a view keeps the memory too
    del kept
    others = [new_kept(LIKE, SHAPE).fill_(2) for _ in range(3)]
    assert bool((part == 1).all())
    assert len({other.data_ptr() for other in others}) == 3
    assert not spare_sizes()


def test_a_block_serves_smaller_tensors_but_not_tiny_ones() -> None:
    block = new_kept(LIKE, (1000,))
    address = block.data_ptr()
    del block
    assert new_kept(LIKE, (600,)).data_ptr() == address
    tiny = new_kept(LIKE, (400,))
    assert tiny.data_ptr() != address
    assert spare_sizes() == [4000]


def test_spare_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_memory, "_MOST_SPARE", 10_000)
    blocks = [new_kept(LIKE, (1000,)) for _ in range(4)]
    del blocks
    assert spare_sizes() == [4000, 4000]


def test_small_tensors_and_systems_without_maps_use_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_memory, "_CAN_MAP", False)
    assert new_kept(LIKE, SHAPE).shape == SHAPE
    monkeypatch.setattr(kept_memory, "_CAN_MAP", True)
    monkeypatch.setattr(kept_memory, "_SMALLEST", 1 << 30)
    assert new_kept(LIKE, SHAPE).shape == SHAPE
    assert new_kept(LIKE, (0,)).numel() == 0
    assert not spare_sizes()


def test_too_much_memory_is_torchs_error() -> None:
    with pytest.raises(RuntimeError, match="allocate"):
        new_kept(LIKE, (1 << 50,))


def train(layer: torch.nn.Module, x: Tensor) -> list[Tensor]:
    layer.zero_grad()
    layer(x)[0].square().sum().backward()
    return [parameter.grad.clone() for parameter in layer.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_the_same_in_used_memory(layers: int) -> None:
    torch.manual_seed(0)
    layer, inputs = lrcnet.LRCU(3, 8, layers), [torch.randn(t, 2, 3) for t in (9, 7, 9)]
    first = [train(layer, x) for x in inputs]
    assert spare_sizes()
    for before, x in zip(first, inputs, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(before, train(layer, x), strict=True))


def test_two_graphs_at_once_have_their_own_memory() -> None:
    torch.manual_seed(0)
    layer, xs = lrcnet.LRCU(3, 8), [torch.randn(9, 2, 3) for _ in range(2)]
    alone = [train(layer, x) for x in xs]
    layer.zero_grad()
    graphs = [layer(x)[0].square().sum() for x in xs]
    for graph in graphs:
        graph.backward()
    both = [parameter.grad for parameter in layer.parameters() if parameter.grad is not None]
    assert all(torch.equal(a + b, c) for a, b, c in zip(*alone, both, strict=True))
