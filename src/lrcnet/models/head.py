"""The linear read-out of the recurrent models."""

from __future__ import annotations

from torch import nn


def dense(width: int, outputs: int) -> nn.Linear:
    """A linear layer with the initial values of the authors' one: Glorot-uniform weights, zero bias."""
    layer = nn.Linear(width, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
