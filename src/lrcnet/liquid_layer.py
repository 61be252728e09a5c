"""Sequence layers of liquid cells: the paper's letters, calibration, the checks of a first call, and shorter paths.

Axes: T time, B batch, n inputs, m hidden units, L layers.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, Unpack

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from lrcnet import first_call, kernels
from lrcnet.calibration import calibrate_cells, set_learnable
from lrcnet.cells.gated import with_time
from lrcnet.cells.liquid import LiquidCell
from lrcnet.errors import check_flag, positive_size
from lrcnet.kernels import Network
from lrcnet.options import LiquidOptions
from lrcnet.sequence import Sequences
from lrcnet.tracing import autocast_active, compiling, dispatcher_needed
from lrcnet.wired_layer import WiredLayer


class LiquidLayer(WiredLayer):
    """A layer of liquid cells; their values can be read and loaded in the paper's letters."""

    _parameters_checked: bool = False
    _input_checked: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            input_size: int,
            hidden_size: int | None = None,
            num_layers: int = 1,
            bias: bool = True,
            batch_first: bool = False,
            dropout: float = 0.0,
            bidirectional: bool = False,
            device: torch.device | str | None = None,
            dtype: torch.dtype | None = None,
            **options: Unpack[LiquidOptions],
        ) -> None: ...

    def circuit(
        self, layer: int = 0, reverse: bool = False, *, reversal_potentials: bool = False
    ) -> dict[str, Tensor | None]:
        """Copy the values that one layer and direction computes with, constraints applied; see `lrcnet.liquid.Circuit`.

        With reversal_potentials they have e = k e_l / g in place of k; `load_circuit` takes either.

        >>> circuit = lrcnet.LRCU(3, 5).circuit()
        >>> circuit["g"].shape, bool((circuit["g"] >= 0).all())
        (torch.Size([8, 5]), True)
        """
        return self._cell(layer, reverse).circuit(reversal_potentials=reversal_potentials)

    def load_circuit(self, circuit: Mapping[str, Tensor | None], layer: int = 0, reverse: bool = False) -> None:
        """Load a circuit, whichever parametrisation it came from; the inverse of `circuit`."""
        self._cell(layer, reverse).load_circuit(circuit)

    def _where_values_are(self) -> str:
        return "its values are the letters of an equation: read them with circuit(), write them with load_circuit()"

    def calibrate(self, x: Tensor | PackedSequence) -> Self:
        """Set the first layer's input map so that its synapses see centred inputs of unit variance; return the layer.

        Per channel, input_scale becomes 1 / std and input_shift -mean / std of the given readings. Call it once before
        training, with a batch that is typical of the training data. The map is fixed from then on (requires_grad is
        False), until `reset_parameters`; the state dict carries it, with an entry `input_map_fixed`.

        Args:
            x: readings in any layout that `forward` takes. NaN stands for a missing value and is ignored; padding
                counts as a reading unless x is packed. A constant channel is centred only, and a channel without any
                value keeps its map.

        Raises:
            ValueError: if the layer has no input map, or x has a wrong shape, no readings or an infinite value.

        >>> layer, pressure = lrcnet.LRCU(1, 5), 1000 + 20 * torch.randn(50, 8, 1)
        >>> output, h_n = layer.calibrate(pressure)(pressure)
        """
        calibrate_cells(self._first_cells(), self.mode, x, self.input_size)
        self._fix_input_map(True)
        return self

    def reset_parameters(self) -> None:
        """Draw new initial values for every cell; an input map that `calibrate` fixed learns again."""
        super().reset_parameters()
        self._fix_input_map(False)

    def _first_cells(self) -> list[LiquidCell]:
        return [self._cell(0, reverse) for reverse in ((False, True) if self.bidirectional else (False,))]

    def _fix_input_map(self, fixed: bool) -> None:
        """Fix the first layer's input map, or let it learn; a buffer keeps the choice in the state dict."""
        cells = self._first_cells()
        set_learnable(cells, not fixed)
        if not fixed:
            self._buffers.pop("input_map_fixed", None)
        elif "input_map_fixed" not in self._buffers:
            self.register_buffer("input_map_fixed", torch.tensor(True, device=cells[0].k.device))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        fixed = f"{prefix}input_map_fixed" in state_dict
        # A dictionary that does not hold this layer leaves it as it is.
        if fixed != ("input_map_fixed" in self._buffers) and f"{prefix}cells.0.input_scale" in state_dict:
            self._fix_input_map(fixed)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _must_check_input(self, x: Tensor) -> bool:
        """Return whether the range of an input (T, B, n) or (B, T, n) is still to be checked."""
        if self._input_checked or not self.training:
            return False
        first, second, channels = x.shape
        return channels > 0 and first * second >= first_call.FEWEST_READINGS

    def _check_first_call(self, sequences: Sequences, states: Tensor) -> None:
        super()._check_first_call(sequences, states)
        check_input = self._must_check_input(sequences.x)
        if self._parameters_checked and not check_input:
            return
        if not first_call.values_may_be_checked(sequences.x, states):
            return
        with torch.no_grad():
            if not self._parameters_checked:
                self._parameters_checked = True
                # A state that starts elsewhere has gradients, because the forget gate acts on it.
                dead = [] if bool(states.any()) else self._find_dead_cells()
                if dead:
                    first_call.warn_of_dead_cells(self.mode, dead)
            if check_input:
                self._input_checked = True
                circuit = self._cell(0, False).values()
                readings = first_call.thin_out(sequences, self.hidden_size * sequences.x.shape[-1])
                first_call.warn_if_out_of_range(self.mode, circuit, readings)

    def _find_dead_cells(self) -> list[str]:
        """Return the places of cells whose state cannot leave zero, such as "layer 1, reverse"."""
        places = [(layer, reverse) for layer in range(self.num_layers) for reverse in range(1 + self.bidirectional)]
        cells = [(layer, reverse, self._cell(layer, bool(reverse))) for layer, reverse in places]
        return [
            f"layer {layer}" + (", reverse" if reverse else "")
            for layer, reverse, cell in cells
            if first_call.is_dead(cell.values(), cell.switches())
        ]

    def _scan_at_once(self, x: Tensor | PackedSequence) -> tuple[Tensor, Tensor] | None:
        """Run sequences with dt = 1 from states of zero by the shortest path; None if the general one must do it.

        For short sequences checks cost more than the arithmetic. So, as in `_stream`, this only tests whether all is as
        it mostly is.
        """
        if compiling() or type(x) is not Tensor or x.dim() != 3 or not x.is_cpu or x.layout is not torch.strided:
            return None
        own = self.__dict__
        cells: dict[str, Any] = own["_modules"]["cells"].__dict__["_modules"]
        if (
            len(cells) != 1
            or x.shape[2] != own["input_size"]
            or own["time_feature"]
            or not (self._memory_checked and self._parameters_checked)
            or self._must_check_input(x)
            or autocast_active()
            or dispatcher_needed()
            or not x.data_ptr()  # empty, freed, or zeros that torch has not written
        ):
            return None
        (cell,) = cells.values()
        network = None if cell.__dict__.get("_recorded") else cell.stream_network()
        if network is None or network.circuit.k.dtype is not x.dtype:
            return None
        backend = kernels.find_for_step(network, x, own["hidden_size"])
        if backend is None:
            return None
        batch_first = own["batch_first"]
        switches = network.switches._replace(batch_first=True) if batch_first else network.switches
        x = x.transpose(0, 1) if batch_first else x
        states, _ = backend.scan(network.circuit, switches, x, None, 1.0)
        output = states.transpose(0, 1) if batch_first else states
        return cell.read_out(output), torch.stack([states[-1]])

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        answer = None if torch.is_grad_enabled() else self._stream(x, state, dt)
        return super().step(x, state, dt) if answer is None else answer

    def _stream(self, x: Tensor, state: Tensor | None, dt: float | Tensor | None) -> tuple[Tensor, Tensor] | None:
        """Step through the kernel's shortest path, without gradient; None if `forward` must do it.

        A stream often has one sample at a time, for which checks and dispatch cost more than the arithmetic. So this
        only tests whether the arguments are valid, and leaves the error message for invalid ones to `forward`.
        """
        if not isinstance(x, Tensor):
            return None
        own = self.__dict__  # By attributes, nn.Module's look-up would be seen in a single step.
        cells: dict[str, Any] = own["_modules"]["cells"].__dict__["_modules"]
        shape, layers, hidden = x.shape, own["num_layers"], own["hidden_size"]
        batched = len(shape) == 2
        expected = (layers, shape[0], hidden) if batched else (layers, hidden)
        if (
            len(cells) != layers  # two directions
            or (layers > 1 and own["dropout"] and own["training"])
            or not (batched or len(shape) == 1)
            or shape[-1] != own["input_size"]
            or not (state is None or (isinstance(state, Tensor) and state.shape == expected))
            or autocast_active()
        ):
            return None
        size = 1.0
        if dt is not None:
            if not isinstance(dt, float):
                return None
            unit = self._buffers["time_unit"]
            size = dt if unit is None else dt / unit.item()
            if self.fill_first_gap and state is None and size == 0:
                size = 1.0
            if not (0 <= size <= self._longest_quick_step):
                return None
        if not batched:
            x = x.unsqueeze(0)
        if own["time_feature"]:
            x, size = with_time(x, size), 1.0
        start = x.new_zeros(expected) if state is None else state
        # The backend checks dtypes and devices: those of the state and of the parameters must be those of x.
        networks: list[Network] = []
        backend = None
        for cell in cells.values():
            network = cell.stream_network()
            # The layer above reads the states themselves, without an output map.
            if network is None or (cell.maps_output and len(networks) < layers - 1):
                return None
            networks.append(network)
            if backend is None or network.switches != networks[0].switches:
                backend = kernels.find_for_step(network, x, hidden)
            if backend is None:
                return None
        assert backend is not None
        new = backend.step_stack(networks, x, start, size)
        output = new.squeeze(0) if layers == 1 else new[-1]  # an index takes longer
        if cell.maps_output or cell.output_size != hidden:
            output = cell.read_out(output)
        return output, new

    def _cell(self, layer: int, reverse: bool) -> LiquidCell:
        positive_size("layer", layer, least=0)
        check_flag("reverse", reverse)
        if layer >= self.num_layers:
            raise ValueError(f"layer must be from 0 to {self.num_layers - 1}, but is {layer}")
        if reverse and not self.bidirectional:
            raise ValueError("reverse=True needs a bidirectional layer, but this one is not; leave reverse out")
        cell = self.cells[layer * (2 if self.bidirectional else 1) + bool(reverse)]
        assert isinstance(cell, LiquidCell)
        return cell
