"""Mixed memory: an LSTM's memory beside the state of any cell or layer, for dependencies over long times.

At each step the memory comes first, and the cell goes on from its answer:

    h~, c' = LSTM(x, h, c),    h' = cell(x, h~, dt)

A state in continuous time forgets by its nature; the gradient through c does not vanish.

Axes: T time, B batch, n inputs, m hidden units, L layers, D directions (2 if bidirectional).

Reference: Lechner and Hasani, Learning long-term dependencies in irregularly-sampled time series, 2020.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrcnet.cells import Cell, LSTMCell
from lrcnet.cells.base import scan_of_unknown_length
from lrcnet.cells.gated import check_pair
from lrcnet.recurrent_layer import RecurrentLayer
from lrcnet.saving import Saveable
from lrcnet.sequence import Dt, Sequences, as_sequence, cast_to, initial_state, under_autocast
from lrcnet.tracing import Unscriptable, is_unknown

Pair = tuple[Tensor, Tensor]


def remember(memory: LSTMCell, terms: Tensor, h: Tensor, c: Tensor) -> Pair:
    """Return (h, c), each (B, m), after an LSTM's step, given the input's terms (B, 4 m)."""
    sums = torch.addmm(terms, h, memory.weight_hh.t())
    admit, keep, candidate, show = sums.chunk(4, -1)
    c = torch.sigmoid(keep) * c + torch.sigmoid(admit) * torch.tanh(candidate)
    return torch.sigmoid(show) * torch.tanh(c), c


def input_terms(memory: LSTMCell, x: Tensor) -> Tensor:
    """Return the contribution of inputs x (..., n) to the memory's gates, (..., 4 m)."""
    return nn.functional.linear(x, memory.weight_ih, memory.bias_ih + memory.bias_hh)


def _make_memory(cell: nn.Module) -> LSTMCell:
    like = next(cell.parameters())
    inputs, units = int(cell.input_size), int(cell.hidden_size)  # type: ignore[arg-type]
    return LSTMCell(inputs, units, device=like.device, dtype=like.dtype)


class MixedMemoryCell(Unscriptable, nn.Module):
    """One step of a cell with an LSTM memory: `forward(x, (h, c), dt=None) -> (h, c)`.

    Args:
        cell: any cell of this library, except LSTM's and GRU's.

    >>> cell = lrcnet.MixedMemoryCell(lrcnet.LRCUCell(3, 5))
    >>> h, c = cell(torch.randn(2, 3), dt=0.5)
    """

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        if not isinstance(cell, Cell):
            raise TypeError(
                f"cell must be one of lrcnet's, except LSTM's and GRU's, but is a {type(cell).__name__}; pass e.g. "
                "lrcnet.LRCUCell(3, 5)"
            )
        self.cell = cell
        self.memory = _make_memory(cell)

    @property
    def input_size(self) -> int:
        """The number of inputs n."""
        return int(self.cell.input_size)

    @property
    def hidden_size(self) -> int:
        """The number of units m."""
        return int(self.cell.hidden_size)

    def forward(self, x: Tensor, state: Pair | None = None, dt: float | Tensor | None = None) -> Pair:
        """Advance the state by one input.

        Args:
            x: (B, n), or (n,) unbatched.
            state: a pair (h, c), each (B, m) or (m,); zeros if None.
            dt: elapsed time, as the cell takes it.

        Returns:
            The new pair (h, c).
        """
        check_pair(state)
        h, c = (None, None) if state is None else state
        c = self.cell.in_batch(lambda x, c, dt: c, x, c, dt)
        new_c = c

        def step(x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
            nonlocal new_c
            h, memory = remember(self.memory, input_terms(self.memory, x), h, c if c.dim() == 2 else c.unsqueeze(0))
            new_c = memory.view_as(c)
            return self.cell.stepper(x.unsqueeze(0))(0, h, dt)

        return self.cell.in_batch(step, x, h, dt), new_c

    def reset_parameters(self) -> None:
        """Draw new initial values for the cell and its memory."""
        self.cell.reset_parameters()
        self.memory.reset_parameters()


class MixedMemory(Saveable, Unscriptable, nn.Module):
    """A layer with an LSTM memory beside each of its states; it is called as torch.nn.LSTM is.

    The wrapped layer keeps all its options: dt, packed sequences, stacking, both directions, a unit of time.

    Args:
        layer: a layer of this library, except LSTM and GRU.

    >>> layer = lrcnet.MixedMemory(lrcnet.LRCU(3, 5, batch_first=True))
    >>> output, (h_n, c_n) = layer(torch.randn(2, 7, 3), dt=torch.rand(2, 7))
    >>> output.shape, c_n.shape
    (torch.Size([2, 7, 5]), torch.Size([1, 2, 5]))
    """

    def __init__(self, layer: RecurrentLayer) -> None:
        super().__init__()
        if not isinstance(layer, RecurrentLayer):
            raise TypeError(
                f"layer must be a layer of lrcnet with cells of its own, but is a {type(layer).__name__}; pass e.g. "
                "lrcnet.LRCU(3, 5)"
            )
        self.layer = layer
        self.memories = nn.ModuleList(_make_memory(cell) for cell in layer.cells)

    @property
    def mode(self) -> str:
        """The name of the wrapped layer's model."""
        return self.layer.mode

    @property
    def input_size(self) -> int:
        """The number of inputs n."""
        return self.layer.input_size

    @property
    def hidden_size(self) -> int:
        """The number of units m."""
        return self.layer.hidden_size

    @property
    def num_layers(self) -> int:
        """The number of layers L."""
        return self.layer.num_layers

    @property
    def bidirectional(self) -> bool:
        """Whether there are two directions."""
        return self.layer.bidirectional

    @property
    def batch_first(self) -> bool:
        """Whether the batch is the first axis of input and output."""
        return self.layer.batch_first

    @batch_first.setter
    def batch_first(self, value: bool) -> None:
        self.layer.batch_first = value

    def forward(
        self, input: Tensor | PackedSequence, hx: Pair | None = None, *, dt: Dt = None
    ) -> tuple[Tensor | PackedSequence, Pair]:
        """Run over whole sequences.

        Args:
            input: as of the wrapped layer.
            hx: a pair (h, c) of initial states, each (L*D, B, m), or (L*D, m) unbatched; zeros if None.
            dt: as of the wrapped layer.

        Returns:
            The output of the wrapped layer, and the last states (h_n, c_n).
        """
        check_pair(hx)
        like = next(self.parameters())
        if under_autocast(like):
            with torch.autocast(like.device.type, enabled=False):
                pair = None if hx is None else (cast_to(hx[0], like.dtype), cast_to(hx[1], like.dtype))
                return self._run(cast_to(input, like.dtype), pair, cast_to(dt, like.dtype), like)
        return self._run(input, hx, dt, like)

    def _run(
        self, input: Tensor | PackedSequence, hx: Pair | None, dt: Dt, like: Tensor
    ) -> tuple[Tensor | PackedSequence, Pair]:
        layer = self.layer
        sequences, layout = layer.read(input, dt, like)
        parts = ("hx[0]", None if hx is None else hx[0]), ("hx[1]", None if hx is None else hx[1])
        states = [initial_state(layer, name, part, sequences.x, layout) for name, part in parts]
        sequences = layer.prepare(sequences, states[0], given=dt is not None, first=hx is None)
        last: list[Pair] = []

        def scan(index: int, run: Sequences) -> Tensor:
            start = states[0][index], states[1][index]
            trajectory, memories = self._scan(index, run, *start)
            last.append((run.last_state(trajectory, start[0]), run.last_state(memories, start[1])))
            return trajectory

        output = layer.run_stack(sequences, scan)
        h_n, c_n = (layout.restore_state(torch.stack(part)) for part in zip(*last, strict=True))
        return layout.restore(output, sequences.lengths), (h_n, c_n)

    def _scan(self, index: int, run: Sequences, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states and the memories, each (T, B, m), of one layer and direction from h and c (B, m)."""
        cell, memory = self.layer.cells[index], self.memories[index]
        assert isinstance(cell, Cell)
        assert isinstance(memory, LSTMCell)
        if is_unknown(run.x.shape[0]):
            start = torch.cat([h, c], -1)
            both = scan_of_unknown_length(_MixedStep(cell, memory), run.x, start, run.dt)
            return both[..., : h.shape[-1]], both[..., h.shape[-1] :]
        if not len(run.x):
            return run.x.new_empty(0, *h.shape), run.x.new_empty(0, *c.shape)
        advance = cell.stepper(run.x)
        gaps = run.dt.unsqueeze(-1).unbind() if isinstance(run.dt, Tensor) else None
        states, memories = [], []
        for t, terms in enumerate(input_terms(memory, run.x).unbind()):
            h, c = remember(memory, terms, h, c)
            h = advance(t, h, run.dt if gaps is None else gaps[t])
            states.append(h)
            memories.append(c)
        return torch.stack(states), torch.stack(memories)

    def step(self, x: Tensor, state: Pair | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Pair]:
        """Advance by one reading x (B, n) or (n,); see `RecurrentLayer.step`. The state is a pair (h, c)."""
        sequence, dt, axis = as_sequence(self.layer, x, dt, self.batch_first)
        output, state = self.forward(sequence, state, dt=dt)
        assert isinstance(output, Tensor)
        return output.squeeze(axis), state

    def flatten_parameters(self) -> None:
        """Do nothing; torch.nn.LSTM has this method for cuDNN."""

    def reset_parameters(self) -> None:
        """Draw new initial values for the layer and its memories."""
        self.layer.reset_parameters()
        for memory in self.memories:
            assert isinstance(memory, LSTMCell)
            memory.reset_parameters()

    def __getattr__(self, name: str) -> Any:
        """Look up parameters and modules, and then the attributes of the wrapped layer: bias, dropout, proj_size ..."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "layer":
                raise
            return getattr(self.layer, name)


class _MixedStep(nn.Module):
    """One step as a module, for exporters; its state is h beside c."""

    def __init__(self, cell: Cell, memory: LSTMCell) -> None:
        super().__init__()
        self.cell, self.memory = cell, memory

    def forward(self, x: Tensor, state: Tensor, dt: float | Tensor) -> Tensor:
        h, c = remember(self.memory, input_terms(self.memory, x), *state.chunk(2, -1))
        values = self.cell.values()
        return torch.cat([self.cell.advance(values, self.cell.input_terms(values, x), h, dt), c], -1)
