"""The diagonal LRC as a sequence layer, shaped like torch.nn.GRU: for long sequences."""

from typing import TYPE_CHECKING, Unpack

import torch
from torch import Tensor

from lrcnet.cells.diagonal import DiagonalLRCCell
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.errors import check_flag, positive_size
from lrcnet.options import DiagonalOptions


class DiagonalLRC(ContinuousLayer):
    """LRC units that see their own state and all inputs; one explicit Euler step by default.

    The inputs' part is a matrix product over all steps at once, and a step costs four or five sigmoids per unit, so
    that time and memory grow with the number of units and not with its square. Units exchange information only
    through further layers: stack several (`num_layers`), or use `lrcnet.LrcSSM`.

    >>> layer = lrcnet.DiagonalLRC(3, 5, num_layers=2, batch_first=True)
    >>> output, h_n = layer(torch.randn(2, 1000, 3), dt=torch.rand(2, 1000))
    >>> output.shape, h_n.shape
    (torch.Size([2, 1000, 5]), torch.Size([2, 2, 5]))
    """

    cell_type = DiagonalLRCCell

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
            **options: Unpack[DiagonalOptions],
        ) -> None: ...

    def circuit(self, layer: int = 0, reverse: bool = False) -> dict[str, Tensor]:
        """Copy the letters that one layer and direction computes with, constraints and limits applied.

        >>> circuit = lrcnet.DiagonalLRC(3, 5).circuit()
        >>> circuit["a_u"].shape, bool((circuit["g_x"] >= 0).all())
        (torch.Size([5, 3]), True)
        """
        directions = 2 if self.bidirectional else 1
        if positive_size("layer", layer, least=0) >= self.num_layers:
            raise ValueError(f"layer must be from 0 to {self.num_layers - 1}, but is {layer}")
        if check_flag("reverse", reverse) and directions == 1:
            raise ValueError("reverse=True needs a bidirectional layer, but this one is not; leave reverse out")
        cell = self.cells[layer * directions + reverse]
        assert isinstance(cell, DiagonalLRCCell)
        return cell.circuit()
