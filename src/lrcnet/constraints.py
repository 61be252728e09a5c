"""Sign constraints: parameters that must not be negative, in the forward pass, the backward pass and in storage.

A module that owns such parameters derives from `Constrained` and reads them through `nonnegative`, so that the forward
pass computes with max(value, 0) even if an optimiser stored a negative value. `project_` writes the constrained values
back.
"""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from lrcnet.errors import check_kind

Constraint = Literal["clamp", "softplus"]
CONSTRAINTS: tuple[str, ...] = get_args(Constraint)


class _Clamp(torch.autograd.Function):
    """max(value, 0), but a negative value still receives the gradients that would increase it."""

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
        # Descent moves against the gradient, so a negative gradient increases the value. Without this exception, a
        # parameter that a plain training loop pushed below zero would stay there for ever.
        return torch.where((value >= 0) | (gradient < 0), gradient, torch.zeros_like(gradient))


def nonnegative(raw: Tensor, constraint: str) -> Tensor:
    """Return the value >= 0 that a raw parameter represents."""
    if constraint == "softplus":
        return functional.softplus(raw)
    clamped: Tensor = _Clamp.apply(raw)  # type: ignore[no-untyped-call]
    return clamped


def raw_from_value(value: Tensor, constraint: str) -> Tensor:
    """Return the raw parameter that represents a value >= 0; under softplus, 0 becomes the smallest normal number."""
    if constraint == "clamp":
        return value
    value = value.clamp(min=torch.finfo(value.dtype).tiny)
    # log(expm1(v)) = v + log(1 - exp(-v)): exact for large v, where expm1 overflows.
    return value + torch.log(-torch.expm1(-value))


class Constrained(nn.Module):
    """A module with parameters that must not be negative; `nonnegative_parameters` has their names."""

    constraint: str = "clamp"
    nonnegative_parameters: tuple[str, ...] = ()


@torch.no_grad()
def project_(module: nn.Module) -> nn.Module:
    """Set every constrained parameter of a module to its nearest allowed value, in place; returns the module.

    The forward pass uses the constrained values in any case; this keeps the stored values from drifting away. Call it
    after each optimiser step.

    >>> layer = lrcnet.LRCU(3, 5)
    >>> optimiser = torch.optim.Adam(layer.parameters())
    >>> layer(torch.randn(7, 2, 3))[0].sum().backward()
    >>> optimiser.step()
    >>> _ = lrcnet.project_(layer)
    """
    check_kind("module", module, nn.Module, "a module")
    for part in module.modules():
        if isinstance(part, Constrained) and part.constraint == "clamp":
            for name in part.nonnegative_parameters:
                getattr(part, name).clamp_(min=0)
    return module
