"""Exact gradients of an explicit roll-out, computed for all of its points at once.

A roll-out of dy/dt = f(y) is sequential, and so is its backward pass: as many tiny graphs as evaluations of the field.
But once the points Y where the field was evaluated are known, all slopes f(Y) and their Jacobians J, d x d, are had
from one batched evaluation. With the tableau (a, b) of the method, a step of size h from y is

    Y_i = y + h sum_j a_ij f(Y_j)        y' = y + h sum_i b_i f(Y_i)        o = y + sum_i w_i f(Y_i)

where o are the states that the caller asked for: y' itself, or a point within the step. So

    K_i = J_i (I + h sum_j a_ij K_j) = df(Y_i)/dy        dy'/dy = I + h sum_i b_i K_i

for all steps at once, and what is left to do step after step is a product of a vector of d numbers with dy'/dy. Out
of these come the gradients of all slopes, which one batched backward pass takes on to the parameters.

They are the gradients of the plain loop, not of the continuous adjoint equation. An adaptive solver's step sizes are
taken as given; torchdiffeq does so too but for the first, through whose choice it differentiates, which changes
gradients by a small part of the solver's own error.

Axes: S steps, s stages, N times, B batch, d state dimensions.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.solvers import DORMAND_PRINCE, SOLVERS, ExplicitRungeKutta, VectorField, dense_weights, solve

# The Jacobians cost a backward pass over d copies of all points.
LARGEST_STATE = 8


class _Steps(NamedTuple):
    """What a roll-out did.

    Attributes:
        method: its tableau.
        sizes: (S,).
        inner: of states that lie within steps the step of each (N-1,) and the weights w of its slopes (N-1, s); None
            where every step ends at a state.
    """

    method: ExplicitRungeKutta
    sizes: Tensor
    inner: tuple[Tensor, Tensor] | None


def roll_out(solver: str, field: VectorField, y0: Tensor, t: Tensor, **tolerances: float) -> Tensor:
    """States (N, B, d) of dy/dt = field(y) at the times t (N,), increasing, from y0 (B, d), as `solve` has them.

    The field must not depend on time, nor on other samples of the batch. Differentiable once.
    """
    if not torch.is_grad_enabled() or len(t) < 2 or not y0.numel():
        return solve(solver, field, y0, t, **tolerances)
    watch = _Watch(field)
    with torch.no_grad():
        states = solve(solver, watch, y0, t, **tolerances)
        points, steps = watch.found(solver, t)
    slopes, jacobians = _slopes_and_jacobians(field, points)
    unrolled: Tensor = _Unrolled.apply(y0, slopes, states, jacobians, steps)  # type: ignore[no-untyped-call]
    return unrolled


def _slopes_and_jacobians(field: VectorField, points: Tensor) -> tuple[Tensor, Tensor]:
    """f(Y) at points (..., d), differentiable by the field's parameters, and df/dY (..., d, d)."""
    size = points.shape[-1]
    # A copy of all points for each row of the Jacobian: one backward pass over more points beats several over fewer.
    copies = points.expand(size, *points.shape).contiguous().requires_grad_()
    slopes = field(0.0, copies.flatten(0, -2)).view_as(copies)
    units = torch.eye(size, dtype=points.dtype, device=points.device)
    units = units.view(size, *[1] * (points.dim() - 1), size).expand_as(copies)
    # A field may be constant: then nothing of it depends on the points.
    (rows,) = torch.autograd.grad(slopes, copies, units, retain_graph=True, materialize_grads=True)
    return slopes[0], rows.movedim(0, -2)


class _Watch:
    """The field, noting where it is evaluated and, by torchdiffeq's call, which adaptive steps were accepted."""

    def __init__(self, field: VectorField) -> None:
        self.field = field
        self.points: list[Tensor] = []
        self.accepted: list[tuple[Tensor, Tensor, Tensor]] = []

    def __call__(self, t: Any, y: Tensor) -> Tensor:
        self.points.append(y)
        return self.field(0.0, y)

    def callback_accept_step(self, start: Tensor, y: Tensor, size: Tensor) -> None:
        # The slope at y is the last one of the step before, so only the later stages were evaluated just now.
        later = self.points[1 - len(DORMAND_PRINCE.weights) :]
        self.accepted.append((start, size, torch.stack([y, *later])))

    def found(self, solver: str, t: Tensor) -> tuple[Tensor, _Steps]:
        """All points (S, s, B, d), and the steps."""
        method = SOLVERS[solver]
        if isinstance(method, ExplicitRungeKutta):
            points = torch.stack(self.points).view(len(t) - 1, -1, *self.points[0].shape)
            return points, _Steps(method, t.diff().to(points.dtype), None)
        starts, sizes, points = (torch.stack(column) for column in zip(*self.accepted, strict=True))
        times = t[1:].to(starts.dtype)
        # The first step that ends at or after a time, as torchdiffeq has it.
        step = torch.searchsorted(starts + sizes, times).clamp(max=len(starts) - 1)
        weights = sizes[step, None] * dense_weights((times - starts[step]) / sizes[step])
        dtype = points.dtype
        return points, _Steps(DORMAND_PRINCE, sizes.to(dtype), (step, weights.to(dtype)))


class _Unrolled(torch.autograd.Function):
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
        moves = torch.eye(jacobians.shape[-1], dtype=jacobians.dtype, device=jacobians.device)
        moves = moves + (weights[..., None, None, None] * tangents).sum(1)
        if inner is None:
            ends = _carried_back(moves, later)
            of_slopes = weights[..., None, None] * ends.unsqueeze(1)
            of_starts = None
        else:
            step, inner_weights = inner
            of_slopes = torch.zeros_like(jacobians[..., 0])
            of_slopes.index_add_(0, step, inner_weights[..., None, None] * later.unsqueeze(1))
            of_starts = (tangents.mT @ of_slopes.unsqueeze(-1)).sum(1).squeeze(-1)
            of_starts.index_add_(0, step, later)
            ends = _carried_back(moves, torch.cat([of_starts[1:], torch.zeros_like(of_starts[:1])]))
            of_slopes += weights[..., None, None] * ends.unsqueeze(1)
        of_y0 = torch.baddbmm(first.unsqueeze(-2), ends[0].unsqueeze(-2), moves[0]).squeeze(-2)
        if of_starts is not None:
            of_y0 = of_y0 + of_starts[0]
        _back_through_stages(method, sizes, jacobians, of_slopes)
        return of_y0, of_slopes, None, None, None


def _carried_back(moves: Tensor, own: Tensor) -> Tensor:
    """What reaches the end of each step (S, B, d) from itself and all later ones: l_n = own_n + l_{n+1} dy'/dy."""
    reached = [own[-1].unsqueeze(-2)]
    for move, here in zip(reversed(moves[1:].unbind()), reversed(own[:-1].unsqueeze(-2).unbind()), strict=True):
        reached.append(torch.baddbmm(here, reached[-1], move))
    return torch.stack(reached[::-1]).squeeze(-2)


def _tangents(method: ExplicitRungeKutta, sizes: Tensor, jacobians: Tensor) -> Tensor:
    """K (S, s, B, d, d): how each stage's slope moves with the state at the start of its step."""
    sizes = sizes.view(-1, 1, 1, 1)
    tangents: list[Tensor] = []
    for row, jacobian in zip(method.matrix, jacobians.unbind(1), strict=True):
        own = jacobian
        if any(row):
            before = sum(factor * tangent for factor, tangent in zip(row, tangents, strict=True) if factor)
            own = own + sizes * (jacobian @ before)
        tangents.append(own)
    return torch.stack(tangents, 1)


def _back_through_stages(method: ExplicitRungeKutta, sizes: Tensor, jacobians: Tensor, of_slopes: Tensor) -> None:
    """Adds to the gradients of slopes, in place, what later stages of their step make of them."""
    sizes = sizes.view(-1, 1, 1)
    for stage in reversed(range(1, len(method.matrix))):
        of_point = sizes * (of_slopes[:, stage].unsqueeze(-2) @ jacobians[:, stage]).squeeze(-2)
        for earlier, factor in enumerate(method.matrix[stage]):
            if factor:
                of_slopes[:, earlier].add_(of_point, alpha=factor)
