"""The six dynamical systems of the paper's Neural-ODE benchmark: equations, exact trajectories, training windows.

One trajectory of 1000 points serves for training and for testing. A training batch is 16 random windows of 16 points,
each integrated from its first point over the first 16 grid times; the test rolls out all 1000 points from y0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from .losses_and_metrics import mean_absolute_error
from .task import DataPath, Recipe, Samples, Task

POINTS = 1000
WINDOW = 16
BATCH = 16
# The paper states 1000, 2000 and 4000 without assigning them to the systems.
ITERATIONS = 2000

# x, y -> dx/dt, dy/dt, by arithmetic that floats and tensors share.
Field = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class System:
    """An autonomous system in the plane.

    Attributes:
        name: its key in `SYSTEMS` or `ALTERNATIVES`.
        title: name for people.
        equations: the equations as the paper prints them, or their difference from the paper.
        y0: initial state (x, y).
        end: last time of the trajectory, which begins at 0.
        field: right-hand side as a function of two numbers or two tensors.

    Example:
        >>> duffing = SYSTEMS["duffing"]
        >>> duffing.derivative(torch.tensor([[1.0, 0.5]]))
        tensor([[0.5000, 0.0000]])
    """

    name: str
    title: str
    equations: str
    y0: tuple[float, float]
    end: float
    field: Field

    def derivative(self, state: Tensor) -> Tensor:
        """Return dy/dt at states of shape (..., 2), in the same shape."""
        if state.ndim == 0 or state.shape[-1] != 2:
            raise ValueError(f"state must have shape (..., 2); got {tuple(state.shape)}")
        return torch.stack(self.field(state[..., 0], state[..., 1]), dim=-1)

    def times(self, points: int = POINTS) -> Tensor:
        """Return the grid of times, (points,), float64, from 0 to `end` inclusive."""
        return torch.linspace(0.0, self.end, points, dtype=torch.float64)


def _sinusoid(x: Any, y: Any) -> tuple[Any, Any]:
    pull = 1 - (x * x + y * y) ** 0.5
    return x * pull - y, x + y * pull


def _spiral(x: Any, y: Any) -> tuple[Any, Any]:
    return -0.1 * x - 3 * y, 3 * x - 0.1 * y


def _spiral_mirror(x: Any, y: Any) -> tuple[Any, Any]:
    return -0.1 * x + 3 * y, -3 * x - 0.1 * y


def _duffing(x: Any, y: Any) -> tuple[Any, Any]:
    return y, x - x * x * x


def _lotka_volterra_periodic(x: Any, y: Any) -> tuple[Any, Any]:
    return 1.5 * x - x * y, -3 * y + x * y


def _lotka_volterra_asymptotic(x: Any, y: Any) -> tuple[Any, Any]:
    return x * (1 - x) - x * y, -y + 2 * x * y


def _lotka_volterra_nonlinear(x: Any, y: Any) -> tuple[Any, Any]:
    return x * (1 - x) - 0.33 * x * y, y * (1 - y) + x * y


def _lotka_volterra_nonlinear_plus(x: Any, y: Any) -> tuple[Any, Any]:
    return x * (1 - x) + 0.33 * x * y, y * (1 - y) + x * y


def _collect(*systems: System) -> Mapping[str, System]:
    return MappingProxyType({system.name: system for system in systems})


SYSTEMS: Mapping[str, System] = _collect(
    System(
        "sinusoid",
        "Periodic sinusoid",
        "x' = x (1 - r) - y, y' = x + y (1 - r), r = sqrt(x^2 + y^2)",
        (1.0, 1.0),
        10.0,
        _sinusoid,
    ),
    System(
        "spiral",
        "Spiral",
        "(x, y)' = (x, y) A, A = [[-0.1, 3], [-3, -0.1]]",
        (0.5, 0.01),
        25.0,
        _spiral,
    ),
    System("duffing", "Duffing oscillator", "x' = y, y' = x - x^3", (-1.0, 1.0), 25.0, _duffing),
    System(
        "lotka-volterra-periodic",
        "Periodic Lotka-Volterra",
        "x' = 1.5 x - x y, y' = -3 y + x y",
        (1.0, 1.0),
        10.0,
        _lotka_volterra_periodic,
    ),
    System(
        "lotka-volterra-asymptotic",
        "Asymptotic Lotka-Volterra",
        "x' = x (1 - x) - x y, y' = -y + 2 x y",
        (1.0, 1.0),
        20.0,
        _lotka_volterra_asymptotic,
    ),
    System(
        "lotka-volterra-nonlinear",
        "Non-linear Lotka-Volterra",
        "x' = x (1 - x) - 0.33 x y, y' = y (1 - y) + x y",
        (2.0, 1.0),
        20.0,
        _lotka_volterra_nonlinear,
    ),
)
"""The six systems of the paper's table."""

ALTERNATIVES: Mapping[str, System] = _collect(
    System(
        "spiral-mirror",
        "Spiral, column vector",
        "(x, y)' = A (x, y), A = [[-0.1, 3], [-3, -0.1]]: as the paper prints it, the mirror image of `spiral`",
        (0.5, 0.01),
        25.0,
        _spiral_mirror,
    ),
    System(
        "lotka-volterra-nonlinear-plus",
        "Non-linear Lotka-Volterra, other sign",
        "x' = x (1 - x) + 0.33 x y, y' = y (1 - y) + x y: the sign of the authors' program, not of the paper",
        (2.0, 1.0),
        20.0,
        _lotka_volterra_nonlinear_plus,
    ),
)
"""The other reading of the systems for which the paper and its program disagree."""


def find_system(system: str | System) -> System:
    """Return the system of a name in `SYSTEMS` or `ALTERNATIVES`; a System is returned unchanged."""
    if isinstance(system, System):
        return system
    known = {**SYSTEMS, **ALTERNATIVES}
    if system not in known:
        raise ValueError(f"system must be one of {list(known)}; got {system!r}")
    return known[system]


# Dormand and Prince's fifth-order weights: rows of stage coefficients, then the weights of the step. The equations are
# autonomous, so the nodes are not needed; the seventh stage serves only an error estimate and is left out.
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
)
_WEIGHTS = (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
# Longest internal step. At order 5 the error is near 1e-11, far below the resolution of float32 training.
_LONGEST_STEP = 1 / 400


def _dormand_prince(field: Field, x: float, y: float, step: float) -> tuple[float, float]:
    # Two Python floats are several times faster here than arrays of length two.
    slopes: list[tuple[float, float]] = []
    for row in _STAGES:
        sx = x + step * sum(c * k[0] for c, k in zip(row, slopes, strict=True))
        sy = y + step * sum(c * k[1] for c, k in zip(row, slopes, strict=True))
        slopes.append(field(sx, sy))
    return (
        x + step * sum(w * k[0] for w, k in zip(_WEIGHTS, slopes, strict=True)),
        y + step * sum(w * k[1] for w, k in zip(_WEIGHTS, slopes, strict=True)),
    )


@lru_cache(maxsize=32)
def _states(system: System, points: int) -> tuple[tuple[float, float], ...]:
    gap = system.end / (points - 1)
    inner = int(-(-gap // _LONGEST_STEP))
    states = [system.y0]
    for _ in range(points - 1):
        x, y = states[-1]
        for _ in range(inner):
            x, y = _dormand_prince(system.field, x, y, gap / inner)
        states.append((x, y))
    return tuple(states)


def trajectory(system: str | System, points: int = POINTS) -> tuple[Tensor, Tensor]:
    """Return the true trajectory, by Dormand-Prince steps of at most 1/400 in float64.

    Args:
        system: a system or its name.
        points: number of points of the grid, at least two.

    Returns:
        times (points,) and states (points, 2), float64.

    Raises:
        ValueError: for an unknown name or fewer than two points.

    Example:
        >>> t, y = trajectory("sinusoid")
        >>> t.shape, y.shape, y.dtype
        (torch.Size([1000]), torch.Size([1000, 2]), torch.float64)
    """
    system = find_system(system)
    if points < 2:
        raise ValueError(f"points must be at least 2; got {points}")
    return system.times(points), torch.tensor(_states(system, points), dtype=torch.float64)


def _load(variant: str, split: str, data: DataPath | None) -> Samples:
    del data  # the data is generated
    _, states = trajectory(variant)
    states = states.to(torch.float32)
    if split == "test":
        return Samples(states[:1], None, states[None])
    targets = states.unfold(0, WINDOW, 1).transpose(1, 2).contiguous()
    return Samples(targets[:, 0].contiguous(), None, targets)


def _task(variant: str) -> Task:
    system = {**SYSTEMS, **ALTERNATIVES}[variant]
    return Task(
        name="neural-ode",
        variant=variant,
        variants=(*SYSTEMS, *ALTERNATIVES),
        title=system.title,
        kind="trajectory",
        input_size=2,
        vocabulary=0,
        output_size=2,
        length=WINDOW,
        splits={"train": POINTS - WINDOW + 1, "test": 1},
        irregular=False,
        negative_dt="error",
        loss=mean_absolute_error,
        metrics={"mean_absolute_error": mean_absolute_error},
        maximise=False,
        recipe=Recipe("adam", 1e-3, None, 1e-7, BATCH, None, ITERATIONS, "last"),
        citation="Farsang, Neubauer, Grosu (2024): Liquid Resistance Liquid Capacitance Networks",
        licence="generated; no data",
        notes=f"{system.equations}; training and test share the one trajectory of {POINTS} points",
        reader=_load,
    )


VARIANTS: dict[str, Task] = {variant: _task(variant) for variant in (*SYSTEMS, *ALTERNATIVES)}
"""Every system; `load("train")` has all windows (x (985, 2), y (985, 16, 2)), `load("test")` the whole trajectory."""
