"""Neural ODEs: vector fields that can be trained, and their roll-outs.

Axes: B batch, N times, d state dimensions, m hidden units.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.functional import linear

from lrcnet.cells import LRCCell, LTCCell, STCCell
from lrcnet.constraints import Constraint
from lrcnet.errors import DivergenceError, one_of, positive_size
from lrcnet.initial_values import Init
from lrcnet.liquid import Elastance, Parametrisation
from lrcnet.options import BackendChoice
from lrcnet.parallel_adjoint import LARGEST_STATE, roll_out
from lrcnet.solvers import FIELD_SOLVERS, FieldSolverName, VectorField, solve
from lrcnet.tracing import values_are_readable


class MLPField(nn.Module):
    """dy/dt = MLP(y), the paper's baseline: d-32-32-d with tanh.

    Weights start from a normal distribution of scale 0.1 that is cut at two standard deviations, as in the authors'
    program; biases start at 0.

    >>> lrcnet.MLPField(2)(0.0, torch.randn(16, 2)).shape
    torch.Size([16, 2])
    """

    autonomous = True

    def __init__(self, size: int, hidden: tuple[int, ...] = (32, 32)) -> None:
        super().__init__()
        sizes = [positive_size("size", size), *hidden, size]
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


class LRCField(nn.Module):
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
        if not saturated and elastance != "none":
            raise ValueError(f"an unsaturated field is an LTC and has elastance 'none', but was given {elastance!r}")
        self.into = nn.Linear(positive_size("size", size), units)
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


class NeuralODE(nn.Module):
    """The roll-out of any vector field f(t, y), a module or a function.

    Args:
        field: called as field(t, y) -> dy/dt; if it has a method `bind()`, each roll-out calls that once and uses the
            field it returns.
        solver: "euler", "heun", "rk4" (one step per interval of the given times), or "dopri5" (adaptive).
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
        relative_tolerance: float = 1e-7,
        absolute_tolerance: float = 1e-9,
        backend: Literal["auto", "reference"] = "auto",
    ) -> None:
        super().__init__()
        self.field = field
        self.solver = one_of("solver of a Neural ODE", solver, FIELD_SOLVERS)
        self.relative_tolerance = relative_tolerance
        self.absolute_tolerance = absolute_tolerance
        self.backend = one_of("backend", backend, ("auto", "reference"))

    def forward(self, y0: Tensor, t: Tensor, *, solver: FieldSolverName | None = None) -> Tensor:
        """Return the states (N, B, d) at the times t (N,), from y0 (B, d) at t[0].

        Args:
            y0: (B, d), the initial states.
            t: (N,), the times.
            solver: the solver of this roll-out, e.g. to test a model with a solver that it was not trained with.

        Raises:
            DivergenceError: if the trajectory becomes infinite or NaN although y0 is finite.
        """
        if not isinstance(t, Tensor) or t.dim() != 1:
            raise ValueError(f"t must be a tensor of 1 dimension, the times, but is {_describe(t)}")
        if not y0.is_floating_point():
            raise ValueError(f"y0 must be floating point, but is {y0.dtype}; convert it")
        bind = getattr(self.field, "bind", None)
        field = self.field if bind is None else bind()
        states = (roll_out if self._can_run_in_parallel(y0, t) else solve)(
            solver or self.solver,
            field,
            y0,
            t,
            relative_tolerance=self.relative_tolerance,
            absolute_tolerance=self.absolute_tolerance,
        )
        _raise_if_diverged(states)
        return states

    def _can_run_in_parallel(self, y0: Tensor, t: Tensor) -> bool:
        """Return whether the gradients can be computed for all points at once; see `lrcnet.parallel_adjoint`."""
        return (
            self.backend == "auto"
            and getattr(self.field, "autonomous", False)
            and y0.dim() == 2
            and y0.shape[-1] <= LARGEST_STATE
            and values_are_readable(y0)
            and bool((t.diff() > 0).all())
        )


def _raise_if_diverged(states: Tensor) -> None:
    """Raise if the last of the states (N, B, d) is not finite although the first one is."""
    if not values_are_readable(states) or not states.numel() or bool(states[-1].isfinite().all()):
        return
    if not bool(states[0].isfinite().all()):
        return
    step = int((~states.isfinite()).flatten(1).any(1).nonzero()[0])
    raise DivergenceError(
        f"the trajectory stopped being finite at time index {step} of {len(states)} although it starts finite; take "
        "smaller steps or another solver"
    )


def _describe(value: object) -> str:
    """Return the shape of a tensor, or the type of anything else, for a message."""
    return f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
