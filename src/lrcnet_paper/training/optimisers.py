"""Optimisers by name. A new optimiser is one row of `OPTIMISERS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from torch import nn
from torch.optim import Adam, AdamW, Optimizer, RMSprop

from lrcnet.errors import one_of
from lrcnet_paper.tasks import Recipe

Parameters = Iterator[nn.Parameter]


def _adam(parameters: Parameters, recipe: Recipe, rate: float) -> Optimizer:
    # Fused: one call for all tensors saves a tenth of a Neural-ODE iteration.
    return Adam(parameters, lr=rate, eps=recipe.eps, fused=True)


def _adamw(parameters: Parameters, recipe: Recipe, rate: float) -> Optimizer:
    return AdamW(parameters, lr=rate, eps=recipe.eps, weight_decay=recipe.weight_decay, fused=True)


def _rmsprop(parameters: Parameters, recipe: Recipe, rate: float) -> Optimizer:
    # RMSprop divides by sqrt(mean square) + eps, in torch as in the authors' framework; its rho is torch's alpha.
    return RMSprop(parameters, lr=rate, alpha=0.9 if recipe.rho is None else recipe.rho, eps=recipe.eps)


OPTIMISERS: Mapping[str, Callable[[Parameters, Recipe, float], Optimizer]] = MappingProxyType(
    {"adam": _adam, "adamw": _adamw, "rmsprop": _rmsprop}
)
"""Name -> function of (parameters, recipe, learning rate) that makes the optimiser."""


def make_optimiser(module: nn.Module, recipe: Recipe, learning_rate: float) -> Optimizer:
    """Make the recipe's optimiser for a module's parameters.

    Raises:
        ValueError: if the recipe names an unknown optimiser; the message lists the valid ones.
    """
    return OPTIMISERS[one_of("optimizer", recipe.optimizer, OPTIMISERS)](module.parameters(), recipe, learning_rate)
