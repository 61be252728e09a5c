"""Exact gradients of an explicit roll-out, computed for all of its points at once.

A roll-out of dy/dt = f(y) is sequential, and so is its backward pass: as many tiny graphs as evaluations of the field.
But once the points Y where the field was evaluated are known, one batched evaluation gives all slopes f(Y) and their
Jacobians J, d x d. With the tableau (a, b) of the method, a step of size h from y is

    Y_i = y + h sum_j a_ij f(Y_j)        y' = y + h sum_i b_i f(Y_i)        o = y + sum_i w_i f(Y_i)

where o is a state that the caller asked for: y' itself, or a point within the step. So

    K_i = J_i (I + h sum_j a_ij K_j) = df(Y_i)/dy        dy'/dy = I + h sum_i b_i K_i

for all steps at once, and the only sequential work left is one product of a vector of d numbers with dy'/dy per step.
These products give the gradients of all slopes, and one batched backward pass propagates them to the parameters.

The result is the gradient of the plain loop, not of the continuous adjoint equation. The step sizes of an adaptive
solver are treated as constants. torchdiffeq does the same except for the first step size, through which it
differentiates; that changes gradients by a small part of the solver's own error.

Axes: S steps, s stages, N times, B batch, d state dimensions.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.solvers import DORMAND_PRINCE, SOLVERS, ExplicitRungeKutta, VectorField, dense_weights, solve

# The Jacobians cost a backward pass over d copies of all points, so this pays for small d only.
LARGEST_STATE = 8


class _Steps(NamedTuple):
    """The steps of a roll-out.

    Attributes:
        method: the tableau.
        sizes: (S,), the size h of each step.
        inner: for states that lie within steps, the index of each state's step (N-1,) and the weights w of that step's
            slopes (N-1, s); None if every step ends at a state.
    """

    method: ExplicitRungeKutta
    sizes: Tensor
    inner: tuple[Tensor, Tensor] | None


# The time that fields are given which do not depend on it: a tensor, as elsewhere.
_NO_TIME = torch.zeros(())


def roll_out(solver: str, field: VectorField, y0: Tensor, t: Tensor, **tolerances: float) -> Tensor:
    """Return the same states (N, B, d) as `solve` for dy/dt = field(y), from y0 (B, d) at increasing times t (N,).

    The field must not depend on time, and its value for one sample must not depend on the others. The result can be
    differentiated once.
    """
    if not torch.is_grad_enabled() or len(t) < 2 or not y0.numel():
        return solve(solver, field, y0, t, **tolerances)
    recorder = _RecordingField(field)
    with torch.no_grad():
        states = solve(solver, recorder, y0, t, **tolerances)
        points, steps = recorder.points_and_steps(solver, t)
    slopes, jacobians = _slopes_and_jacobians(field, points)
    attached: Tensor = _AttachGradient.apply(y0, slopes, states, jacobians, steps)  # type: ignore[no-untyped-call]
    return attached


def _slopes_and_jacobians(field: VectorField, points: Tensor) -> tuple[Tensor, Tensor]:
    """Return f(Y) at points (..., d), differentiable with respect to the field's parameters, and df/dY (..., d, d)."""
    size = points.shape[-1]
    # One copy of all points per row of the Jacobian: one pass over many points is faster than several over few.
    copies = points.expand(size, *points.shape).contiguous().requires_grad_()
    slopes = field(_NO_TIME, copies.flatten(0, -2)).view_as(copies)
    units = torch.eye(size, dtype=points.dtype, device=points.device)
    units = units.view(size, *[1] * (points.dim() - 1), size).expand_as(copies)
    # A constant field does not depend on the points; `materialize_grads` then gives zeros.
    (rows,) = torch.autograd.grad(slopes, copies, units, retain_graph=True, materialize_grads=True)
    return slopes[0], rows.movedim(0, -2)


class _RecordingField:
    """A field that records where it is evaluated and, through torchdiffeq's callback, the accepted adaptive steps."""

    def __init__(self, field: VectorField) -> None:
        self.field = field
        self.points: list[Tensor] = []
        self.accepted: list[tuple[Tensor, Tensor, Tensor]] = []

    def __call__(self, t: Any, y: Tensor) -> Tensor:
        self.points.append(y)
        return self.field(_NO_TIME, y)

    def callback_accept_step(self, start: Tensor, y: Tensor, size: Tensor) -> None:
        # The slope at y is the last slope of the previous step, so this step evaluated only its later stages.
        later = self.points[1 - len(DORMAND_PRINCE.weights) :]
        self.accepted.append((start, size, torch.stack([y, *later])))

    def points_and_steps(self, solver: str, t: Tensor) -> tuple[Tensor, _Steps]:
        """Return all recorded points (S, s, B, d) and the steps."""
        method = SOLVERS[solver]
        if isinstance(method, ExplicitRungeKutta):
            points = torch.stack(self.points).view(len(t) - 1, -1, *self.points[0].shape)
            return points, _Steps(method, t.diff().to(points.dtype), None)
        starts, sizes, points = (torch.stack(column) for column in zip(*self.accepted, strict=True))
        times = t[1:].to(starts.dtype)
        # A time belongs to the first step that ends at or after it, as in torchdiffeq.
        step = torch.searchsorted(starts + sizes, times.contiguous()).clamp(max=len(starts) - 1)
        weights = sizes[step, None] * dense_weights((times - starts[step]) / sizes[step])
        dtype = points.dtype
        return points, _Steps(DORMAND_PRINCE, sizes.to(dtype), (step, weights.to(dtype)))


class _AttachGradient(torch.autograd.Function):
    """The states as a function of y0 and of all slopes (S, s, B, d), given their Jacobians (S, s, B, d, d)."""

    @staticmethod
    def forward(ctx: Any, y0: Tensor, slopes: Tensor, states: Tensor, jacobians: Tensor, steps: _Steps) -> Tensor:
        ctx.save_for_backward(jacobians)
        ctx.steps = steps
        return states.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        (jacobians,) = ctx.saved_tensors
        method, sizes, inner = ctx.steps
        first, later = gradients[0][0], gradients[0][1:]
        weights = sizes.view(-1, 1) * sizes.new_tensor(method.weights)
        tangents = _tangents(method, sizes, jacobians)
        identity = torch.eye(jacobians.shape[-1], dtype=jacobians.dtype, device=jacobians.device)
        step_jacobians = identity + (weights[..., None, None, None] * tangents).sum(1)
        if inner is None:
            grad_ends = _carry_back(step_jacobians, later)
            grad_slopes = weights[..., None, None] * grad_ends.unsqueeze(1)
            grad_starts = None
        else:
            step, inner_weights = inner
            grad_slopes = torch.zeros_like(jacobians[..., 0])
            grad_slopes.index_add_(0, step, inner_weights[..., None, None] * later.unsqueeze(1))
            grad_starts = (tangents.mT @ grad_slopes.unsqueeze(-1)).sum(1).squeeze(-1)
            grad_starts.index_add_(0, step, later)
            grad_ends = _carry_back(step_jacobians, torch.cat([grad_starts[1:], torch.zeros_like(grad_starts[:1])]))
            grad_slopes += weights[..., None, None] * grad_ends.unsqueeze(1)
        grad_y0 = torch.baddbmm(first.unsqueeze(-2), grad_ends[0].unsqueeze(-2), step_jacobians[0]).squeeze(-2)
        if grad_starts is not None:
            grad_y0 = grad_y0 + grad_starts[0]
        _backpropagate_stages(method, sizes, jacobians, grad_slopes)
        return grad_y0, grad_slopes, None, None, None


def _carry_back(step_jacobians: Tensor, direct: Tensor) -> Tensor:
    """Sum the gradients that reach the end of each step (S, B, d): l_n = direct_n + l_{n+1} dy'/dy."""
    totals = [direct[-1].unsqueeze(-2)]
    jacobians = reversed(step_jacobians[1:].unbind())
    for jacobian, own in zip(jacobians, reversed(direct[:-1].unsqueeze(-2).unbind()), strict=True):
        totals.append(torch.baddbmm(own, totals[-1], jacobian))
    return torch.stack(totals[::-1]).squeeze(-2)


def _tangents(method: ExplicitRungeKutta, sizes: Tensor, jacobians: Tensor) -> Tensor:
    """Return K (S, s, B, d, d), the derivative of each stage's slope by the state at the start of its step."""
    sizes = sizes.view(-1, 1, 1, 1)
    tangents: list[Tensor] = []
    for row, jacobian in zip(method.matrix, jacobians.unbind(1), strict=True):
        own = jacobian
        if any(row):
            before = sum(factor * tangent for factor, tangent in zip(row, tangents, strict=True) if factor)
            own = own + sizes * (jacobian @ before)
        tangents.append(own)
    return torch.stack(tangents, 1)


def _backpropagate_stages(method: ExplicitRungeKutta, sizes: Tensor, jacobians: Tensor, grad_slopes: Tensor) -> None:
    """Add to the gradients of slopes, in place, the part that they pass on through later stages of their step."""
    sizes = sizes.view(-1, 1, 1)
    for stage in reversed(range(1, len(method.matrix))):
        grad_point = sizes * (grad_slopes[:, stage].unsqueeze(-2) @ jacobians[:, stage]).squeeze(-2)
        for earlier, factor in enumerate(method.matrix[stage]):
            if factor:
                grad_slopes[:, earlier].add_(grad_point, alpha=factor)
