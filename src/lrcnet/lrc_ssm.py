"""LrcSSM, a deep network for long sequences: diagonal LRCs between pointwise layers, after Farsang and Grosu, 2025.

Axes: B batch, T time, n inputs, H hidden features, N states of a block.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrcnet.diagonal import DiagonalLRC
from lrcnet.errors import check_kind, check_placement, positive_size, suggest
from lrcnet.models import Classifier, Dt, Pooling, Tagger
from lrcnet.saving import Saveable
from lrcnet.sequence import check_dropout, check_features, explain_shortage

if TYPE_CHECKING:
    from lrcnet.options import DiagonalOptions


def _map(function: Callable[[Tensor], Tensor], values: Any) -> Any:
    """Apply a function of single readings to a tensor or to a PackedSequence."""
    return values._replace(data=function(values.data)) if isinstance(values, PackedSequence) else function(values)


# The arguments of torch.nn.GRU that an LrcSSM does not take, and the way to the same end.
_INSTEAD = {
    "batch_first": "its input is always batch first: transpose (time, batch, input) yourself",
    "bias": "its recurrences always have one: leave it out",
    "bidirectional": "it only looks back: for both directions use lrcnet.DiagonalLRC(..., bidirectional=True)",
    "num_layers": "its depth is the number of blocks: pass blocks",
    "proj_size": "its output has hidden_size features whatever its states: pass states",
}


def _check_options(given: Iterable[str]) -> None:
    """Raise a TypeError unless all options are those of the recurrences."""
    valid = DiagonalLRC.options()
    for name in given:
        if name in _INSTEAD:
            raise TypeError(f"LrcSSM has no option {name}, but it was given; {_INSTEAD[name]}")
        if name not in valid:
            raise TypeError(f"LrcSSM has no option {name}; it takes {', '.join(valid)}: {suggest(name, valid)}")


class LrcSSMBlock(nn.Module):
    """Norm, diagonal LRC, a linear map of its states, a gated MLP, and a residual connection around all of it.

    Args:
        width: H, features of its input and output.
        states: N, units of the recurrence.
        dropout: share of the features dropped after the recurrence and after the MLP in training.
        device, dtype: of all parameters.
        options: those of `DiagonalLRC`.
    """

    def __init__(
        self,
        width: int,
        states: int,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, device=device, dtype=dtype)
        self.recurrence = DiagonalLRC(width, states, batch_first=True, device=device, dtype=dtype, **options)
        # Its messages are about the network that the user built.
        self.recurrence.mode = LrcSSMLayer.mode
        self.read = nn.Linear(states, width, device=device, dtype=dtype)
        self.skip = nn.Parameter(torch.ones(width, device=device, dtype=dtype))
        widen = nn.Linear(width, 2 * width, device=device, dtype=dtype)
        self.mlp = nn.Sequential(nn.GELU(), nn.Dropout(dropout), widen, nn.GLU(-1), nn.Dropout(dropout))

    def forward(self, x: Any, state: Tensor | None = None, *, dt: Dt = None) -> tuple[Any, Tensor]:
        """Return the features, laid out as x, (B, T, H) or packed, and the last state (1, B, N)."""
        inner = _map(self.norm, x)
        states, last = self.recurrence(inner, state, dt=dt)
        return self._combine(x, inner, states), last

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the features (B, H) of one reading, and the new state; or both without B."""
        inner = self.norm(x)
        output, new = self.recurrence.step(inner, state, dt)
        return x + self._transform(inner, output), new

    def _transform(self, inner: Tensor, states: Tensor) -> Tensor:
        features: Tensor = self.mlp(self.read(states) + self.skip * inner)
        return features

    def _combine(self, x: Any, inner: Any, states: Any) -> Any:
        if isinstance(x, PackedSequence):
            return x._replace(data=x.data + self._transform(inner.data, states.data))
        return x + self._transform(inner, states)


class LrcSSMLayer(nn.Module):
    """An encoder and a stack of blocks, with a recurrent layer's interface: (output, state) = layer(x, state, dt=dt).

    The state is (blocks, B, N). Readings come batch first. All blocks share the options of time.
    """

    mode = "LrcSSM"
    batch_first, bidirectional = True, False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        states: int,
        blocks: int,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        _check_options(options)
        check_placement(device, dtype)
        self.input_size, self.hidden_size, self.states = positive_size("input_size", input_size), hidden_size, states
        self.encoder = nn.Linear(input_size, positive_size("hidden_size", hidden_size), device=device, dtype=dtype)
        self.blocks = nn.ModuleList()
        for _ in range(positive_size("blocks", blocks)):
            block = LrcSSMBlock(hidden_size, positive_size("states", states), dropout, device, dtype, **options)
            self.blocks.append(block)
            # All blocks see the same gaps, so that the first one warns for all.
            options["time_warnings"] = False

    def _check(self, x: Any, state: Tensor | None) -> Any:
        """Return x if it has the features of the encoder and a state has one part per block; raise otherwise."""
        data = x.data if isinstance(x, PackedSequence) else x
        check_kind("the input", data, Tensor, "a tensor or a PackedSequence")
        check_features("LrcSSM", data, self.input_size, self.encoder.weight)
        if state is not None:
            check_kind("state", state, Tensor, "a tensor")
            if not state.dim() or len(state) != len(self.blocks):
                raise ValueError(
                    f"the state must have {len(self.blocks)} parts, one per block, but has shape {tuple(state.shape)}"
                )
        return x

    def forward(self, x: Any, state: Tensor | None = None, *, dt: Dt = None) -> tuple[Any, Tensor]:
        self._check(x, state)
        try:
            features, last = _map(self.encoder, x), []
            for i, block in enumerate(self.blocks):
                features, new = block(features, None if state is None else state[i : i + 1], dt=dt)
                last.append(new)
            return features, torch.cat(last)
        except RuntimeError as error:
            remedy = "go through the sequence step by step, `answer, state = network.step(x, state)`"
            explained = explain_shortage(self.mode, x, True, error, remedy)
            if explained is error:
                raise
            raise explained from error

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Take one reading x (B, n) or (n,); return the features and the new state."""
        features, last = self.encoder(self._check(x, state)), []
        for i, block in enumerate(self.blocks):
            assert isinstance(block, LrcSSMBlock)
            features, new = block.step(features, None if state is None else state[i : i + 1], dt)
            last.append(new)
        return features, torch.cat(last)

    def calibrate_time(self, dt: Any) -> float:
        """Set the time scale of every block to the median gap, and return it; see `ContinuousLayer.calibrate_time`."""
        for recurrence in self.recurrences:
            scale = recurrence.calibrate_time(dt)
        return scale

    @property
    def recurrences(self) -> list[DiagonalLRC]:
        """The diagonal LRC of each block."""
        return [block.recurrence for block in self.blocks if isinstance(block, LrcSSMBlock)]

    @property
    def cells(self) -> list[nn.Module]:
        """The cell of each block."""
        return [recurrence.cells[0] for recurrence in self.recurrences]

    @property
    def num_layers(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    @property
    def time_feature(self) -> bool:
        """Whether the gap is an input of every block instead of the length of its step."""
        return self.recurrences[0].time_feature

    @property
    def time_scale(self) -> float | str:
        """The gap that counts as 1, or "auto" as long as it is not known."""
        return self.recurrences[0].time_scale

    @property
    def time_unit(self) -> Tensor | None:
        """The gap that counts as 1, as the blocks store it."""
        return self.recurrences[0].time_unit


class LrcSSM(Saveable, nn.Module):
    """Encoder, blocks of a diagonal LRC each, and a linear read-out, per reading or pooled.

    Args:
        input_size: n.
        output_size: number of logits or values.
        hidden_size: H, features between the blocks.
        states: N, units of the recurrence of a block.
        blocks: number of blocks.
        pooling: "mean", "last" or "max" gives one answer per sequence, None one per reading.
        dropout: share of the features dropped in training.
        device, dtype: of all parameters, as in torch.nn.Linear.
        options: those of `DiagonalLRC`, such as elastance, solver, contraction and time_scale; an unknown one is a
            TypeError that lists the valid ones.

    >>> network = lrcnet.LrcSSM(3, 2, hidden_size=16, states=8)
    >>> network(torch.randn(4, 500, 3), lengths=torch.tensor([500, 400, 30, 1])).shape
    torch.Size([4, 2])
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        hidden_size: int = 64,
        states: int = 16,
        blocks: int = 2,
        pooling: Pooling | None = "mean",
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[DiagonalOptions],
    ) -> None:
        super().__init__()
        check_dropout(dropout, num_layers=2)
        layer = LrcSSMLayer(input_size, hidden_size, states, blocks, dropout, device, dtype, **options)
        self.network = (
            Tagger(layer, hidden_size, output_size)
            if pooling is None
            else Classifier(layer, hidden_size, output_size, pooling=pooling)
        )
        self.network.head.to(device=device, dtype=dtype)

    def forward(self, x: Tensor | PackedSequence, dt: Dt = None, lengths: Tensor | None = None) -> Any:
        """Return (B, output_size), or an answer for every reading of x (B, T, n) if there is no pooling.

        Args:
            x: (B, T, n), or a PackedSequence.
            dt: None, a number, (B, T), or packed as x; the time before each reading.
            lengths: (B,), the number of readings of each sequence; the rest is padding.
        """
        return self.network(x, dt, lengths)

    def step(self, x: Tensor, state: Any = None, dt: float | Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the answer after one more reading x (B, n), and the new state; or both without B."""
        return self.network.step(x, state, dt)

    def calibrate_time(self, dt: Any) -> float:
        """Set the time scale of every block to the median gap, and return it; see `ContinuousLayer.calibrate_time`."""
        assert isinstance(self.network.layer, LrcSSMLayer)
        return self.network.layer.calibrate_time(dt)


# help() and folders see the options of the recurrences one by one.
_SHOWN = [own for own in inspect.signature(LrcSSM).parameters.values() if own.name != "options"]
LrcSSM.__signature__ = inspect.Signature([*_SHOWN, *DiagonalLRC.options().values()])  # type: ignore[attr-defined]
