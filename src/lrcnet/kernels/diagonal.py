"""The loops over time of a diagonal LRC as torch.library operators: schema, implementation by device, fake, autograd.

    s_i = sigmoid(a_i h_i + b_i),  f_i = f'_i + g_i s_i,  u_i = u'_i + k_i s_i,  w_i = w'_i + o_i h_i
    dh_i/dt = eps(w_i) (-sigmoid(f_i) h_i + tanh(u_i) e_l_i)

The inputs' parts f', u', w' come as terms of all steps, two planes side by side. Mixed: the planes are p and w', and
f' = g_l + g_in sigmoid(p), u' = g_l + k_in sigmoid(p). Otherwise they are f' and u', and w' is a number per unit.

Axes: T time, B batch, m hidden units, R letters.
"""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from lrcnet.circuit import Switches
from lrcnet.kernels.operators import ONCE
from lrcnet.kernels.problem import IS_DOUBLE, check_optional, check_switches, import_once
from lrcnet.tracing import resolve
from lrcnet.value_checks import refuse_freed

ROWS = ("a", "b", "g", "k", "o", "e_l", "k_eps", "g_in", "k_in", "g_l", "w_in")
"""The letters of a unit, in the order of the rows that the compiled library reads."""
MOST_UNFOLDS = 64
IMPLEMENTATIONS = {"cpu": "lrcnet.kernels.native_diagonal", "cuda": "lrcnet.kernels.triton.diagonal"}
"""Device type -> the module with its `scan` and `scan_backward`, imported when it is first used."""


def scan(terms: Tensor, h: Tensor, dt: float | Tensor, letters: Tensor, switches: Switches, *, mixed: bool) -> Tensor:
    """Return all states (T, B, m), with gradients for every tensor.

    Args:
        terms: (T, B, 2 m).
        h: first states (B, m).
        dt: a number, or (T, B).
        letters: (R, m), see `ROWS`; a letter that the network does not have is 0.
        switches: elastance, solver, unfoldings and batch_first count.
    """
    gaps, value = (dt, 1.0) if isinstance(dt, Tensor) else (None, float(dt))
    if gaps is not None and not gaps.dim():
        gaps = gaps.detach().expand(terms.shape[:2])
    states: Tensor = torch.ops.lrcnet.diagonal_scan(
        *(terms, h, gaps, letters, value, mixed, switches.elastance, switches.solver, switches.unfolds),
        switches.batch_first,
    )
    return states


@torch.library.custom_op("lrcnet::diagonal_scan", mutates_args=(), device_types=("cpu", "cuda"))
def _scan(
    terms: Tensor,
    h: Tensor,
    dt: Tensor | None,
    letters: Tensor,
    dt_value: float,
    mixed: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
) -> Tensor:
    _check(terms, h, dt, letters, Switches(True, elastance, solver, unfolds), {})
    states: Tensor = _implementation(terms).scan(
        terms, h, dt, letters, dt_value, mixed, elastance, solver, unfolds, batch_first
    )
    return states


@_scan.register_fake
def _(terms: Tensor, h: Tensor, *rest: Any) -> Tensor:
    return new_sequence(terms, h.shape[1], rest[-1])


@torch.library.custom_op("lrcnet::diagonal_scan_backward", mutates_args=(), device_types=("cpu", "cuda"))
def _scan_backward(
    grad: Tensor,
    states: Tensor,
    terms: Tensor,
    h: Tensor,
    dt: Tensor | None,
    letters: Tensor,
    dt_value: float,
    mixed: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    want_dt: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _check(terms, h, dt, letters, Switches(True, elastance, solver, unfolds), {"grad": grad, "states": states})
    states = side_by_side(states)
    gradients: tuple[Tensor, Tensor, Tensor, Tensor] = _implementation(terms).scan_backward(
        grad, states, terms, h, dt, letters, dt_value, mixed, elastance, solver, unfolds, batch_first, want_dt
    )
    return gradients


@_scan_backward.register_fake
def _(grad: Tensor, states: Tensor, terms: Tensor, h: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    *_, batch_first, want_dt = rest
    of_dt = terms.new_empty(terms.shape[:2] if want_dt else 0)
    letters = rest[1]
    return (
        new_sequence(terms, terms.shape[2], batch_first),
        h.new_empty(h.shape),
        of_dt,
        letters.new_empty(letters.shape),
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[:4])
    ctx.numbers = inputs[4:]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    states, *tensors = ctx.saved_tensors
    want_dt = ctx.needs_input_grad[2]
    gradients = torch.ops.lrcnet.diagonal_scan_backward(grad, states, *tensors, *ctx.numbers, want_dt)
    wanted = [g if need else None for g, need in zip(gradients, ctx.needs_input_grad, strict=False)]
    return (*wanted, *[None] * len(ctx.numbers))


def _refuse(ctx: Any, *grads: Tensor) -> None:
    raise RuntimeError(ONCE)


_scan.register_autograd(_differentiate, setup_context=_keep)
_scan_backward.register_autograd(_refuse)


def new_sequence(terms: Tensor, width: int, batch_first: bool) -> Tensor:
    """Return room for (T, B, width), the samples together in memory if batch_first."""
    steps, batch = terms.shape[:2]
    if batch_first:
        return terms.new_empty(batch, steps, width).transpose(0, 1)
    return terms.new_empty(steps, batch, width)


def side_by_side(states: Tensor) -> Tensor:
    """Return saved states as a kernel wrote them.

    A hook on saved tensors may return equal numbers with other strides, even several at one address.
    """
    states = resolve(states)
    return states if states.is_contiguous() or states.transpose(0, 1).is_contiguous() else states.contiguous()


def with_unit_stride(values: Tensor) -> Tensor:
    """Return (T, B, width) whose last axis lies together in memory and whose strides are not negative."""
    values = resolve(values)
    return values if values.stride(2) == 1 or values.shape[2] == 1 else values.contiguous()


def _implementation(terms: Tensor) -> ModuleType:
    return import_once(IMPLEMENTATIONS[terms.device.type])


def _check(
    terms: Tensor,
    h: Tensor,
    dt: Tensor | None,
    letters: Tensor,
    switches: Switches,
    of_states: dict[str, Tensor],
) -> None:
    """Raise a ValueError for unknown switches, and for tensors that do not fit the terms or have no memory."""
    check_sequence("the terms", terms, switches)
    steps, batch, both = terms.shape
    # An odd number of terms has no two planes; the shape below is then one that the terms do not have.
    check_optional("the terms", terms, (steps, batch, 2 * (both // 2)), terms)
    check_scan(terms, both // 2, h, dt, letters, of_states)


def check_sequence(name: str, given: Tensor, switches: Switches) -> None:
    """Raise a ValueError for unknown switches, and for a sequence that no kernel can read."""
    check_switches(switches)
    if given.dim() != 3 or given.dtype not in IS_DOUBLE or given.device.type not in IMPLEMENTATIONS:
        raise ValueError(
            f"{name} must have 3 dimensions and be float32 or float64 on the CPU, but have shape "
            f"{tuple(given.shape)} and are {given.dtype} on {given.device}; convert the input and the network"
        )
    refuse_freed(name, given)


def check_scan(
    like: Tensor, units: int, h: Tensor, dt: Tensor | None, letters: Tensor, of_states: dict[str, Tensor]
) -> None:
    """Raise a ValueError for tensors that do not fit a sequence (T, B, ...) or have no memory."""
    steps, batch = like.shape[:2]
    check_optional("h", h, (batch, units), like)
    check_optional("letters", letters, (len(ROWS), units), like)
    check_optional("dt", dt, (steps, batch), like)
    for name, tensor in of_states.items():
        check_optional(name, tensor, (steps, batch, units), like)
    for name, given in {"h": h, "letters": letters, "dt": dt, **of_states}.items():
        if given is not None:
            refuse_freed(name, given)
