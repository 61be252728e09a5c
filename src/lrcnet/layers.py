"""The named layers, shaped like torch.nn.GRU: replacing the class name in existing code is enough.

Each family repeats torch.nn.GRU's parameters for type checkers only, because Python cannot add keyword options to an
inherited signature; at run time all of them use `RecurrentLayer.__init__`.

Axes: T time, B batch, n inputs, m hidden units, L layers, D directions (2 if bidirectional).
"""

from typing import TYPE_CHECKING, Unpack

import torch

from lrcnet.cells import CTRNNCell, GRUODECell, LRCCell, LRCUCell, LTCCell, MGUCell, ResetBeforeGRUCell, STCCell
from lrcnet.cfc_layers import CfC
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.diagonal import DiagonalLRC
from lrcnet.liquid_layer import LiquidLayer
from lrcnet.options import GatedOptions, ODEOptions
from lrcnet.recurrent_layer import RecurrentLayer
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
    "CfC",
    "DiagonalLRC",
    "GatedLayer",
    "LiquidLayer",
    "ODELayer",
    "RecurrentLayer",
    "ResetBeforeGRU",
]


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


class GatedLayer(RecurrentLayer):
    """A layer of gated cells whose whole sequence is one function; time_feature=True feeds dt as one more input."""

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


class MGU(GatedLayer):
    """Minimal gated unit; time_feature=True feeds dt as one more input.

    >>> output, h_n = lrcnet.MGU(3, 5, time_feature=True)(torch.randn(7, 2, 3), dt=torch.rand(7, 2))
    """

    cell_type = MGUCell


class ResetBeforeGRU(GatedLayer):
    """The GRU of the paper's tables, whose reset gate acts before the matrix product; `GRU` is torch's own.

    >>> output, h_n = lrcnet.ResetBeforeGRU(3, 5)(torch.randn(7, 2, 3))
    """

    cell_type = ResetBeforeGRUCell


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
    "gru-reset-before": ResetBeforeGRU,
    "ctrnn": CTRNN,
    "gru-ode": GRUODE,
    "cfc": CfC,
    "diagonal-lrc": DiagonalLRC,
}
"""Every sequence layer by name."""
