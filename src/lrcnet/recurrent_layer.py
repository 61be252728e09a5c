"""The general sequence layer: a stack of cells over time, with torch.nn.GRU's interface.

Axes: T time, B batch, n inputs, m hidden units, L layers, D directions (2 if bidirectional).
"""

import inspect
import re
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrcnet import first_call
from lrcnet.cells.base import Cell
from lrcnet.cells.gated import no_time, with_time
from lrcnet.errors import check_flag, check_placement, positive_size
from lrcnet.saving import Saveable
from lrcnet.sequence import (
    Dt,
    Layout,
    Sequences,
    as_sequence,
    cast_to,
    check_dropout,
    explain_shortage,
    initial_state,
    read_input,
    under_autocast,
)
from lrcnet.tracing import Unscriptable, compiling

# The parameters of torch.nn.RNN, LSTM and GRU, such as weight_ih_l0 or bias_hh_l1_reverse.
_TORCH_WEIGHT = re.compile(r"(?:weight_(?:ih|hh|hr)|bias_(?:ih|hh))_l\d+(?:_reverse)?")


def keyword_only(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the keyword-only parameters of a function by name."""
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


class RecurrentLayer(Saveable, Unscriptable, nn.Module):
    """A stack of cells over time, with torch.nn.GRU's interface.

    Args:
        input_size: n, at least 1.
        hidden_size: m.
        num_layers, bias, batch_first, dropout, bidirectional, device, dtype: as in torch.nn.GRU.
        **options: keyword arguments of the cell; an unknown one is a TypeError that lists the valid ones. Each family
            in `lrcnet.layers` declares its own, so that type checkers and editors know them.
    """

    cell_type: ClassVar[type[Cell]]
    _memory_checked: bool = False
    mode: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Put the cell's options into the signature, so that help() shows them."""
        super().__init_subclass__(**kwargs)
        if "cell_type" in cls.__dict__:
            cls.mode = cls.__name__
            own = dict(inspect.signature(RecurrentLayer.__init__).parameters)
            # With a wiring, hidden_size is optional.
            own = {**own, "hidden_size": inspect.signature(cls.cell_type.__init__).parameters["hidden_size"]}
            shown = [p for name, p in own.items() if name not in ("self", "options")]
            cls.__signature__ = inspect.Signature([*shown, *cls.options().values()])  # type: ignore[attr-defined]

    @classmethod
    def options(cls) -> dict[str, inspect.Parameter]:
        """Return the keyword arguments that this layer takes in addition to torch.nn.GRU's."""
        return keyword_only(cls.cell_type.__init__)

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
        check_placement(device, dtype)
        for name, flag in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            check_flag(name, flag)
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = check_dropout(dropout, num_layers)
        self.bidirectional = bidirectional
        self.time_feature = check_flag("time_feature", options.pop("time_feature", False))
        directions = 2 if bidirectional else 1
        self.cells = nn.ModuleList()
        size = input_size + self.time_feature
        for layer in range(num_layers):
            own = self._cell_options(options, layer, size)
            cells = [self.cell_type(size, hidden_size, bias, device, dtype, **own) for _ in range(directions)]
            self.cells.extend(cells)
            size = cells[0].output_size * directions
        # As of an LSTM with a projection: the features of one direction's output, or 0 if they are the states.
        self.proj_size = 0 if size == hidden_size * directions else size // directions

    def _cell_options(self, options: dict[str, Any], layer: int, size: int) -> dict[str, Any]:
        """Return the options of the cells of one layer, whose input has `size` features; a hook."""
        return options

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None, *, dt: Dt = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Run over whole sequences.

        Args:
            input: (T, B, n), (B, T, n) if batch_first, (T, n) unbatched, or a PackedSequence.
            hx: initial states (L*D, B, m), or (L*D, m) unbatched; zeros if None.
            dt: the time that passed before each reading: None (1), a number, or one value per step in the layout of
                the input without its last axis; for packed input, packed in the same way or padded in the original
                order.

        Returns:
            The output (T, B, D*m) in the layout of the input, and the last states (L*D, B, m). With a wiring, the
            output has the motor neurons only, D times `proj_size` features if that is not 0.

        Raises:
            SequenceMemoryError: if there is not enough memory for all steps; a RuntimeError and a MemoryError.
        """
        try:
            answer = self._scan_at_once(input) if hx is None and dt is None else None
            if answer is not None:
                return answer
            like = self._first_parameter()
            if under_autocast(like):
                # Half-precision states would round away the change that a small dt makes, so cast the input and compute
                # in full precision.
                with torch.autocast(like.device.type, enabled=False):
                    return self._run(cast_to(input, like.dtype), cast_to(hx, like.dtype), cast_to(dt, like.dtype), like)
            return self._run(input, hx, dt, like)
        except RuntimeError as error:
            explained = explain_shortage(self.mode, input, self.batch_first, error, self._how_to_save_memory())
            if explained is error:
                raise
            raise explained from error

    def _how_to_save_memory(self) -> str:
        if self.bidirectional:
            return "use shorter sequences, because the reverse direction starts at the last step"
        return (
            "run over the sequence in pieces that pass the state on, `output, state = layer(piece, state)`, or step by "
            "step with `layer.step`; in training, detach the state between pieces"
        )

    def _scan_at_once(self, x: Tensor | PackedSequence) -> tuple[Tensor, Tensor] | None:
        """Return the answer for dt = 1 and states of zero, or None; a hook for layers that know a shorter path."""
        return None

    def _first_parameter(self) -> nn.Parameter:
        """Return a parameter, for its dtype and device; `parameters()` walks through all modules to find one."""
        for cell in self.cells:
            for parameter in cell._parameters.values():
                if parameter is not None:
                    return parameter
        return next(self.parameters())

    def __getattr__(self, name: str) -> Any:
        """Look up parameters and modules as nn.Module does; for torch.nn.GRU's weights, say what to use instead."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if _TORCH_WEIGHT.fullmatch(name):
                raise AttributeError(f"{self.mode} has no {name}; {self._where_values_are()}") from None
            raise

    def _where_values_are(self) -> str:
        return "its parameters are those of its cells, e.g. layer.cells[0].weight_ih"

    def _run(
        self, input: Tensor | PackedSequence, hx: Tensor | None, dt: Dt, like: Tensor
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        sequences, layout = self.read(input, dt, like)
        states = initial_state(self, "hx", hx, sequences.x, layout)
        sequences = self.prepare(sequences, states, given=dt is not None, first=hx is None)
        last: list[Tensor] = []

        def scan(index: int, run: Sequences) -> Tensor:
            cell, start = self.cells[index], states[index]
            assert isinstance(cell, Cell)
            trajectory = cell.scan(run.x, start, run.dt, batch_major=self.batch_first)
            last.append(run.last_state(trajectory, start))
            return trajectory

        output = self.run_stack(sequences, scan)
        return layout.restore(output, sequences.lengths), layout.restore_state(torch.stack(last))

    def read(self, input: Tensor | PackedSequence, dt: Dt, like: Tensor) -> tuple[Sequences, Layout]:
        """Return the caller's input and dt as time-major sequences, checked against a parameter of this layer.

        `read`, `prepare` and `run_stack` are the parts of a call, for wrappers with states of another form.
        """
        if like.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"{self.mode} computes in float32 or float64, but its parameters are {like.dtype}; convert the layer "
                "and use autocast for the rest of the model"
            )
        if dt is not None and not (self.time_feature or self.cell_type.takes_dt):
            raise ValueError(no_time(self.mode))
        return read_input(
            self.mode,
            input,
            dt,
            features=self.input_size,
            like=like,
            batch_first=self.batch_first,
            negative=self.negative_dt,
        )

    def prepare(self, sequences: Sequences, states: Tensor, *, given: bool, first: bool) -> Sequences:
        """Return the sequences with dt as the cells take it, after the checks of a first call; see `_prepare_time`."""
        sequences = self._prepare_time(sequences, given=given, first=first)
        if not compiling():
            self._check_first_call(sequences, states)
        return sequences

    def _prepare_time(self, sequences: Sequences, *, given: bool, first: bool) -> Sequences:
        """Return the sequences with dt as the cells take it; a hook for layers with a unit of time.

        Args:
            given: whether the caller gave a dt; otherwise it is 1.
            first: whether the sequences start here, because the caller gave no state.
        """
        if not self.time_feature:
            return sequences
        column = sequences.dt.unsqueeze(-1) if isinstance(sequences.dt, Tensor) else sequences.dt
        return Sequences(with_time(sequences.x, column), 1.0, sequences.lengths)

    def _check_first_call(self, sequences: Sequences, states: Tensor) -> None:
        """Look for silent faults before the first run; a hook for layers that know more. Never called by a compiler."""
        if not self._memory_checked and first_call.values_may_be_checked(sequences.x, states):
            self._memory_checked = True
            first_call.check_memory(self)

    def run_stack(self, sequences: Sequences, scan: Callable[[int, Sequences], Tensor]) -> Tensor:
        """Run all layers and directions over time-major sequences and return the output (T, B, features).

        Args:
            scan: the states (T, B, m) of the cell of an index over sequences in its own direction; called in the order
                of the states.
        """
        x, lengths, index = sequences.x, sequences.lengths, 0
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = nn.functional.dropout(x, self.dropout)
            forward = Sequences(x, sequences.dt, lengths)
            outputs = []
            for reverse in range(2 if self.bidirectional else 1):
                cell = self.cells[index]
                assert isinstance(cell, Cell)
                output = cell.read_out(scan(index, forward.reverse() if reverse else forward))
                outputs.append(forward.flip(output) if reverse else output)
                index += 1
            x = torch.cat(outputs, -1) if self.bidirectional else outputs[0]
        return x

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Advance by one reading, for streams.

        Args:
            x: (B, n), or (n,) unbatched.
            state: (L, B, m) or (L, m), as returned by the previous call or by `forward`; zeros if None.
            dt: time since the previous reading, a number or (B,); 1 if None.

        Returns:
            The output (B, m) and the new state (L, B, m), or both without B.
        """
        sequence, dt, axis = as_sequence(self, x, dt, self.batch_first)
        output, state = self.forward(sequence, state, dt=dt)
        assert isinstance(output, Tensor)
        return output.squeeze(axis), state

    @property
    def negative_dt(self) -> str:
        """The treatment of dt < 0: "error", "clamp" or "allow"; as an input, dt may have any sign."""
        return "allow" if self.time_feature else str(self.cells[0].negative_dt)

    @property
    def all_weights(self) -> list[list[nn.Parameter]]:
        """The parameters of each layer and direction, in the order of the states."""
        return [list(cell.parameters()) for cell in self.cells]

    def flatten_parameters(self) -> None:
        """Do nothing; torch.nn.GRU has this method for cuDNN."""

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
