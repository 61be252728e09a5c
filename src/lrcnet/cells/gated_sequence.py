"""MGU and the paper's GRU over a whole sequence as one function with its gradient, in few operations per step.

`GatedCell.next_state` is the specification; this is the same computation, written to be fast. The compiled library
runs the loops over time where it can, and torch's operators do elsewhere.
Axes: T time, B batch, n inputs, m hidden units, G gates.

    z = sigma(W_z x + U_z h + b_z), r likewise, c = tanh(W_c x + U_c (r h) + b_c), h' = (1 - z) h + z c

An MGU has one gate, which is both z and r. The rows of the weights are those of z, of r (if G = 2), then of c.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lrcnet.cells import gated_kernel
from lrcnet.kernels.kept_memory import new_kept
from lrcnet.tracing import (
    are_ordinary,
    compiling,
    forward_mode_active,
    is_batch_of_gradients,
    jit_tracing,
    transform_active,
)
from lrcnet.value_checks import forms_of, refuse_changed

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
        step: h' as a function of the input's terms (B, (G + 1) m), h and weight_hh; derivatives of the gradient go
            through it.
        weight_ih, weight_hh, bias: ((G + 1) m, n), ((G + 1) m, m) and ((G + 1) m).
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
            """Return the inputs' terms of some rows at all steps; the gates' values then take their place."""
            weight = weight_ih[rows].t()
            product = new_kept(x, (steps * batch, weight.shape[1])) if x.is_cpu else None
            terms = (
                torch.mm(readings, weight, out=product)
                if bias is None
                else torch.addmm(bias[rows], readings, weight, out=product)
            )
            return terms.view(steps, batch, terms.shape[1])

        gates, candidate = contribution(slice(0, -m)), contribution(slice(-m, None))
        states = x.new_empty(batch, steps, m).transpose(0, 1) if batch_major else x.new_empty(steps, batch, m)
        run = gated_kernel.run_forward if gated_kernel.serves(h) else _advance
        run(gates, candidate, h, weight_hh, states)
        ctx.step = step
        saved = (x, h, weight_ih, weight_hh, bias, gates, candidate, states)
        ctx.save_for_backward(*saved)
        ctx.forms = forms_of(saved)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved, needs = ctx.saved_tensors, ctx.needs_input_grad[2:]
        refuse_changed(saved, ctx.forms)
        inputs, kept = saved[:5], saved[5:]
        if torch.is_grad_enabled() or transform_active() or is_batch_of_gradients(grads[0]):
            return (None, None, *_differentiable_gradients(ctx.step, inputs, needs, grads[0]))
        # A backward pass inside autocast would compute some of the products, but not all, in half precision.
        with torch.autocast(grads[0].device.type, enabled=False):
            return (None, None, *_gradients(inputs, kept, needs, grads[0]))


def _advance(gates: Tensor, candidates: Tensor, h: Tensor, weight_hh: Tensor, states: Tensor) -> None:
    """Do what `gated_kernel.run_forward` does, by torch's operators."""
    m = h.shape[1]
    update, reset = gates[..., :m], gates[..., -m:]
    into_gates, into_candidate, passed = weight_hh[:-m].t(), weight_hh[-m:].t(), torch.empty_like(h)
    # Views of single steps are made once, for they cost about as much as the arithmetic of a small layer.
    every_step = (values.unbind() for values in (gates, update, reset, candidates, states))
    for both, z, r, c, after in zip(*every_step, strict=True):
        both.addmm_(h, into_gates).sigmoid_()
        torch.mul(r, h, out=passed)
        c.addmm_(passed, into_candidate).tanh_()
        torch.lerp(h, c, z, out=after)
        h = after


def _gradients(
    inputs: Inputs, kept: tuple[Tensor, ...], needs: tuple[bool, ...], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """Return the gradients of x, h, weight_ih, weight_hh and bias, those that are needed.

    With a_z, a_r and a_c the arguments of the gates, s = r h, and g the gradient of h':

        da_c = g z (1 - c^2), ds = U_c^T da_c, da_z = g (c - h) z (1 - z), da_r = ds h r (1 - r),
        dh = g (1 - z) + ds r + U_z^T da_z + U_r^T da_r

    In an MGU da_z and da_r are one sum.
    """
    x, h, weight_ih, weight_hh, _ = inputs
    gates, candidate, states = kept
    (steps, batch, m), n = states.shape, x.shape[2]
    # Of the candidate first, then of the gates: the order of the planes below.
    parts = [slice(-m, None), *(slice(start, start + m) for start in range(0, gates.shape[2], m))]
    grad_x = x.new_empty(steps, batch, n) if needs[0] else None
    grad_ih = weight_ih.new_zeros(weight_ih.shape) if needs[2] else None
    grad_hh = weight_hh.new_zeros(weight_hh.shape) if needs[3] else None
    grad_bias = weight_hh.new_zeros(weight_hh.shape[0]) if needs[4] else None

    run = gated_kernel.run_backward if gated_kernel.serves(h) else _sweep
    length = min(steps, max(1, _BLOCK // max(1, batch * m)))
    of_arguments, g = x.new_empty(len(parts), length, batch, m), h.new_zeros(h.shape)
    for stop in range(steps, 0, -length):
        start = max(0, stop - length)
        block, size = slice(start, stop), stop - start
        before = states[start - 1 : stop - 1] if start else torch.cat([h.unsqueeze(0), states[: stop - 1]])
        run(gates[block], candidate[block], weight_hh, before, grad[block], of_arguments[:, :size], g)
        # The steps of a block are rows of one matrix product each.
        rows = size * batch
        arguments = [part.reshape(rows, m) for part in of_arguments[:, :size]]
        if grad_x is not None:
            product = torch.mm(arguments[0], weight_ih[parts[0]])
            for argument, part in zip(arguments[1:], parts[1:], strict=True):
                product.addmm_(argument, weight_ih[part])
            grad_x[block] = product.view(size, batch, n)
        readings, states_before = x[block].reshape(rows, n), before.reshape(rows, m)
        passed = (gates[block, :, -m:] * before).reshape(rows, m)
        for index, (argument, part) in enumerate(zip(arguments, parts, strict=True)):
            if grad_ih is not None:
                grad_ih[part].addmm_(argument.t(), readings)
            if grad_hh is not None:
                grad_hh[part].addmm_(argument.t(), states_before if index else passed)
            if grad_bias is not None:
                grad_bias[part].add_(argument.sum(0))
    return grad_x, g if needs[1] else None, grad_ih, grad_hh, grad_bias


def _sweep(
    gates: Tensor, candidates: Tensor, weight_hh: Tensor, before: Tensor, grad: Tensor, of_arguments: Tensor, g: Tensor
) -> None:
    """Do what `gated_kernel.run_backward` does, by torch's operators.

    All factors of g and ds are known beforehand: they are computed for all steps at once, so that a step is left with
    its matrix products and three more operations.
    """
    m = g.shape[1]
    *from_gates, from_candidate = torch.split(weight_hh, m)
    # Planes of the results: those of `of_arguments`, then the part of dh without matrix products.
    planes = len(of_arguments) + 1
    of_g, of_ds, all_results = (g.new_zeros(count, *candidates.shape) for count in (planes, 2, planes))
    _fill(of_g, of_ds, gates[..., :m], gates[..., -m:], candidates, before)
    ds = torch.empty_like(g)
    every_step = [values.unbind() for values in (grad, of_g.transpose(0, 1), of_ds.transpose(0, 1))]
    for given, factors, factors_of_ds, results in zip(
        *(reversed(values) for values in (*every_step, all_results.unbind(1))), strict=True
    ):
        g.add_(given)
        torch.mul(g, factors, out=results)
        torch.mm(results[0], from_candidate, out=ds)
        results[-2:].addcmul_(ds, factors_of_ds)
        torch.addmm(results[-1], results[1], from_gates[0], out=g)
        for argument, weight in zip(results[2:-1], from_gates[1:], strict=True):
            g.addmm_(argument, weight)
    of_arguments.copy_(all_results[:-1])


def _fill(of_g: Tensor, of_ds: Tensor, z: Tensor, r: Tensor, c: Tensor, h: Tensor) -> None:
    """Write the factors of g: z (1 - c^2), (c - h) z (1 - z), 1 - z; and of ds: h r (1 - r), r.

    With two gates, the plane of da_r among the factors of g stays 0.
    """
    g_to_candidate, g_to_update, g_to_before = of_g[0], of_g[1], of_g[-1]
    ds_to_reset, ds_to_before = of_ds.unbind()
    torch.sub(1, torch.mul(c, c, out=g_to_candidate), out=g_to_candidate).mul_(z)
    torch.sub(1, z, out=g_to_before)
    # Not z - z^2, which would lose the digits of a gate that is nearly open.
    torch.sub(c, h, out=g_to_update).mul_(torch.mul(z, g_to_before))
    torch.sub(1, r, out=ds_to_reset).mul_(r).mul_(h)
    ds_to_before.copy_(r)


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
