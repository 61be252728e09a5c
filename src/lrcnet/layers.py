"""The named layers, shaped like torch.nn.GRU: replacing the class name in existing code is enough.

Each family repeats torch.nn.GRU's parameters for type checkers only, because Python cannot add keyword options to an
inherited signature; at run time all of them use `RecurrentLayer.__init__`.

Axes: T time, B batch, n inputs, m hidden units, L layers, D directions (2 if bidirectional).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import torch
from torch import Tensor

from lrcnet.cells import CTRNNCell, GRUODECell, LRCCell, LRCUCell, LTCCell, MGUCell, STCCell
from lrcnet.cells.gated import with_time
from lrcnet.cells.liquid import LiquidCell
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.options import GatedOptions, LiquidOptions, ODEOptions
from lrcnet.recurrent_layer import RecurrentLayer
from lrcnet.sequence import under_autocast
from lrcnet.torch_layers import GRU, LSTM

__all__ = [
    "CTRNN",
    "GRUODE",
    "LAYERS",
    "LRC",
    "LRCU",
    "LTC",
    "MGU",
    "STC",
    "LiquidLayer",
    "ODELayer",
    "RecurrentLayer",
]


class LiquidLayer(ContinuousLayer):
    """A layer of liquid cells; their values can be read and loaded in the paper's letters."""

    if TYPE_CHECKING:

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
            **options: Unpack[LiquidOptions],
        ) -> None: ...

    def circuit(self, layer: int = 0, reverse: bool = False) -> dict[str, Tensor | None]:
        """Copy the values that one layer and direction computes with, constraints applied; see `lrcnet.liquid.Circuit`.

        >>> circuit = lrcnet.LRCU(3, 5).circuit()
        >>> circuit["g"].shape, bool((circuit["g"] >= 0).all())
        (torch.Size([8, 5]), True)
        """
        return self._cell(layer, reverse).circuit()

    def load_circuit(self, circuit: Mapping[str, Tensor | None], layer: int = 0, reverse: bool = False) -> None:
        """Load a circuit, whichever parametrisation it came from; the inverse of `circuit`."""
        self._cell(layer, reverse).load_circuit(circuit)

    def step(self, x: Tensor, state: Tensor | None = None, dt: float | Tensor | None = None) -> tuple[Tensor, Tensor]:
        answer = None if torch.is_grad_enabled() else self._stream(x, state, dt)
        return super().step(x, state, dt) if answer is None else answer

    def _stream(self, x: Tensor, state: Tensor | None, dt: float | Tensor | None) -> tuple[Tensor, Tensor] | None:
        """Step a single layer through the kernel's shortest path, without gradient; None if `forward` must do it.

        A stream often has one sample at a time, for which checks and dispatch cost more than the arithmetic. So this
        only tests whether the arguments are valid, and leaves the error message for invalid ones to `forward`.
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
            or not (state is None or (state.shape == expected and state.dtype is x.dtype and state.is_cpu))
            or under_autocast(x)
        ):
            return None
        cell = cells._modules["0"]
        k = cell._parameters["k"]
        if k.dtype is not x.dtype or not k.is_cpu:
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
        if self.time_feature:
            x, size = with_time(x, size), 1.0
        start = x.new_zeros(expected) if state is None else state
        new = cell.stream(x, start, size)
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
    """Minimal gated unit; time_feature=True feeds dt as one more input.

    >>> output, h_n = lrcnet.MGU(3, 5, time_feature=True)(torch.randn(7, 2, 3), dt=torch.rand(7, 2))
    """

    cell_type = MGUCell

    if TYPE_CHECKING:

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
            **options: Unpack[GatedOptions],
        ) -> None: ...


class ODELayer(ContinuousLayer):
    """A layer of cells whose only options are those of their ODE's solver."""

    if TYPE_CHECKING:

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
            **options: Unpack[ODEOptions],
        ) -> None: ...


class CTRNN(ODELayer):
    """Continuous-time RNN; explicit Euler, 6 unfoldings by default.

    >>> output, h_n = lrcnet.CTRNN(3, 5)(torch.randn(7, 2, 3), dt=0.1)
    """

    cell_type = CTRNNCell


class GRUODE(ODELayer):
    """The paper's GRU as an ODE, Eq. 9; one explicit Euler step by default.

    >>> output, h_n = lrcnet.GRUODE(3, 5, solver="rk4")(torch.randn(7, 2, 3))
    """

    cell_type = GRUODECell


LAYERS: dict[str, type[RecurrentLayer] | type[LSTM] | type[GRU]] = {
    "ltc": LTC,
    "stc": STC,
    "lrc": LRC,
    "lrcu": LRCU,
    "mgu": MGU,
    "lstm": LSTM,
    "gru": GRU,
    "ctrnn": CTRNN,
    "gru-ode": GRUODE,
}
"""Every sequence layer by name."""
