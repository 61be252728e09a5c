"""A label for every step of a sequence."""

from __future__ import annotations

from torch import Tensor, nn

from lrcnet.models.head import dense


class Tagger(nn.Module):
    """A recurrent layer and a linear read-out of each of its outputs.

    Args:
        layer: batch-first, called as layer(x, dt=dt) -> (output, state).
        width: features of the layer's output.
        classes: logits per step.

    >>> Tagger(lrcnet.LRCU(7, 5, batch_first=True), 5, 3)(torch.randn(2, 32, 7)).shape
    torch.Size([2, 32, 3])
    """

    def __init__(self, layer: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        self.layer = layer
        self.head = dense(width, classes)

    def forward(self, x: Tensor, dt: Tensor | None = None) -> Tensor:
        """Logits (batch, time, classes) of inputs (batch, time, features); dt is (batch, time) or None."""
        output, _ = self.layer(x, dt=dt)
        logits: Tensor = self.head(output)
        return logits
