"""A diagonal LRC with the linear map of its inputs as one torch.library operator: lrcnet::diagonal_scan_inputs.

The terms of lrcnet::diagonal_scan are linear in the inputs (or their synapses). A kernel that knows the map computes
the terms of some steps at a time, in the backward pass again, so that they are never in memory for all steps.

Axes: T time, B batch, n inputs, m hidden units, R letters.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet.circuit import Switches
from lrcnet.kernels import native_diagonal_inputs
from lrcnet.kernels.diagonal import check_scan, check_sequence, new_sequence, side_by_side
from lrcnet.kernels.operators import ONCE
from lrcnet.kernels.problem import check_optional
from lrcnet.value_checks import refuse_freed


def scan_inputs(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    h: Tensor,
    dt: float | Tensor,
    letters: Tensor,
    switches: Switches,
    *,
    mixed: bool,
) -> Tensor:
    """Return all states (T, B, m), with gradients for every tensor.

    Args:
        x: (T, B, n), any strides.
        weight, bias: (2 m, n) and (2 m,), from the inputs to the terms.
        h, dt, letters, switches: see `lrcnet.kernels.diagonal.scan`.
    """
    gaps, value = (dt, 1.0) if isinstance(dt, Tensor) else (None, float(dt))
    if gaps is not None and not gaps.dim():
        gaps = gaps.detach().expand(x.shape[:2])
    states: Tensor = torch.ops.lrcnet.diagonal_scan_inputs(
        *(x, weight, bias, h, gaps, letters, value, mixed, switches.elastance, switches.solver, switches.unfolds),
        switches.batch_first,
    )
    return states


def apply_map(x: Tensor, weight: Tensor, bias: Tensor, batch_first: bool) -> Tensor:
    """Return the terms (T, B, 2 m) of inputs (T, B, n)."""
    # In the caller's layout, or the product would copy the inputs.
    if batch_first:
        return functional.linear(x.transpose(0, 1), weight, bias).transpose(0, 1)
    return functional.linear(x, weight, bias)


@torch.library.custom_op("lrcnet::diagonal_scan_inputs", mutates_args=(), device_types=("cpu", "cuda"))
def _scan(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
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
    _check(x, weight, bias, h, dt, letters, Switches(True, elastance, solver, unfolds), {})
    rest = (h, dt, letters, dt_value, mixed, elastance, solver, unfolds, batch_first)
    if x.is_cpu and native_diagonal_inputs.serves(*h.shape):
        return native_diagonal_inputs.scan_inputs(x, weight, bias, *rest)
    states: Tensor = torch.ops.lrcnet.diagonal_scan(apply_map(x, weight, bias, batch_first), *rest)
    return states


@_scan.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, h: Tensor, *rest: Any) -> Tensor:
    return new_sequence(x, h.shape[1], rest[-1])


@torch.library.custom_op("lrcnet::diagonal_scan_inputs_backward", mutates_args=(), device_types=("cpu", "cuda"))
def _scan_backward(
    grad: Tensor,
    states: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    h: Tensor,
    dt: Tensor | None,
    letters: Tensor,
    dt_value: float,
    mixed: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    want_x: bool,
    want_dt: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    switches = Switches(True, elastance, solver, unfolds)
    _check(x, weight, bias, h, dt, letters, switches, {"grad": grad, "states": states})
    rest = (h, dt, letters, dt_value, mixed, elastance, solver, unfolds, batch_first)
    if x.is_cpu and native_diagonal_inputs.serves(*h.shape):
        return native_diagonal_inputs.scan_inputs_backward(
            grad, side_by_side(states), x, weight, bias, *rest, want_x, want_dt
        )
    terms = apply_map(x, weight, bias, batch_first)
    of_terms, *others = torch.ops.lrcnet.diagonal_scan_backward(grad, states, terms, *rest, want_dt)
    if batch_first:
        of_terms, x = of_terms.transpose(0, 1), x.transpose(0, 1)
    of_x = of_terms @ weight if want_x else x.new_empty(0, 0, 0)
    of_x = of_x.transpose(0, 1) if batch_first and want_x else of_x
    flat = of_terms.flatten(0, 1)
    of_h, of_dt, of_letters = others
    return of_x, flat.t() @ x.flatten(0, 1), flat.sum(0), of_h, of_dt, of_letters


@_scan_backward.register_fake
def _(grad: Tensor, states: Tensor, x: Tensor, weight: Tensor, bias: Tensor, h: Tensor, *rest: Any) -> Any:
    *_, batch_first, want_x, want_dt = rest
    like = (weight, bias, h)
    of_x = new_sequence(x, x.shape[2], batch_first) if want_x else x.new_empty(0, 0, 0)
    of_dt, letters = x.new_empty(x.shape[:2] if want_dt else 0), rest[1]
    return (of_x, *(one.new_empty(one.shape) for one in like), of_dt, letters.new_empty(letters.shape))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[:6])
    ctx.numbers = inputs[6:]


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    states, *tensors = ctx.saved_tensors
    needed = ctx.needs_input_grad
    gradients = torch.ops.lrcnet.diagonal_scan_inputs_backward(
        grad, states, *tensors, *ctx.numbers, needed[0], needed[4]
    )
    wanted = [g if need else None for g, need in zip(gradients, needed, strict=False)]
    return (*wanted, *[None] * len(ctx.numbers))


def _refuse(ctx: Any, *grads: Tensor) -> None:
    raise RuntimeError(ONCE)


_scan.register_autograd(_differentiate, setup_context=_keep)
_scan_backward.register_autograd(_refuse)


def _check(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    h: Tensor,
    dt: Tensor | None,
    letters: Tensor,
    switches: Switches,
    of_states: dict[str, Tensor],
) -> None:
    """Raise a ValueError for unknown switches, and for tensors that do not fit the inputs or have no memory."""
    check_sequence("the inputs", x, switches)
    units = letters.shape[-1]
    for name, tensor, shape in (("weight", weight, (2 * units, x.shape[2])), ("bias", bias, (2 * units,))):
        check_optional(name, tensor, shape, x)
        refuse_freed(name, tensor)
    check_scan(x, units, h, dt, letters, of_states)
