"""The equation once more, transcribed for the tests from the paper, and random networks to run it on."""

import itertools
from typing import Any

import torch
from torch import Tensor

MODELS: list[dict[str, Any]] = [
    {"saturated": saturated, "elastance": elastance, "solver": solver, "unfolds": unfolds}
    for saturated, elastance, solver, unfolds in itertools.product(
        (True, False), ("none", "asymmetric", "symmetric"), ("euler", "hybrid", "exponential"), (1, 3)
    )
]
# Letters in their units. These are applied in the same way in all models, so that every switch once is enough.
MODELS += [
    {"saturated": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1, "scaled": True},
    {"saturated": True, "elastance": "asymmetric", "solver": "exponential", "unfolds": 3, "scaled": True},
    {"saturated": False, "elastance": "none", "solver": "hybrid", "unfolds": 3, "scaled": True},
]


class NonNegative(torch.autograd.Function):
    """max(value, 0), whose gradient passes where it would raise the value."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.save_for_backward(value)
        return value.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors
        return torch.where((value >= 0) | (grad < 0), grad, torch.zeros_like(grad))


def phi(z: Tensor) -> Tensor:
    safe = torch.where(z == 0, torch.ones_like(z), z)
    return torch.where(z.abs() < 1e-9, 1 + z / 2, torch.expm1(safe) / safe)


def states(
    x: Tensor,
    h0: Tensor | None,
    dt: float | Tensor,
    *,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    k: Tensor,
    g_l: Tensor,
    e_l: Tensor,
    o: Tensor | None,
    p: Tensor | None,
    k_eps: Tensor | None,
    input_scale: Tensor | None,
    input_shift: Tensor | None,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    negative_dt: str = "error",
    scaled: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """The states that a backend must return; it must not matter whether it got the letters in their units."""
    if mask is not None:
        a, b, g, k = (torch.where(mask, letter, 0.0) for letter in (a, b, g, k))
        o = None if o is None else torch.where(mask, o, 0.0)
    if batch_first:
        x = x.transpose(0, 1)
        dt = dt.transpose(0, 1) if isinstance(dt, Tensor) and dt.dim() == 2 else dt
    steps, batch, _ = x.shape
    x = x if input_scale is None else x * input_scale
    x = x if input_shift is None else x + input_shift
    g, g_l = NonNegative.apply(g), NonNegative.apply(g_l)
    k_eps = None if k_eps is None else NonNegative.apply(k_eps)
    h = x.new_zeros(batch, e_l.shape[0]) if h0 is None else h0
    found = []
    for t in range(steps):
        d = (dt[t].unsqueeze(-1) if isinstance(dt, Tensor) and dt.dim() else dt) / unfolds
        for _ in range(unfolds):
            y = torch.cat([h, x[t]], -1)
            s = torch.sigmoid(y.unsqueeze(-1) * a + b)
            f, u = (g * s).sum(-2) + g_l, (k * s).sum(-2) + g_l
            forget, update = (torch.sigmoid(f), torch.tanh(u)) if saturated else (f, u)
            c = d
            if elastance != "none":
                w = y @ o + (0 if p is None else p)
                if elastance == "asymmetric":
                    c = d * torch.sigmoid(w)
                else:
                    c = d * (torch.sigmoid(w + k_eps) - torch.sigmoid(w - k_eps))
            if solver == "euler":
                h = h + c * (update * e_l - forget * h)
            elif solver == "hybrid":
                h = (h + c * update * e_l) / (1 + c * forget)
            else:
                h = h + c * phi(-c * forget) * (update * e_l - forget * h)
        found.append(h)
    whole = torch.stack(found) if found else x.new_zeros(0, batch, e_l.shape[0])
    return whole.transpose(0, 1).contiguous() if batch_first else whole


def network(
    n: int,
    m: int,
    elastance: str = "symmetric",
    *,
    seed: int = 0,
    maps: bool = True,
    bias: bool = True,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> dict[str, Tensor | None]:
    """Random parameters, some of them below their constraint."""
    make = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=make, dtype=torch.float64)

    rows = n + m
    values: dict[str, Tensor | None] = {
        "a": 2 * scale * normal(rows, m),
        "b": scale * normal(rows, m),
        "g": (normal(rows, m) + 1) / rows**0.5,
        "k": normal(rows, m) / rows**0.5,
        "g_l": normal(m).abs() - 0.1,
        "e_l": normal(m),
        "o": normal(rows, m) / rows**0.5 if elastance != "none" else None,
        "p": normal(m) if elastance != "none" and bias else None,
        "k_eps": normal(m) + 1 if elastance == "symmetric" else None,
        "input_scale": normal(n) if maps else None,
        "input_shift": normal(n) if maps else None,
    }
    return {name: None if value is None else value.to(dtype) for name, value in values.items()}


def batch_of(
    steps: int,
    batch: int,
    n: int,
    m: int,
    *,
    batch_first: bool = False,
    seed: int = 1,
    dtype: torch.dtype = torch.float64,
) -> tuple[Tensor, Tensor, Tensor]:
    """x, h0 and dt."""
    make = torch.Generator().manual_seed(seed)
    lead = (batch, steps) if batch_first else (steps, batch)
    x = torch.randn(*lead, n, generator=make, dtype=torch.float64)
    h0 = torch.randn(batch, m, generator=make, dtype=torch.float64)
    dt = torch.rand(*lead, generator=make, dtype=torch.float64)
    return x.to(dtype), h0.to(dtype), dt.to(dtype)
