"""LSTM and GRU on torch's own kernels, with the paper's initial values and the same interface as the other layers."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from lrcnet.cells.gated import check_pair, no_time, reset_torch_rnn, with_time
from lrcnet.errors import check_flag, check_placement, positive_size
from lrcnet.saving import Saveable
from lrcnet.sequence import Dt, as_sequence, cast_to, check_dropout, initial_state, read_input, under_autocast
from lrcnet.tracing import Unscriptable, resolve

State = Tensor | tuple[Tensor, Tensor]


class _TimedLayer(Saveable, Unscriptable, nn.Module):
    """The additions to torch's LSTM and GRU: dt as an input column, streaming, empty sequences, initial values."""

    mode: str
    hidden_size: int
    num_layers: int
    batch_first: bool
    bidirectional: bool

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        time_feature: bool = False,
    ) -> None:
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            positive_size(name, size)
        for name, flag in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            check_flag(name, flag)
        check_placement(device, dtype)
        self.time_feature = check_flag("time_feature", time_feature)
        check_dropout(dropout, num_layers=2)  # torch warns about dropout with one layer itself
        super().__init__(
            input_size + time_feature,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
        self.input_size = input_size

    def reset_parameters(self) -> None:
        """Draw Glorot input kernels and orthogonal recurrent kernels; set biases to 0, an LSTM's forget bias to 1."""
        reset_torch_rnn(self, self.hidden_size)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Check the number of features as torch does, but count the time column."""
        if input.shape[-1] != self.input_size + self.time_feature:
            raise ValueError(
                f"{self.mode} expects {self.input_size} features in the last dimension of its input, but it has "
                f"{input.shape[-1] - self.time_feature}; set input_size to the number of features"
            )

    def forward(
        self, input: Tensor | PackedSequence, hx: State | None = None, *, dt: Dt = None
    ) -> tuple[Tensor | PackedSequence, State]:
        """Run like torch.nn's layer; dt, in the layout of the input without its last axis, needs time_feature=True."""
        if dt is not None and not self.time_feature:
            raise ValueError(no_time(self.mode))
        like = next(self.parameters())
        if under_autocast(like):
            with torch.autocast(like.device.type, enabled=False):
                state = _cast_state_to(hx, like.dtype)
                return self._run(cast_to(input, like.dtype), state, cast_to(dt, like.dtype), like)
        return self._run(input, hx, dt, like)

    def _run(
        self, input: Tensor | PackedSequence, hx: State | None, dt: Dt, like: Tensor
    ) -> tuple[Tensor | PackedSequence, State]:
        sequences, layout = read_input(
            self.mode,
            input,
            dt,
            features=self.input_size,
            like=like,
            batch_first=self.batch_first,
            negative="allow",
        )
        states = {
            name: initial_state(self, name, state, sequences.x, layout) for name, state in self._state_parts(hx).items()
        }
        if not sequences.x.shape[0] or not sequences.x.shape[1]:
            width = self.hidden_size * (2 if self.bidirectional else 1)
            empty = sequences.x.new_zeros(*sequences.x.shape[:2], width)
            last = tuple(layout.restore_state(state.clone()) for state in states.values())
            return layout.restore(empty, sequences.lengths), last[0] if len(last) == 1 else (last[0], last[1])
        if self.time_feature:
            step = sequences.dt.unsqueeze(-1) if isinstance(sequences.dt, Tensor) else sequences.dt
            x = with_time(sequences.x, step)
            if isinstance(input, PackedSequence):
                assert sequences.lengths is not None
                input = input._replace(data=pack_padded_sequence(x, sequences.lengths.cpu()).data)
            else:
                restored = layout.restore(x, None)
                assert isinstance(restored, Tensor)
                input = restored
        # torch's kernels read the memory of zeros that have none.
        whole = input._replace(data=resolve(input.data)) if isinstance(input, PackedSequence) else resolve(input)
        output, last_state = super().forward(whole, _resolve_state(hx))
        return output, last_state

    def _state_parts(self, hx: State | None) -> dict[str, Tensor | None]:
        """Return the tensors of a state by the names that error messages use."""
        if self.mode == "GRU":
            return {"hx": hx}  # type: ignore[dict-item]
        check_pair(hx)
        assert not isinstance(hx, Tensor)
        return {"hx[0]": hx[0] if hx else None, "hx[1]": hx[1] if hx else None}

    def step(self, x: Tensor, state: State | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, State]:
        """Advance by one reading x (B, n) or (n,); see `RecurrentLayer.step`."""
        sequence, dt, axis = as_sequence(self, x, dt, self.batch_first)
        output, state = self.forward(sequence, state, dt=dt)
        assert isinstance(output, Tensor)
        return output.squeeze(axis), state


class LSTM(_TimedLayer, nn.LSTM):  # type: ignore[misc]
    """torch.nn.LSTM with the initial values of the paper's baseline; time_feature=True feeds dt as one more input.

    >>> output, (h_n, c_n) = lrcnet.LSTM(3, 5, time_feature=True)(torch.randn(7, 2, 3), dt=torch.rand(7, 2))
    """


class GRU(_TimedLayer, nn.GRU):  # type: ignore[misc]
    """torch.nn.GRU with the initial values of the paper's baseline; time_feature=True feeds dt as one more input.

    >>> output, h_n = lrcnet.GRU(3, 5)(torch.randn(7, 2, 3))
    """


def _resolve_state(hx: State | None) -> State | None:
    if hx is None or isinstance(hx, Tensor):
        return None if hx is None else resolve(hx)
    return resolve(hx[0]), resolve(hx[1])


def _cast_state_to(hx: State | None, dtype: torch.dtype) -> State | None:
    return (cast_to(hx[0], dtype), cast_to(hx[1], dtype)) if isinstance(hx, tuple) else cast_to(hx, dtype)
