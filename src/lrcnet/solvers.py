"""One step of each ODE solver: explicit Runge-Kutta as tableaux, two semi-linear steps, a bridge to torchdiffeq.

A recurrent cell gives a solver its right-hand side in the split form dh/dt = drive(h) - decay(h) * h, with the input
held constant, because the hybrid and the exponential step need the two parts. Explicit steps use only the sum, so they
also work for any vector field f(t, y).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from lrcnet.errors import DivergenceError, one_of

SplitField = Callable[[Tensor], tuple[Tensor, Tensor]]
VectorField = Callable[[Any, Tensor], Tensor]
StepSize = float | Tensor
SolverName = Literal["euler", "hybrid", "exponential", "heun", "rk4", "dopri5"]
FieldSolverName = Literal["euler", "heun", "rk4", "dopri5"]


def _derivative(split: SplitField) -> VectorField:
    def field(_: Any, h: Tensor) -> Tensor:
        decay, drive = split(h)
        return torch.addcmul(drive, decay, h, value=-1)

    return field


def _move(y: Tensor, d: StepSize, slope: Tensor) -> Tensor:
    """Compute y + d * slope in one operation."""
    return torch.addcmul(y, d, slope) if isinstance(d, Tensor) else torch.add(y, slope, alpha=d)


@dataclass(frozen=True)
class ExplicitRungeKutta:
    """An explicit Runge-Kutta method by its Butcher tableau: stage i is at y + d * sum_j matrix[i][j] k_j."""

    order: int
    matrix: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if abs(sum(self.weights) - 1) > 1e-12 or [len(row) for row in self.matrix] != list(range(len(self.weights))):
            raise ValueError(f"not an explicit Runge-Kutta tableau: {self.matrix}, {self.weights}")

    @cached_property
    def stability_limit(self) -> float:
        """The largest d * decay for which a step of dy/dt = -decay * y does not grow, to 0.001."""
        for thousandths in range(1, 100_000):
            z = -thousandths / 1000
            slopes: list[float] = []
            for row in self.matrix:
                slopes.append(1 + z * sum(factor * slope for factor, slope in zip(row, slopes, strict=True)))
            growth = 1 + z * sum(weight * slope for weight, slope in zip(self.weights, slopes, strict=True))
            if abs(growth) > 1 + 1e-9:
                return (thousandths - 1) / 1000
        raise AssertionError("every explicit method has a limit")

    def field_step(self, field: VectorField, t: Any, y: Tensor, d: StepSize) -> Tensor:
        """Take one step of size d for dy/dt = field(t, y)."""
        slopes: list[Tensor] = []
        for row in self.matrix:
            stage = y
            for factor, slope in zip(row, slopes, strict=True):
                if factor:
                    stage = _move(stage, d * factor, slope)
            slopes.append(field(t + sum(row) * d, stage))
        for weight, slope in zip(self.weights, slopes, strict=True):
            y = _move(y, d * weight, slope)
        return y

    def step(self, split: SplitField, h: Tensor, d: StepSize) -> Tensor:
        """Take one step of size d, a number or (B, 1), for dh/dt = drive(h) - decay(h) * h."""
        return self.field_step(_derivative(split), 0.0, h, d)


@dataclass(frozen=True)
class Hybrid:
    """Semi-implicit Euler: linear part at the new state, gates at the old state. Stable for every d >= 0."""

    order: int = 1

    def step(self, split: SplitField, h: Tensor, d: StepSize) -> Tensor:
        """Take one step: h <- (h + d drive) / (1 + d decay)."""
        decay, drive = split(h)
        return (h + d * drive) / (1 + d * decay)


@dataclass(frozen=True)
class Exponential:
    """A step that is exact if the gates are frozen, and stable for every d >= 0; first order on the full equation."""

    order: int = 1

    def step(self, split: SplitField, h: Tensor, d: StepSize) -> Tensor:
        """Take one step: h <- h + d phi(-d decay) (drive - decay h), phi(z) = expm1(z) / z; decay may be 0."""
        decay, drive = split(h)
        z = -d * decay
        # Near 0, the gradient of the quotient divides by z squared, which underflows; there, four terms of the series
        # are exact.
        small = z.abs() < 1e-5
        series = 1 + z * (0.5 + z * (1 / 6 + z / 24))
        # The inner `where` keeps infinities of the unused branch out of the gradient.
        quotient = torch.expm1(z) / torch.where(small, torch.ones_like(z), z)
        return h + d * torch.where(small, series, quotient) * (drive - decay * h)


DORMAND_PRINCE = ExplicitRungeKutta(
    5,
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
)
# Shampine's fourth-order value in the middle of the step is y + d * sum_i _MIDDLE[i] k_i.
_MIDDLE = (
    6025192743 / 60171106304,
    0.0,
    51252292925 / 130801643196,
    -2691868925 / 90256659456,
    187940372067 / 3189068634112,
    -1776094331 / 39487288512,
    11237099 / 470086768,
)


def dense_weights(x: Tensor) -> Tensor:
    """Return the weights (N, s) of the slopes for states inside a step of Dormand-Prince.

    At the fractions x (N,) of a step, the states are y + d * sum_i weights[:, i] k_i. This is torchdiffeq's polynomial
    of degree 4 through both ends, with their slopes, and through the middle.
    """
    square, cube, fourth = x**2, x**3, x**4
    end = -5 * square + 14 * cube - 8 * fourth
    middle = 16 * (square - 2 * cube + fourth)
    weights = torch.outer(end, x.new_tensor(DORMAND_PRINCE.weights)) + torch.outer(middle, x.new_tensor(_MIDDLE))
    weights[:, 0] += x - 4 * square + 5 * cube - 2 * fourth
    weights[:, -1] += square - 3 * cube + 2 * fourth
    return weights


MOST_STEPS = 100_000
"""Steps of the adaptive solver between two of the given times; more would look like a program that hangs."""


@dataclass(frozen=True)
class DormandPrince:
    """Adaptive Dormand-Prince 5(4) by torchdiffeq.

    torchdiffeq and torchode took about the same time (18.6 and 17.9 ms for a training iteration of the paper's Neural
    ODE at the paper's tolerances), but torchode also requires a pinned type checker. torchdiffeq has a single time axis
    for the whole batch, so samples with different step sizes integrate d * f over [0, 1].
    """

    order: int = 5
    relative_tolerance: float = 1e-7
    absolute_tolerance: float = 1e-9

    def solve(self, field: VectorField, y: Tensor, t: Tensor, remedy: str) -> Tensor:
        """Return the states (N, *y.shape) at the increasing times t (N,); `remedy` ends the message of a failure."""
        try:
            from torchdiffeq import odeint
        except ImportError as error:
            raise ImportError(
                "solver='dopri5' needs torchdiffeq, which is not installed; run: pip install 'lrcnet[ode]'"
            ) from error
        # torchdiffeq asserts that its step size does not underflow and that its steps are not too many; states that are
        # no longer finite fail it too.
        tolerances = {"rtol": self.relative_tolerance, "atol": self.absolute_tolerance}
        try:
            states: Tensor = odeint(field, y, t, **tolerances, method="dopri5", options={"max_num_steps": MOST_STEPS})
        except AssertionError as error:
            many = str(error).startswith("max_num_steps")
            reason = f"it took {MOST_STEPS} steps between two times, the most that are allowed" if many else str(error)
            raise DivergenceError(
                f"the adaptive solver could not go on ({reason}); the trajectory diverges or is too stiff for it: "
                f"{remedy}"
            ) from error
        return states

    def step(self, split: SplitField, h: Tensor, d: StepSize) -> Tensor:
        """Integrate over a time d, to the tolerances."""
        if h.numel() == 0:
            return h.clone()
        field = _derivative(split)
        # A NaN in the input of one sample must give NaN for that sample only, and must not stop the step-size control
        # of the whole batch.
        finite = field(0.0, h).isfinite().all(-1, keepdim=True)
        start = torch.where(finite, h, torch.zeros_like(h))
        unit = torch.tensor([0.0, 1.0], dtype=h.dtype, device=h.device)
        end = self.solve(
            lambda t, y: torch.where(finite, d * field(t, y), torch.zeros_like(y)),
            start,
            unit,
            "use solver='hybrid' or 'exponential', or smaller steps",
        )[-1]
        return torch.where(finite, end, torch.full_like(end, torch.nan))


Solver = ExplicitRungeKutta | Hybrid | Exponential | DormandPrince

SOLVERS: dict[str, Solver] = {
    "euler": ExplicitRungeKutta(1, ((),), (1.0,)),
    "hybrid": Hybrid(),
    "exponential": Exponential(),
    "heun": ExplicitRungeKutta(2, ((), (1.0,)), (0.5, 0.5)),
    "rk4": ExplicitRungeKutta(4, ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    "dopri5": DormandPrince(),
}
"""Every solver by name."""

FIELD_SOLVERS: tuple[str, ...] = get_args(FieldSolverName)
"""Solvers that do not need the split form, so that they work for any vector field."""

STAGED = tuple(name for name, method in SOLVERS.items() if isinstance(method, ExplicitRungeKutta) and method.order > 1)
"""Solvers with several explicit stages per step."""


def advance(solver: str, split: SplitField, h: Tensor, dt: StepSize, unfolds: int) -> Tensor:
    """Advance h by a time dt, a number or (B, 1), in `unfolds` equal steps of the named solver."""
    method = SOLVERS[solver]
    d = dt / unfolds
    for _ in range(unfolds):
        h = method.step(split, h, d)
    return h


def solve(
    solver: str, field: VectorField, y0: Tensor, t: Tensor, *, relative_tolerance: float, absolute_tolerance: float
) -> Tensor:
    """Solve dy/dt = field(t, y) from y0 (B, d); returns the states (N, B, d) at the times t, (N,) or (N, B).

    A fixed-step solver takes one step per interval of t. The field is given the time as a tensor: a single number for
    t (N,), or (B, 1) for t (N, B).

    Raises:
        ValueError: for a solver that needs the split form, or an unknown solver.
    """
    method = SOLVERS[one_of("the solver of a vector field", solver, FIELD_SOLVERS)]
    if isinstance(method, DormandPrince):
        adaptive = DormandPrince(5, relative_tolerance, absolute_tolerance)
        return adaptive.solve(field, y0, t, _REMEDY) if t.dim() == 1 else _solve_intervals(adaptive, field, y0, t)
    assert isinstance(method, ExplicitRungeKutta)  # every other row of FIELD_SOLVERS
    states = [y0]
    each = t.dim() == 2
    steps: list[Any] = list(t.diff(dim=0).unsqueeze(-1).unbind()) if each else t.diff().tolist()
    for time, step in zip((t.unsqueeze(-1) if each else t).unbind(), steps, strict=False):
        states.append(method.field_step(field, time, states[-1], step))
    return torch.stack(states)


_REMEDY = "use a fixed-step solver such as 'rk4' with substeps, or larger tolerances"


def _solve_intervals(method: DormandPrince, field: VectorField, y0: Tensor, t: Tensor) -> Tensor:
    """Solve from one row of the times t (N, B) to the next, every sample at its own pace: dy/ds = d f over [0, 1]."""
    states = [y0]
    unit = torch.tensor([0.0, 1.0], dtype=t.dtype, device=t.device)
    for start, length in zip(t.unsqueeze(-1).unbind(), t.diff(dim=0).unsqueeze(-1).unbind(), strict=False):

        def scaled(s: Tensor, y: Tensor, start: Tensor = start, length: Tensor = length) -> Tensor:
            return length * field(start + s * length, y)

        states.append(method.solve(scaled, states[-1], unit, _REMEDY)[-1])
    return torch.stack(states)
