"""Exact gradients of an Euler roll-out, computed for all of its points at once.

y_{t+1} = y_t + d_t f(y_t) is sequential, and so is its backward pass: as many tiny graphs as points. But once the
points are known, every slope f(y_t) and its Jacobian J_t, d x d, is had from one batched evaluation of the field. What
is left to do point after point is

    l_t = grad_t + l_{t+1} + d_t l_{t+1} J_t

on vectors of d numbers, and d_t l_{t+1} is then the gradient of all slopes, which one batched backward pass takes on to
the parameters. These are the gradients of the plain loop, not of the continuous adjoint equation.

Axes: N times, B batch, d state dimensions.
"""

from typing import Any

import torch
from torch import Tensor

from lrcnet.solvers import VectorField

# The Jacobians cost d backward passes over the batch of all points.
LARGEST_STATE = 8


def euler_roll_out(field: VectorField, y0: Tensor, t: Tensor) -> Tensor:
    """States (N, B, d) of dy/dt = field(y) by one Euler step per interval of t (N,), from y0 (B, d).

    The field must not depend on time, nor on other samples of the batch. Differentiable once.
    """
    steps = t.diff()
    with torch.no_grad():
        states = [y0]
        for step in steps.tolist():
            states.append(torch.add(states[-1], field(0.0, states[-1]), alpha=step))
        whole = torch.stack(states)
    if not torch.is_grad_enabled() or len(states) == 1:
        return whole
    points = whole[:-1].flatten(0, 1).requires_grad_()
    slopes = field(0.0, points)
    rows = [
        torch.autograd.grad(slopes[:, i].sum(), points, retain_graph=True)[0].view_as(whole[:-1])
        for i in range(slopes.shape[-1])
    ]
    found: Tensor = _Unrolled.apply(y0, slopes, whole, torch.stack(rows, -2), steps)  # type: ignore[no-untyped-call]
    return found


class _Unrolled(torch.autograd.Function):
    """The states as a function of y0 and of all slopes (N-1 * B, d), given their Jacobians (N-1, B, d, d)."""

    @staticmethod
    def forward(ctx: Any, y0: Tensor, slopes: Tensor, states: Tensor, jacobians: Tensor, steps: Tensor) -> Tensor:
        ctx.save_for_backward(jacobians, steps)
        return states.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        jacobians, steps = ctx.saved_tensors
        moves = torch.eye(jacobians.shape[-1], dtype=jacobians.dtype, device=jacobians.device)
        moves = moves + steps.to(jacobians.dtype).view(-1, 1, 1, 1) * jacobians
        by_state = gradients[0].unsqueeze(-2).unbind()
        later = [by_state[-1]]
        for move, own in zip(reversed(moves.unbind()), reversed(by_state[:-1]), strict=True):
            later.append(torch.baddbmm(own, later[-1], move))
        # later[-1] belongs to y0; the others, from last to first, to the states after each step.
        of_slopes = torch.stack(later[:-1]).flip(0).squeeze(-2) * steps.to(jacobians.dtype).view(-1, 1, 1)
        return later[-1].squeeze(-2), of_slopes.flatten(0, 1), None, None, None
