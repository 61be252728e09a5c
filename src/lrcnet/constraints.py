"""Sign constraints: parameters that must stay non-negative, in forward, in backward and at rest.

A module that owns such parameters derives from `Constrained` and reads them through `nonnegative`, so that forward
computes with max(value, 0) whatever an optimiser wrote. `project_` writes those values back.
"""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

Constraint = Literal["clamp", "softplus"]
CONSTRAINTS: tuple[str, ...] = get_args(Constraint)


class _Clamp(torch.autograd.Function):
    """max(value, 0) whose gradient still reaches a negative value when it would raise it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        return value.clamp(min=0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors
        (gradient,) = gradients
        # Descent moves against the gradient: a negative gradient raises the value. Without this a parameter that a
        # plain training loop pushed below zero would stay there for ever.
        return torch.where((value >= 0) | (gradient < 0), gradient, torch.zeros_like(gradient))


def nonnegative(raw: Tensor, constraint: str) -> Tensor:
    """The value >= 0 that a raw parameter stands for."""
    if constraint == "softplus":
        return functional.softplus(raw)
    clamped: Tensor = _Clamp.apply(raw)  # type: ignore[no-untyped-call]
    return clamped


def raw_from_value(value: Tensor, constraint: str) -> Tensor:
    """The raw parameter that stands for a value >= 0; under softplus, 0 becomes the smallest normal number."""
    if constraint == "clamp":
        return value
    value = value.clamp(min=torch.finfo(value.dtype).tiny)
    # log(expm1(v)) = v + log(1 - exp(-v)): exact for large v, where expm1 overflows.
    return value + torch.log(-torch.expm1(-value))


class Constrained(nn.Module):
    """A module some of whose parameters must not be negative: the names are in `nonnegative_parameters`."""

    constraint: str = "clamp"
    nonnegative_parameters: tuple[str, ...] = ()


@torch.no_grad()
def project_(module: nn.Module) -> nn.Module:
    """Write every constrained parameter of a module back into its allowed range, in place; returns the module.

    Forward computes with the constrained values anyway; this keeps the stored ones from drifting away. Call it after
    each optimiser step.

    >>> layer = lrcnet.LRCU(3, 5)
    >>> optimiser = torch.optim.Adam(layer.parameters())
    >>> layer(torch.randn(7, 2, 3))[0].sum().backward()
    >>> optimiser.step()
    >>> _ = lrcnet.project_(layer)
    """
    for part in module.modules():
        if isinstance(part, Constrained) and part.constraint == "clamp":
            for name in part.nonnegative_parameters:
                getattr(part, name).clamp_(min=0)
    return module
