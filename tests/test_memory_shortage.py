"""Sequences that do not fit into memory: one sentence with the sizes and a way out, whatever layer runs over them."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import lrcnet
from lrcnet.sequence import SequenceMemoryError

# More than a process can address, and none of it is in memory: one reading, repeated.
LENGTH = 10**13

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "LRCU": lambda: lrcnet.LRCU(3, 8, batch_first=True),
    "LRC": lambda: lrcnet.LRC(3, 8, batch_first=True),
    "DiagonalLRC": lambda: lrcnet.DiagonalLRC(3, 8, batch_first=True),
    "CfC": lambda: lrcnet.CfC(3, 8, batch_first=True),
}


def endless(sequences: int = 1) -> torch.Tensor:
    return torch.zeros(1, 1, 3).expand(sequences, LENGTH, 3)


@pytest.mark.parametrize("name", LAYERS)
def test_a_sequence_without_enough_memory_gets_a_sentence(name: str) -> None:
    sizes = rf"^{name} must have memory for all {LENGTH} steps of 1 sequence\(s\) at once, but .*allocate \d+ bytes"
    with pytest.raises(
        SequenceMemoryError, match=rf"{sizes}\); run over the sequence in pieces .*layer\.step"
    ) as caught:
        LAYERS[name]()(endless())
    assert isinstance(caught.value, RuntimeError), "as torch's own"
    assert isinstance(caught.value, MemoryError)
    # Tools that retry with a smaller batch look for this text.
    assert "DefaultCPUAllocator: can't allocate memory" in str(caught.value)


def test_the_remedy_fits_the_network_and_the_batch() -> None:
    with pytest.raises(MemoryError, match=r"^LrcSSM must have memory .*network\.step\(x, state\)"):
        lrcnet.LrcSSM(3, 2)(endless())
    with pytest.raises(MemoryError, match=r"of 2 sequence\(s\) .*fewer sequences at a time, or run over"):
        lrcnet.DiagonalLRC(3, 8, batch_first=True)(endless(2))
    with pytest.raises(MemoryError, match="the reverse direction starts at the last step"):
        lrcnet.DiagonalLRC(3, 8, batch_first=True, bidirectional=True)(endless())


def fail_with(layer: nn.Module, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(*arguments: object) -> torch.Tensor:
        raise error

    monkeypatch.setattr(layer.cells[0], "_scan", scan)


def test_packed_sequences_are_counted_and_torchs_type_stays_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = lrcnet.DiagonalLRC(3, 8, batch_first=True)
    shortage = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1 GiB.")
    fail_with(layer, shortage, monkeypatch)
    packed = pack_padded_sequence(torch.randn(3, 9, 3), torch.tensor([9, 4, 1]), batch_first=True)
    with pytest.raises(torch.OutOfMemoryError, match=r"9 steps of 3 sequence\(s\).*CUDA out of memory.*2\.00 GiB\)"):
        layer(packed)


def test_other_errors_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, error = lrcnet.DiagonalLRC(3, 8), RuntimeError("something else")
    fail_with(layer, error, monkeypatch)
    with pytest.raises(RuntimeError, match=r"^something else$") as caught:
        layer(torch.randn(4, 2, 3))
    assert caught.value is error


def test_the_remedy_works() -> None:
    layer, x = lrcnet.DiagonalLRC(3, 8, batch_first=True), torch.randn(1, 30, 3)
    whole, state = layer(x)[0], None
    for piece, expected in zip(x.split(10, 1), whole.split(10, 1), strict=True):
        output, state = layer(piece, state)
        torch.testing.assert_close(output, expected)
