"""One answer for a whole sequence of numbers or of tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lrcnet.models.head import dense

EMBEDDING_RANGE = 0.05


class Classifier(nn.Module):
    """A recurrent layer and a linear read-out of its last output; tokens are embedded first.

    Args:
        layer: batch-first, called as layer(x, dt=dt) -> (output, state).
        width: features of the layer's output.
        classes: logits.
        vocabulary: number of tokens, 0 where inputs are numbers.
        embedding: features of a token; the layer's input size. Padding is a token like any other: no mask.

    >>> Classifier(lrcnet.LRCU(8, 5, batch_first=True), 5, 1, vocabulary=20, embedding=8)(torch.tensor([[0, 3]])).shape
    torch.Size([1, 1])
    """

    embedding: nn.Embedding | None

    def __init__(self, layer: nn.Module, width: int, classes: int, *, vocabulary: int = 0, embedding: int = 0) -> None:
        super().__init__()
        self.embedding = None
        if vocabulary:
            weight = torch.empty(vocabulary, embedding).uniform_(-EMBEDDING_RANGE, EMBEDDING_RANGE)
            self.embedding = nn.Embedding(vocabulary, embedding, _weight=weight)
        self.layer = layer
        self.head = dense(width, classes)

    def forward(self, x: Tensor, dt: Tensor | None = None) -> Tensor:
        """Logits (batch, classes) of inputs (batch, time, features), or of tokens (batch, time)."""
        if self.embedding is not None:
            x = self.embedding(x)
        output, _ = self.layer(x, dt=dt)
        logits: Tensor = self.head(output[:, -1])
        return logits
