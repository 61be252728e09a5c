"""Optimisers and learning rates by name."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import nn, optim

from lrcnet.errors import one_of
from lrcnet_paper.tasks import Recipe
from lrcnet_paper.training.spec import SCHEDULES

OPTIMISERS = ("adam", "adamw", "rmsprop")


def make_optimiser(module: nn.Module, recipe: Recipe, learning_rate: float) -> optim.Optimizer:
    """The recipe's optimiser over a module's parameters.

    RMSprop divides by sqrt(mean square) + eps, in torch as in the authors' framework; its rho is torch's alpha.
    """
    name = one_of("optimizer", recipe.optimizer, OPTIMISERS)
    if name == "rmsprop":
        alpha = 0.9 if recipe.rho is None else recipe.rho
        return optim.RMSprop(module.parameters(), lr=learning_rate, alpha=alpha, eps=recipe.eps)
    if name == "adamw":
        decay = recipe.weight_decay
        return optim.AdamW(module.parameters(), lr=learning_rate, eps=recipe.eps, weight_decay=decay, fused=True)
    # Fused: one call for all tensors, a tenth of a Neural-ODE iteration less.
    return optim.Adam(module.parameters(), lr=learning_rate, eps=recipe.eps, fused=True)


def make_schedule(name: str, learning_rate: float, steps: int) -> Callable[[int], float]:
    """The rate of each step 0 .. steps-1, as a function of its number alone, so that a resumed run has no state.

    >>> rate = make_schedule("cosine", 0.1, 10)
    >>> rate(0), rate(5), rate(10)
    (0.1, 0.05, 0.0)
    """
    if one_of("schedule", name, SCHEDULES) == "constant":
        return lambda step: learning_rate
    return lambda step: learning_rate * (1 + math.cos(math.pi * step / steps)) / 2
