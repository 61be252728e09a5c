"""Sequence layers over any cell, shaped like torch.nn.GRU: changing the class name is enough.

Axes: T time, B batch, n inputs, m hidden units, L layers, D directions (2 if bidirectional).
"""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrcnet.cells import CTRNNCell, GRUODECell, LRCCell, LRCUCell, LTCCell, MGUCell, STCCell
from lrcnet.cells.base import Cell
from lrcnet.cells.gated import no_time, with_time
from lrcnet.cells.liquid import LiquidCell
from lrcnet.errors import positive_size
from lrcnet.sequence import Dt, Sequences, check_dropout, first_state, one_reading, raised, read, under_autocast


class RecurrentLayer(nn.Module):
    """A stack of cells over time, with torch.nn.GRU's interface.

    Args:
        input_size: n, at least 1.
        hidden_size: m.
        num_layers, bias, batch_first, dropout, bidirectional, device, dtype: as in torch.nn.GRU.
        **options: keyword arguments of the cell; an unknown one is a TypeError that lists the valid ones.
    """

    cell_type: ClassVar[type[Cell]]
    mode: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the cell's options in the signature, so that help() and editors know them."""
        super().__init_subclass__(**kwargs)
        if "cell_type" in cls.__dict__:
            cls.mode = cls.__name__
            own = inspect.signature(RecurrentLayer.__init__).parameters
            shown = [p for name, p in own.items() if name not in ("self", "options")]
            cls.__signature__ = inspect.Signature([*shown, *cls.options().values()])  # type: ignore[attr-defined]

    @classmethod
    def options(cls) -> dict[str, inspect.Parameter]:
        """The keyword arguments that this layer takes beside torch.nn.GRU's."""
        parameters = inspect.signature(cls.cell_type.__init__).parameters
        return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}

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
        **options: Any,
    ) -> None:
        super().__init__()
        unknown = options.keys() - self.options().keys()
        if unknown:
            raise TypeError(
                f"{self.mode} has no option {', '.join(sorted(unknown))}; it takes {', '.join(self.options())}"
            )
        self.input_size = positive_size("input_size", input_size)
        self.hidden_size = positive_size("hidden_size", hidden_size)
        self.num_layers = positive_size("num_layers", num_layers)
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = check_dropout(dropout, num_layers)
        self.bidirectional = bidirectional
        self.proj_size = 0
        self.time_feature = bool(options.pop("time_feature", False))
        directions = 2 if bidirectional else 1
        sizes = [input_size + self.time_feature] + [hidden_size * directions] * (num_layers - 1)
        self.cells = nn.ModuleList(
            self.cell_type(size, hidden_size, bias, device, dtype, **options)
            for size in sizes
            for _ in range(directions)
        )

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None, *, dt: Dt = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Run over whole sequences.

        Args:
            input: (T, B, n), (B, T, n) if batch_first, (T, n) unbatched, or a PackedSequence.
            hx: first states (L*D, B, m), or (L*D, m) unbatched; zeros if None.
            dt: the time that passed before each reading: None (1), a number, or one value per step laid out as the
                input without its last axis; for packed input packed alike, or padded in the original order.

        Returns:
            The output (T, B, D*m), laid out as the input, and the last states (L*D, B, m).
        """
        like = next(self.parameters())
        if under_autocast(like):
            # Half-precision states would lose what a small dt adds: raise the input and compute in full precision.
            with torch.autocast(like.device.type, enabled=False):
                return self._run(raised(input, like.dtype), raised(hx, like.dtype), raised(dt, like.dtype), like)
        return self._run(input, hx, dt, like)

    def _run(
        self, input: Tensor | PackedSequence, hx: Tensor | None, dt: Dt, like: Tensor
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        if like.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"{self.mode} computes in float32 or float64, but its parameters are {like.dtype}; convert the layer "
                "and use autocast for the rest of the model"
            )
        if dt is not None and not (self.time_feature or self.cell_type.takes_dt):
            raise ValueError(no_time(self.mode))
        sequences, layout = read(
            self.mode,
            input,
            dt,
            features=self.input_size,
            like=like,
            batch_first=self.batch_first,
            negative=self.negative_dt,
        )
        states = first_state(self, "hx", hx, sequences.x, layout)
        if self.time_feature:
            step = sequences.dt.unsqueeze(-1) if isinstance(sequences.dt, Tensor) else sequences.dt
            sequences = Sequences(with_time(sequences.x, step), 1.0, sequences.lengths)
        output, last = self._stack(sequences, states)
        return layout.leave(output, sequences.lengths), layout.leave_state(last)

    def _stack(self, sequences: Sequences, states: Tensor) -> tuple[Tensor, Tensor]:
        """All layers and directions over time-major sequences: output (T, B, D*m), last states (L*D, B, m)."""
        last: list[Tensor] = []
        x, lengths = sequences.x, sequences.lengths
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = nn.functional.dropout(x, self.dropout)
            ahead = Sequences(x, sequences.dt, lengths)
            outputs = []
            for reverse in range(2 if self.bidirectional else 1):
                index = len(last)
                cell, start = self.cells[index], states[index]
                assert isinstance(cell, Cell)
                run = ahead.backwards() if reverse else ahead
                trajectory = cell.scan(run.x, start, run.dt, batch_major=self.batch_first)
                last.append(run.final(trajectory, start))
                output = cell.read_out(trajectory)
                outputs.append(ahead.flip(output) if reverse else output)
            x = torch.cat(outputs, -1) if self.bidirectional else outputs[0]
        return x, torch.stack(last)

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Advance by one reading, for streams.

        Args:
            x: (B, n), or (n,) unbatched.
            state: (L, B, m) or (L, m), what the previous call or `forward` returned; zeros if None.
            dt: time since the previous reading, a number or (B,); 1 if None.

        Returns:
            The output (B, m) and the new state (L, B, m), or both without B.
        """
        whole, dt, axis = one_reading(self, x, dt, self.batch_first)
        output, state = self.forward(whole, state, dt=dt)
        assert isinstance(output, Tensor)
        return output.squeeze(axis), state

    @property
    def negative_dt(self) -> str:
        """What happens to dt < 0: "error", "clamp" or "allow"."""
        return str(self.cells[0].negative_dt)

    @property
    def all_weights(self) -> list[list[nn.Parameter]]:
        """The parameters of each layer and direction, in the order of the states."""
        return [list(cell.parameters()) for cell in self.cells]

    def flatten_parameters(self) -> None:
        """Nothing to do here; torch.nn.GRU has it for cuDNN."""

    def reset_parameters(self) -> None:
        """Draw new initial values for every cell."""
        for cell in self.cells:
            assert isinstance(cell, Cell)
            cell.reset_parameters()

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0)):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join([*parts, *(["bidirectional=True"] if self.bidirectional else [])])


class LiquidLayer(RecurrentLayer):
    """A layer of liquid cells, whose networks can be read and carried over in the paper's own letters."""

    def circuit(self, layer: int = 0, reverse: bool = False) -> dict[str, Tensor | None]:
        """What one layer and direction computes with, constraints applied; copies, see `lrcnet.liquid.Circuit`.

        >>> circuit = lrcnet.LRCU(3, 5).circuit()
        >>> circuit["g"].shape, bool((circuit["g"] >= 0).all())
        (torch.Size([8, 5]), True)
        """
        return self._cell(layer, reverse).circuit()

    def load_circuit(self, circuit: Mapping[str, Tensor | None], layer: int = 0, reverse: bool = False) -> None:
        """Take over a circuit, whatever parametrisation it came from; the inverse of `circuit`."""
        self._cell(layer, reverse).load_circuit(circuit)

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        answer = None if torch.is_grad_enabled() else self._stream(x, state, dt)
        return super().step(x, state, dt) if answer is None else answer

    def _stream(self, x: Tensor, state: Tensor | None, dt: float | Tensor | None) -> tuple[Tensor, Tensor] | None:
        """A step of one layer without gradient by the kernel's shortest way; None where the general way must serve.

        A stream is often one sample at a time, and there checks and dispatch cost more than the arithmetic. So this
        only asks whether all is as it should be, and leaves saying what is not to the general way.
        """
        cells: Any = self._modules["cells"]
        if not isinstance(x, Tensor):
            return None
        shape = x.shape
        batched = len(shape) == 2
        expected = (1, *shape[:-1], self.hidden_size)
        if (
            len(cells._modules) != 1
            or not (batched or len(shape) == 1)
            or shape[-1] != self.input_size
            or not (dt is None or (isinstance(dt, float) and 0 <= dt < float("inf")))
            or not (state is None or (state.shape == expected and state.dtype is x.dtype and state.is_cpu))
            or under_autocast(x)
        ):
            return None
        cell = cells._modules["0"]
        k = cell._parameters["k"]
        if k.dtype is not x.dtype or not k.is_cpu:
            return None
        start = x.new_zeros(expected) if state is None else state
        new = cell.stream(x if batched else x.unsqueeze(0), start, 1.0 if dt is None else dt)
        return None if new is None else (cell.read_out(new[0]), new)

    def _cell(self, layer: int, reverse: bool) -> LiquidCell:
        if not 0 <= layer < self.num_layers:
            raise ValueError(f"layer must be from 0 to {self.num_layers - 1}, but is {layer}")
        if reverse and not self.bidirectional:
            raise ValueError("reverse=True needs a bidirectional layer, but this one is not; leave reverse out")
        cell = self.cells[layer * (2 if self.bidirectional else 1) + bool(reverse)]
        assert isinstance(cell, LiquidCell)
        return cell


class LTC(LiquidLayer):
    """Liquid time-constant network, Eq. 1: unsaturated, hybrid solver, 6 unfoldings by default.

    >>> output, h_n = lrcnet.LTC(3, 5)(torch.randn(7, 2, 3))
    >>> output.shape, h_n.shape
    (torch.Size([7, 2, 5]), torch.Size([1, 2, 5]))
    """

    cell_type = LTCCell


class STC(LiquidLayer):
    """Saturated liquid time-constant network, Eq. 2: hybrid solver, 6 unfoldings by default.

    >>> layer = lrcnet.STC(3, 5, solver="euler", unfolds=1)
    """

    cell_type = STCCell


class LRC(LiquidLayer):
    """Liquid-resistance liquid-capacitance network, Eqs. 3-5, with any solver; one hybrid step by default.

    >>> layer = lrcnet.LRC(3, 5, elastance="asymmetric", solver="rk4", batch_first=True)
    >>> output, h_n = layer(torch.randn(2, 7, 3), dt=torch.rand(2, 7))
    """

    cell_type = LRCCell


class LRCU(LiquidLayer):
    """LRC units, Eq. 7: one explicit Euler step of an LRC per reading, a drop-in for torch.nn.GRU.

        h_t = (1 - eps(w) sigma(f)) h_{t-1} + eps(w) tau(u) e_l,     with dt = 1

    >>> layer = lrcnet.LRCU(3, 5, batch_first=True)
    >>> output, h_n = layer(torch.randn(2, 7, 3))
    >>> bool((output[:, -1] == h_n[0]).all())
    True
    >>> output, state = layer.step(torch.randn(2, 3), h_n, dt=0.5)
    """

    cell_type = LRCUCell


class MGU(RecurrentLayer):
    """Minimal gated unit; with time_feature=True it gets dt as one more input.

    >>> output, h_n = lrcnet.MGU(3, 5, time_feature=True)(torch.randn(7, 2, 3), dt=torch.rand(7, 2))
    """

    cell_type = MGUCell


class CTRNN(RecurrentLayer):
    """Continuous-time RNN; explicit Euler, 6 unfoldings by default.

    >>> output, h_n = lrcnet.CTRNN(3, 5)(torch.randn(7, 2, 3), dt=0.1)
    """

    cell_type = CTRNNCell


class GRUODE(RecurrentLayer):
    """The paper's GRU as an ODE, Eq. 9; one explicit Euler step by default.

    >>> output, h_n = lrcnet.GRUODE(3, 5, solver="rk4")(torch.randn(7, 2, 3))
    """

    cell_type = GRUODECell
