"""Neural ODEs: vector fields that can be trained, and their roll-outs.

Axes: B batch, N times, d state dimensions, m hidden units.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from lrcnet.cells import LRCCell, LTCCell, STCCell
from lrcnet.cells.checks import read_number
from lrcnet.constraints import Constraint
from lrcnet.errors import DivergenceError, check_flag, check_kind, describe_kind, one_of, positive_size
from lrcnet.initial_values import Init
from lrcnet.liquid import ELASTANCES, Elastance, Parametrisation
from lrcnet.options import BackendChoice
from lrcnet.parallel_adjoint import LARGEST_STATE, roll_out
from lrcnet.saving import Saveable
from lrcnet.solvers import FIELD_SOLVERS, FieldSolverName, VectorField, solve
from lrcnet.tracing import values_are_readable


class MLPField(Saveable, nn.Module):
    """dy/dt = MLP(y), the paper's baseline: d-32-32-d with tanh.

    Weights start from a normal distribution of scale 0.1 that is cut at two standard deviations, as in the authors'
    program; biases start at 0.

    >>> lrcnet.MLPField(2)(0.0, torch.randn(16, 2)).shape
    torch.Size([16, 2])
    """

    autonomous = True

    def __init__(self, size: int, hidden: tuple[int, ...] = (32, 32)) -> None:
        super().__init__()
        check_kind("hidden", hidden, (tuple, list), "a tuple of sizes")
        sizes = [positive_size("size", size), *(positive_size("hidden", one) for one in hidden), size]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after), nn.Tanh()]
        self.net = nn.Sequential(*layers[:-1])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights from a normal distribution of scale 0.1, cut at 0.2 on both sides; set biases to 0."""
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.1, a=-0.2, b=0.2)
                nn.init.zeros_(layer.bias)

    def bind(self) -> VectorField:
        """Return the field without module calls, which cost as much as the arithmetic of layers this small."""
        layers = [layer.forward for layer in self.net]

        def field(t: Any, y: Tensor) -> Tensor:
            for layer in layers:
                y = layer(y)
            return y

        return field

    def forward(self, t: Any, y: Tensor) -> Tensor:
        """Return dy/dt at states y (B, d); t is ignored."""
        return self.bind()(t, y)


class LRCField(Saveable, nn.Module):
    """dy/dt = W_out LRC'(W_in y + b_in) + b_out: the right-hand side of an LRC between two linear maps.

    LRC' is Eq. 3 without input; its state is the mapped state W_in y + b_in. The two maps start from Glorot's uniform
    distribution and zero biases, as in the authors' program.

    Args:
        size: d.
        units: m, 16 in the paper.
        elastance: "symmetric", "asymmetric" or "none"; "none" makes it an STC.
        saturated: False makes it an LTC, which needs elastance "none".
        parametrisation, constraint, backend: see `LiquidCell`.
        init: see `LiquidCell`; the paper's values, since a field that is integrated has no memory of its own to tune.

    >>> field = lrcnet.LRCField(2)
    >>> sum(p.numel() for p in field.parameters())
    1426
    """

    autonomous = True

    def __init__(
        self,
        size: int,
        units: int = 16,
        *,
        elastance: Elastance = "symmetric",
        saturated: bool = True,
        parametrisation: Parametrisation = "scaled",
        constraint: Constraint = "clamp",
        init: Init = "paper",
        backend: BackendChoice = "auto",
    ) -> None:
        super().__init__()
        one_of("elastance", elastance, ELASTANCES)
        check_flag("saturated", saturated)
        if not saturated and elastance != "none":
            raise ValueError(f"an unsaturated field is an LTC and has elastance 'none', but was given {elastance!r}")
        self.into = nn.Linear(positive_size("size", size), positive_size("units", units))
        self.out = nn.Linear(units, size)
        cell = LRCCell if elastance != "none" else STCCell if saturated else LTCCell
        self.liquid = cell(
            0,
            units,
            elastance=elastance,
            solver="euler",
            unfolds=1,
            input_map=False,
            parametrisation=parametrisation,
            constraint=constraint,
            init=init,
            backend=backend,
        )
        self.reset_maps()

    def reset_maps(self) -> None:
        """Draw the weights of both maps from Glorot's uniform distribution; set their biases to 0."""
        for linear_map in (self.into, self.out):
            nn.init.xavier_uniform_(linear_map.weight)
            nn.init.zeros_(linear_map.bias)

    def bind(self) -> VectorField:
        """Apply the constraints once and return the field, for a whole roll-out."""
        derivative = self.liquid.bind_derivative()
        into, out = (self.into.weight, self.into.bias), (self.out.weight, self.out.bias)

        def field(t: Any, y: Tensor) -> Tensor:
            return linear(derivative(linear(y, *into)), *out)

        return field

    def forward(self, t: Any, y: Tensor) -> Tensor:
        """Return dy/dt at states y (B, d); t is ignored."""
        return self.bind()(t, y)


class NeuralODE(Saveable, nn.Module):
    """The roll-out of any vector field f(t, y), a module or a function.

    Args:
        field: called as field(t, y) -> dy/dt with a tensor t, one number or (B, 1); if it has a method `bind()`, each
            roll-out calls that once and uses the field it returns.
        solver: "euler", "heun", "rk4" (`substeps` steps per interval of the given times), or "dopri5" (adaptive).
        substeps: number of steps of a fixed-step solver per interval.
        relative_tolerance, absolute_tolerance: tolerances of the adaptive solver.
        backend: "auto" computes the gradients of a small autonomous field for all points of a roll-out at once;
            "reference" is the plain loop, which can be differentiated more than once.

    >>> model = lrcnet.NeuralODE(lrcnet.LRCField(2), solver="euler")
    >>> model(torch.randn(16, 2), torch.linspace(0, 1, 5)).shape
    torch.Size([5, 16, 2])
    """

    def __init__(
        self,
        field: nn.Module | Callable[[Any, Tensor], Tensor],
        *,
        solver: FieldSolverName = "dopri5",
        substeps: int = 1,
        relative_tolerance: float = 1e-7,
        absolute_tolerance: float = 1e-9,
        backend: Literal["auto", "reference"] = "auto",
    ) -> None:
        super().__init__()
        if not callable(field):
            raise TypeError(
                f"field must be called as field(t, y), but is {describe_kind(field)}; pass a function or module"
            )
        self.field = field
        self.solver = one_of("solver of a Neural ODE", solver, FIELD_SOLVERS)
        self.substeps = positive_size("substeps", substeps)
        self.relative_tolerance = _check_tolerance("relative_tolerance", relative_tolerance)
        self.absolute_tolerance = _check_tolerance("absolute_tolerance", absolute_tolerance)
        self.backend = one_of("backend", backend, ("auto", "reference"))

    def forward(self, y0: Tensor, t: Tensor, *, solver: FieldSolverName | None = None) -> Tensor:
        """Return the states (N, B, d) at the times t, from y0 (B, d) at the first of them.

        Args:
            y0: (B, d), the initial states.
            t: (N,), the times, or (N, B), those of each trajectory. They increase, or decrease, from first to last.
            solver: the solver of this roll-out, e.g. to test a model with a solver that it was not trained with.

        Raises:
            ValueError: for times that are not finite, repeat or change direction.
            DivergenceError: if the trajectory becomes infinite or NaN although y0 is finite.
        """
        if solver is not None:
            one_of("solver of a Neural ODE", solver, FIELD_SOLVERS)
        _check_start(y0)
        _check_times(t, y0)
        bind = getattr(self.field, "bind", None)
        field = self.field if bind is None else bind()
        chosen = solver or self.solver
        fine = t if chosen == "dopri5" else _refine(t, self.substeps)
        states = (roll_out if self._can_run_in_parallel(y0, t) else solve)(
            chosen,
            field,
            y0,
            fine,
            relative_tolerance=self.relative_tolerance,
            absolute_tolerance=self.absolute_tolerance,
        )
        _raise_if_diverged(states)
        return states if fine is t else states[:: self.substeps]

    def _can_run_in_parallel(self, y0: Tensor, t: Tensor) -> bool:
        """Return whether the gradients can be computed for all points at once; see `lrcnet.parallel_adjoint`."""
        return (
            self.backend == "auto"
            and getattr(self.field, "autonomous", False)
            and y0.dim() == 2
            and y0.shape[-1] <= LARGEST_STATE
            and values_are_readable(y0)
            and t.dim() == 1
            and bool((t.diff() > 0).all())
        )


def _check_tolerance(what: str, given: object) -> float:
    number = read_number(given)
    if number is None:
        raise TypeError(f"{what} must be a number above 0, but is {given!r}; pass one such as 1e-6")
    if not 0 < number < math.inf:
        raise ValueError(f"{what} must be a finite number above 0, but is {given}; pass one such as 1e-6")
    return number


def _check_start(y0: object) -> None:
    """Raise unless y0 is (B, d)."""
    if not isinstance(y0, Tensor) or y0.dim() != 2:
        raise ValueError(f"y0 must be a tensor of shape (batch, state), but is {_describe(y0)}; reshape it")
    if not y0.is_floating_point():
        raise ValueError(f"y0 must be floating point, but is {y0.dtype}; convert it")


def _raise_if_diverged(states: Tensor) -> None:
    """Raise if the last of the states (N, B, d) is not finite although the first one is."""
    if not values_are_readable(states) or not states.numel() or bool(states[-1].isfinite().all()):
        return
    if not bool(states[0].isfinite().all()):
        return
    step = int((~states.isfinite()).flatten(1).any(1).nonzero()[0])
    raise DivergenceError(
        f"the trajectory stopped being finite at time index {step} of {len(states)} although it starts finite; take "
        "more substeps or another solver"
    )


def _check_times(t: object, y0: Tensor) -> None:
    """Raise unless t is (N,) or (N, B), finite, and runs in one direction."""
    if not isinstance(t, Tensor) or t.dim() not in (1, 2):
        raise ValueError(
            "t must be a tensor of 1 dimension, the times, or of 2, the times of each trajectory, but is "
            f"{_describe(t)}; pass one"
        )
    if not t.is_floating_point():
        raise ValueError(f"t must be floating point, but is {t.dtype}; convert it")
    if not len(t):
        raise ValueError("t must hold at least one time, that of y0, but is empty; pass the times")
    if t.dim() == 2 and t.shape[1] != len(y0):
        raise ValueError(
            f"t of 2 dimensions must be (times, trajectories) with y0 (trajectories, state), but t has shape "
            f"{tuple(t.shape)} and y0 {tuple(y0.shape)}; pass one column per trajectory"
        )
    if not values_are_readable(t):
        return
    columns = t.unsqueeze(-1) if t.dim() == 1 else t

    def name(step: int, column: int) -> str:
        return f"t[{step}]" if t.dim() == 1 else f"t[{step}, {column}]"

    wrong = (~columns.isfinite()).nonzero()
    if len(wrong):
        step, column = wrong[0].tolist()
        raise ValueError(f"t must be finite, but {name(step, column)} is {columns[step, column].item()}; correct it")
    gaps = columns.diff(dim=0)
    repeated = (gaps == 0).nonzero()
    if len(repeated):
        step, column = repeated[0].tolist()
        raise ValueError(
            f"t must not repeat a time, but {name(step + 1, column)} equals {name(step, column)} = "
            f"{columns[step, column].item():g}; drop one of the readings"
        )
    turned = (gaps.sign() != gaps[:1].sign()).nonzero() if len(gaps) else gaps
    if len(turned):
        step, column = turned[0].tolist()
        raise ValueError(
            f"t must increase, or decrease, all the way, but turns at {name(step, column)}; sort the readings by time"
        )


def _refine(t: Tensor, substeps: int) -> Tensor:
    """Return the times with `substeps` equal steps in each interval."""
    if substeps == 1 or len(t) < 2:
        return t
    shares = torch.arange(substeps, dtype=t.dtype, device=t.device) / substeps
    inner = t[:-1].unsqueeze(1) + t.diff(dim=0).unsqueeze(1) * shares.view(-1, *[1] * (t.dim() - 1))
    return torch.cat([inner.flatten(0, 1), t[-1:]])


def _describe(value: object) -> str:
    """Return the shape of a tensor, or the type of anything else, for a message."""
    return f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
