"""ncps' LTC and CfC: whole sequences with an optional LSTM memory and projection, in its own layouts.

Axes: T time, B batch, m units, n inputs.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.compat.ncps.torch.cfc_cell import CfCCell, WiredCfCCell
from lrcnet.compat.ncps.torch.ltc_cell import LTCCell
from lrcnet.wirings import FullyConnected, Wiring

State = Tensor | tuple[Tensor, Tensor]


class LSTMCell(nn.Module):
    """ncps' LSTM memory; its forget gate has a bias of 1 in addition to its own."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_map = nn.Linear(input_size, 4 * hidden_size)
        self.recurrent_map = nn.Linear(hidden_size, 4 * hidden_size, bias=False)
        nn.init.xavier_uniform_(self.input_map.weight)
        nn.init.uniform_(self.input_map.bias, -0.1, 0.1)
        nn.init.orthogonal_(self.recurrent_map.weight)

    def forward(self, inputs: Tensor, states: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Advance (h, c), each (B, m), by inputs (B, n)."""
        h, c = states
        candidate, admit, keep, show = (self.input_map(inputs) + self.recurrent_map(h)).chunk(4, 1)
        c = c * torch.sigmoid(keep + 1) + torch.tanh(candidate) * torch.sigmoid(admit)
        return torch.tanh(c) * torch.sigmoid(show), c


class _Sequence(nn.Module):
    """The sequence module that LTC and CfC share."""

    rnn_cell: Any
    batch_first: bool
    return_sequences: bool
    use_mixed: bool

    def _set_up(self, cell: nn.Module, return_sequences: bool, batch_first: bool, mixed_memory: bool) -> None:
        self.batch_first, self.return_sequences, self.use_mixed = batch_first, return_sequences, mixed_memory
        self.rnn_cell = cell
        if mixed_memory:
            self.lstm = LSTMCell(self.input_size, self.state_size)

    input_size: int
    state_size: int

    def read_out(self, states: Tensor) -> Tensor:
        """Return the output of states (..., m)."""
        raise NotImplementedError

    def forward(self, input: Tensor, hx: State | None = None, timespans: Tensor | None = None) -> tuple[Tensor, State]:
        """Run over whole sequences.

        Args:
            input: (B, T, n), or (T, B, n) if not batch_first, or (T, n) unbatched.
            hx: states (B, m), or (m,) unbatched; a pair of them with mixed memory. Zeros if None.
            timespans: the time before each reading, (B, T) or (B, T, 1), in the layout of the input; 1 if None.

        Returns:
            The output of every step, or of the last one without return_sequences, and the last state.
        """
        batched = input.dim() == 3
        x = input.transpose(0, 1) if batched and self.batch_first else input if batched else input.unsqueeze(1)
        dt = self._read_timespans(timespans, x, batched)
        h, c = self._read_state(hx, x, batched)
        states, c = self._run_mixed(x, h, c, dt) if self.use_mixed else (self.rnn_cell.scan(x, h, dt), c)
        last: State = (states[-1], c) if self.use_mixed else states[-1]
        output = self.read_out(states if self.return_sequences else states[-1])
        if batched:
            return output.transpose(0, 1) if self.return_sequences and self.batch_first else output, last
        single: State = (last[0][0], last[1][0]) if isinstance(last, tuple) else last[0]
        return output.squeeze(-2), single

    def _run_mixed(self, x: Tensor, h: Tensor, c: Tensor, dt: float | Tensor) -> tuple[Tensor, Tensor]:
        """Return the states (T, B, m) and the last memory."""
        cell, states = self.rnn_cell, []
        prepared = cell.circuit() if isinstance(cell, LTCCell) else None
        for t, reading in enumerate(x.unbind()):
            h, c = self.lstm(reading, (h, c))
            gap = dt[t : t + 1] if isinstance(dt, Tensor) else dt
            if prepared is not None:
                h = cell.scan(reading.unsqueeze(0), h, gap, prepared)[0]
            else:
                h = cell(reading, h, gap)[1]
            states.append(h)
        return torch.stack(states), c

    def _read_timespans(self, timespans: Tensor | None, x: Tensor, batched: bool) -> float | Tensor:
        if timespans is None:
            return 1.0
        shape = (x.shape[1], x.shape[0]) if self.batch_first and batched else tuple(x.shape[:2])
        if timespans.numel() != shape[0] * shape[1]:
            raise ValueError(
                f"timespans must have one value per reading, that is shape {shape}, but has {tuple(timespans.shape)}"
            )
        gaps = timespans.reshape(shape).to(x)
        return gaps.transpose(0, 1) if self.batch_first and batched else gaps

    def _read_state(self, hx: State | None, x: Tensor, batched: bool) -> tuple[Tensor, Tensor]:
        """Return h and c, each (B, m); c is unused without mixed memory."""
        if hx is None:
            zeros = x.new_zeros(x.shape[1], self.state_size)
            return zeros, zeros
        if self.use_mixed and isinstance(hx, Tensor):
            raise RuntimeError("the state must be a pair (h, c) with mixed_memory=True, but is a tensor; pass both")
        if not self.use_mixed and not isinstance(hx, Tensor):
            raise RuntimeError("the state must be a tensor without mixed_memory, but is a pair; pass h alone")
        h, c = (hx, hx) if isinstance(hx, Tensor) else hx
        if h.dim() != (2 if batched else 1):
            raise RuntimeError(
                f"the state must have {2 if batched else 1} dimension(s), as the input is "
                f"{'batched' if batched else 'not batched'}, but has {h.dim()}; it is (batch, units)"
            )
        return (h, c) if batched else (h.unsqueeze(0), c.unsqueeze(0))


class LTC(_Sequence):
    """A liquid time-constant network with ncps' arguments.

    Args:
        input_size: number of inputs n.
        units: number of units, or a wiring of `lrcnet.wirings`.
        return_sequences: whether to return the output of every step or of the last one only.
        batch_first: whether the batch is the first axis.
        mixed_memory: whether an LSTM memory is beside the state.
        input_mapping, output_mapping, ode_unfolds, epsilon, implicit_param_constraints: as of `LTCCell`.

    >>> from lrcnet.compat.ncps.torch import LTC
    >>> output, state = LTC(3, 5)(torch.randn(2, 7, 3), timespans=torch.rand(2, 7))
    """

    def __init__(
        self,
        input_size: int,
        units: int | Wiring,
        return_sequences: bool = True,
        batch_first: bool = True,
        mixed_memory: bool = False,
        input_mapping: str | None = "affine",
        output_mapping: str | None = "affine",
        ode_unfolds: int = 6,
        epsilon: float = 1e-8,
        implicit_param_constraints: bool = True,
    ) -> None:
        super().__init__()
        self.input_size, self.wiring_or_units = input_size, units
        self._wiring = units if isinstance(units, Wiring) else FullyConnected(units)
        cell = LTCCell(
            self._wiring, input_size, input_mapping, output_mapping, ode_unfolds, epsilon, implicit_param_constraints
        )
        self.state_size = self._wiring.units
        self._set_up(cell, return_sequences, batch_first, mixed_memory)

    def read_out(self, states: Tensor) -> Tensor:
        output: Tensor = self.rnn_cell.map_outputs(states)
        return output

    @property
    def sensory_size(self) -> int:
        """The number of inputs."""
        return int(self.rnn_cell.sensory_size)

    @property
    def motor_size(self) -> int:
        """The number of motor neurons."""
        return int(self.rnn_cell.motor_size)

    @property
    def output_size(self) -> int:
        """The number of features of the output."""
        return self.motor_size

    @property
    def synapse_count(self) -> int:
        """The number of synapses between units."""
        return int(self.rnn_cell.synapse_count)

    @property
    def sensory_synapse_count(self) -> int:
        """The number of synapses from inputs; ncps counts those between units here."""
        return int(self.rnn_cell.sensory_synapse_count)


class CfC(_Sequence):
    """A closed-form continuous-time network with ncps' arguments.

    Args:
        input_size: number of inputs n.
        units: number of units, or a wiring of `lrcnet.wirings`.
        proj_size: number of outputs of a linear layer after the network; none if None.
        return_sequences: whether to return the output of every step or of the last one only.
        batch_first: whether the batch is the first axis.
        mixed_memory: whether an LSTM memory is beside the state.
        mode: "default", "pure" or "no_gate".
        activation: activation of the backbone.
        backbone_units, backbone_layers, backbone_dropout: 128, 1 and 0 if None; an error with a wiring.

    >>> from lrcnet.compat.ncps.torch import CfC
    >>> output, state = CfC(3, 5)(torch.randn(2, 7, 3), timespans=torch.rand(2, 7))
    """

    def __init__(
        self,
        input_size: int,
        units: int | Wiring,
        proj_size: int | None = None,
        return_sequences: bool = True,
        batch_first: bool = True,
        mixed_memory: bool = False,
        mode: str = "default",
        activation: str = "lecun_tanh",
        backbone_units: int | None = None,
        backbone_layers: int | None = None,
        backbone_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.wiring_or_units, self.proj_size = input_size, units, proj_size
        cell: CfCCell | WiredCfCCell
        if isinstance(units, Wiring):
            backbone = {"units": backbone_units, "layers": backbone_layers, "dropout": backbone_dropout}
            for name, given in backbone.items():
                if given is not None:
                    raise ValueError(
                        f"backbone_{name} must be left out with a wiring, whose layers take the place of a backbone, "
                        f"but is {given}"
                    )
            self.wiring = units
            cell = WiredCfCCell(input_size, units, mode)
            self.state_size, self.output_size = cell.state_size, cell.layer_sizes[-1]
        else:
            cell = CfCCell(
                input_size,
                units,
                mode,
                activation,
                128 if backbone_units is None else backbone_units,
                1 if backbone_layers is None else backbone_layers,
                0.0 if backbone_dropout is None else backbone_dropout,
            )
            self.state_size = self.output_size = units
        self._set_up(cell, return_sequences, batch_first, mixed_memory)
        self.fc: nn.Module = nn.Identity() if proj_size is None else nn.Linear(self.output_size, proj_size)

    def read_out(self, states: Tensor) -> Tensor:
        output: Tensor = self.fc(states[..., self.state_size - self.output_size :])
        return output
