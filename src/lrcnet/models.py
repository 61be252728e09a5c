"""Networks around a recurrent layer: a label for every step, or one answer for a whole sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lrcnet.errors import check_kind, positive_size

EMBEDDING_RANGE = 0.05


def dense(width: int, outputs: int) -> nn.Linear:
    """Return a linear read-out with Glorot-uniform weights and zero bias, as in the authors' release."""
    layer = nn.Linear(positive_size("width", width), positive_size("classes", outputs))
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class Tagger(nn.Module):
    """A recurrent layer and a linear read-out of each of its outputs.

    Args:
        layer: a batch-first layer, called as layer(x, dt=dt) -> (output, state).
        width: number of features of the layer's output.
        classes: number of logits per step.

    >>> Tagger(lrcnet.LRCU(7, 5, batch_first=True), 5, 3)(torch.randn(2, 32, 7)).shape
    torch.Size([2, 32, 3])
    """

    def __init__(self, layer: nn.Module, width: int, classes: int) -> None:
        super().__init__()
        check_kind("layer", layer, nn.Module, "a module")
        self.layer = layer
        self.head = dense(width, classes)

    def forward(self, x: Tensor, dt: Tensor | None = None) -> Tensor:
        """Return logits (batch, time, classes) for inputs (batch, time, features); dt is (batch, time) or None."""
        output, _ = self.layer(x, dt=dt)
        logits: Tensor = self.head(output)
        return logits


class Classifier(nn.Module):
    """A recurrent layer and a linear read-out of its last output; tokens are embedded first.

    Args:
        layer: a batch-first layer, called as layer(x, dt=dt) -> (output, state).
        width: number of features of the layer's output.
        classes: number of logits.
        vocabulary: number of tokens, or 0 if the inputs are numbers.
        embedding: number of features of a token, which is the layer's input size. Padding is a token like any other:
            there is no mask.

    >>> Classifier(lrcnet.LRCU(8, 5, batch_first=True), 5, 1, vocabulary=20, embedding=8)(torch.tensor([[0, 3]])).shape
    torch.Size([1, 1])
    """

    embedding: nn.Embedding | None

    def __init__(self, layer: nn.Module, width: int, classes: int, *, vocabulary: int = 0, embedding: int = 0) -> None:
        super().__init__()
        check_kind("layer", layer, nn.Module, "a module")
        self.embedding = None
        if positive_size("vocabulary", vocabulary, least=0):
            positive_size("embedding", embedding)
            weight = torch.empty(vocabulary, embedding).uniform_(-EMBEDDING_RANGE, EMBEDDING_RANGE)
            self.embedding = nn.Embedding(vocabulary, embedding, _weight=weight)
        self.layer = layer
        self.head = dense(width, classes)

    def forward(self, x: Tensor, dt: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes) for inputs (batch, time, features), or for tokens (batch, time)."""
        if self.embedding is not None:
            x = self.embedding(x)
        output, _ = self.layer(x, dt=dt)
        logits: Tensor = self.head(output[:, -1])
        return logits
