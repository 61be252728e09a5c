"""The closed-form continuous-time layers CfC and WiredCfC, shaped like torch.nn.GRU."""

from typing import TYPE_CHECKING, Unpack

import torch

from lrcnet.cells import CfCCell, WiredCfCCell
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.options import CfCOptions, WiredCfCOptions
from lrcnet.wired_layer import WiredLayer


class CfC(ContinuousLayer):
    """Closed-form continuous-time network: no solver, and any dt is stable.

    >>> output, h_n = lrcnet.CfC(3, 5, batch_first=True)(torch.randn(2, 7, 3), dt=torch.rand(2, 7))
    """

    cell_type = CfCCell

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
            **options: Unpack[CfCOptions],
        ) -> None: ...


class WiredCfC(WiredLayer):
    """CfC layers along the layers of a wiring; `h_n` has the units of all of them, the output the motor neurons.

    >>> layer = lrcnet.WiredCfC(3, wiring=lrcnet.wirings.AutoNCP(12, 2))
    >>> output, h_n = layer(torch.randn(7, 2, 3))
    >>> output.shape, h_n.shape
    (torch.Size([7, 2, 2]), torch.Size([1, 2, 12]))
    """

    cell_type = WiredCfCCell

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
            **options: Unpack[WiredCfCOptions],
        ) -> None: ...
