"""The minimal gated unit over a whole sequence as one function with its gradient, in few operations per step.

`MGUCell.next_state` is the specification; this is the same computation, written to be fast.
Axes: T time, B batch, n inputs, m hidden units.

    f = sigma(W_f x + U_f h + b_f), c = tanh(W_c x + U_c (f h) + b_c), h' = (1 - f) h + f c
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lrcnet.tracing import (
    are_ordinary,
    compiling,
    forward_mode_active,
    is_batch_of_gradients,
    jit_tracing,
    transform_active,
)

Step = Callable[[Tensor, Tensor, Tensor], Tensor]
# x, h, weight_ih, weight_hh, bias
Inputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]

# Numbers per (steps, B, m) array of the backward pass: its ten arrays then stay in the cache between operations.
_BLOCK = 1 << 17


def serves(*tensors: Tensor | None) -> bool:
    """Whether `scan` may be called now: tracers, transforms and tensor subclasses need the plain loop."""
    if compiling() or jit_tracing() or transform_active() or forward_mode_active():
        return False
    return are_ordinary(*tensors)


def scan(
    step: Step,
    x: Tensor,
    h: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None,
    *,
    batch_major: bool = False,
) -> Tensor:
    """Return all states (T, B, m) of a sequence x (T, B, n) with T >= 1, from h (B, m).

    Args:
        step: h' as a function of the input's terms (B, 2 m), h and weight_hh; derivatives of the gradient go through
            it.
        weight_ih, weight_hh, bias: (2 m, n), (2 m, m) and (2 m), the rows of f first.
        batch_major: whether the samples of the answer lie together in memory.
    """
    states: Tensor = _Scan.apply(step, batch_major, x, h, weight_ih, weight_hh, bias)  # type: ignore[no-untyped-call]
    return states


class _Scan(torch.autograd.Function):
    """States forward, one backward sweep; where the gradient itself is differentiated, the plain loop runs again."""

    @staticmethod
    def forward(
        ctx: Any,
        step: Step,
        batch_major: bool,
        x: Tensor,
        h: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias: Tensor | None,
    ) -> Tensor:
        steps, batch, m = x.shape[0], *h.shape
        readings = x.reshape(steps * batch, x.shape[2])

        def contribution(rows: slice) -> Tensor:
            """Return the inputs' terms of one gate at all steps; the gate's values then take their place."""
            weight = weight_ih[rows].t()
            product = readings @ weight if bias is None else torch.addmm(bias[rows], readings, weight)
            return product.view(steps, batch, m)

        forget, candidate = contribution(slice(0, m)), contribution(slice(m, None))
        into_forget, into_candidate, passed = weight_hh[:m].t(), weight_hh[m:].t(), torch.empty_like(h)
        states = x.new_empty(batch, steps, m).transpose(0, 1) if batch_major else x.new_empty(steps, batch, m)
        before = h
        for f, c, after in zip(forget.unbind(), candidate.unbind(), states.unbind(), strict=True):
            f.addmm_(before, into_forget).sigmoid_()
            torch.mul(f, before, out=passed)
            c.addmm_(passed, into_candidate).tanh_()
            torch.lerp(before, c, f, out=after)
            before = after
        ctx.step = step
        ctx.save_for_backward(x, h, weight_ih, weight_hh, bias, forget, candidate, states)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, kept, needs = ctx.saved_tensors[:5], ctx.saved_tensors[5:], ctx.needs_input_grad[2:]
        if torch.is_grad_enabled() or transform_active() or is_batch_of_gradients(grads[0]):
            return (None, None, *_differentiable_gradients(ctx.step, inputs, needs, grads[0]))
        return (None, None, *_gradients(inputs, kept, needs, grads[0]))


def _gradients(
    inputs: Inputs, kept: tuple[Tensor, ...], needs: tuple[bool, ...], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, h, weight_ih, weight_hh and bias, those that are needed.

    With z_f and z_c the arguments of the gates, s = f h, and g the gradient of h':

        dz_c = g f (1 - c^2), ds = U_c^T dz_c, dz_f = (g (c - h) + ds h) f (1 - f), dh = g (1 - f) + ds f + U_f^T dz_f

    All factors of g and ds are known beforehand: they are computed for a block of steps at once, so that a step is left
    with two matrix products and three more operations.
    """
    x, h, weight_ih, weight_hh, _ = inputs
    forget, candidate, states = kept
    (steps, batch, m), n = states.shape, x.shape[2]
    from_forget, from_candidate = weight_hh[:m], weight_hh[m:]
    grad_x = x.new_empty(steps, batch, n) if needs[0] else None
    grad_ih = weight_ih.new_zeros(weight_ih.shape) if needs[2] else None
    grad_hh = weight_hh.new_zeros(weight_hh.shape) if needs[3] else None
    grad_bias = weight_hh.new_zeros(2 * m) if needs[4] else None

    length = min(steps, max(1, _BLOCK // max(1, batch * m)))
    of_g, of_ds, results_of_block = (x.new_empty(planes, length, batch, m) for planes in (3, 2, 3))
    # Views of single steps are made once, for they cost about as much as the arithmetic of a small layer.
    views = [
        *zip(
            of_g.unbind(1),
            of_ds.unbind(1),
            results_of_block.unbind(1),
            results_of_block[1:].unbind(1),
            *results_of_block,
            strict=True,
        )
    ]
    ds, g = torch.empty_like(h), torch.zeros_like(h)
    for stop in range(steps, 0, -length):
        start = max(0, stop - length)
        block, size = slice(start, stop), stop - start
        f, c = forget[block], candidate[block]
        before = states[start - 1 : stop - 1] if start else torch.cat([h.unsqueeze(0), states[: stop - 1]])
        _fill(of_g[:, :size], of_ds[:, :size], f, c, before)
        for given, view in zip(reversed(grad[block].unbind()), reversed(views[:size]), strict=True):
            factors, factors_of_ds, results, last_two, dz_c, dz_f, rest = view
            g.add_(given)
            torch.mul(g, factors, out=results)
            torch.mm(dz_c, from_candidate, out=ds)
            last_two.addcmul_(ds, factors_of_ds)
            torch.addmm(rest, dz_f, from_forget, out=g)
        # The steps of a block are rows of one matrix product each.
        rows = size * batch
        dz_candidate, dz_forget = (part.reshape(rows, m) for part in results_of_block[:2, :size])
        if grad_x is not None:
            product = torch.mm(dz_forget, weight_ih[:m]).addmm_(dz_candidate, weight_ih[m:])
            grad_x[block] = product.view(size, batch, n)
        if grad_ih is not None:
            readings = x[block].reshape(rows, n)
            grad_ih[:m].addmm_(dz_forget.t(), readings)
            grad_ih[m:].addmm_(dz_candidate.t(), readings)
        if grad_hh is not None:
            grad_hh[:m].addmm_(dz_forget.t(), before.reshape(rows, m))
            grad_hh[m:].addmm_(dz_candidate.t(), (f * before).reshape(rows, m))
        if grad_bias is not None:
            grad_bias[:m].add_(dz_forget.sum(0))
            grad_bias[m:].add_(dz_candidate.sum(0))
    return grad_x, g if needs[1] else None, grad_ih, grad_hh, grad_bias


def _fill(of_g: Tensor, of_ds: Tensor, f: Tensor, c: Tensor, h: Tensor) -> None:
    """Write the factors of g: f (1 - c^2), (c - h) f (1 - f), 1 - f; and of ds: h f (1 - f), f."""
    g_to_candidate, g_to_forget, g_to_before = of_g.unbind()
    ds_to_forget, ds_to_before = of_ds.unbind()
    torch.sub(1, torch.mul(c, c, out=g_to_candidate), out=g_to_candidate).mul_(f)
    torch.sub(1, f, out=g_to_before)
    # Not f - f^2, which would lose the digits of a gate that is nearly open.
    slope = torch.mul(f, g_to_before, out=ds_to_forget)
    torch.sub(c, h, out=g_to_forget).mul_(slope)
    slope.mul_(h)
    ds_to_before.copy_(f)


def _differentiable_gradients(step: Step, inputs: Inputs, needs: tuple[bool, ...], grad: Tensor) -> list[Tensor | None]:
    """Return the same gradients through the plain loop, for second derivatives and for a batch of gradients."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Aliases cut the graph: one input may have been computed from another.
        x, h, weight_ih, weight_hh = aliases = [value.view_as(value) for value in inputs[:4]]
        bias = None if inputs[4] is None else inputs[4].view_as(inputs[4])
        states = []
        for terms in torch.nn.functional.linear(x, weight_ih, bias).unbind():
            h = step(terms, h, weight_hh)
            states.append(h)
        given = [*aliases, *([] if bias is None else [bias])]
        wanted = [alias for alias, need in zip(given, needs, strict=False) if need]
        gradients = iter(torch.autograd.grad(torch.stack(states), wanted, grad, create_graph=again))
    return [next(gradients) if need else None for need in needs]
