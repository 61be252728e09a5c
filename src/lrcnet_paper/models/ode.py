"""Models of a dynamical system: a learnt vector field that is integrated over a fixed grid of times."""

from __future__ import annotations

from typing import Any, cast

from torch import nn

from lrcnet.errors import one_of
from lrcnet.neural_ode import LRCField, MLPField, NeuralODE
from lrcnet.solvers import FieldSolverName
from lrcnet_paper.models.recurrent import parse_solver

UNITS = 16
HIDDEN = (32, 32)

FIELDS: dict[str, tuple[dict[str, Any] | None, str]] = {
    "ltc": ({"elastance": "none", "saturated": False}, "euler-1"),
    "stc": ({"elastance": "none"}, "euler-1"),
    "lrc-a": ({"elastance": "asymmetric"}, "euler-1"),
    "lrc-s": ({"elastance": "symmetric"}, "euler-1"),
    "neural-ode": (None, "dopri5-1"),
}
"""Model -> arguments of its `LRCField` (None for the MLP), and the solver that the paper trains it with."""


def ode_model(model: str, size: int, *, solver: str = "", units: int | None = None, **options: Any) -> nn.Module:
    """Make a Neural ODE from the vector field of a model name.

    Args:
        model: a key of `FIELDS`; "neural-ode" is the MLP.
        size: d, number of coordinates of the state.
        solver: such as "euler-1" or "dopri5-1", one step per interval of the grid; "" for the paper's.
        units: m of a liquid field; None for the paper's 16.
        options: further arguments of `LRCField` or `MLPField`.

    Raises:
        ValueError: for an unknown model, or more than one unfolding.
    """
    field_options, default_solver = FIELDS[one_of("model of a trajectory", model, FIELDS)]
    name, unfolds = parse_solver(solver or default_solver)
    if unfolds != 1:
        raise ValueError(f"a roll-out takes one step per grid time, but {unfolds} unfoldings were given; use {name}-1")
    field_solver = cast(FieldSolverName, name)  # NeuralODE checks it at run time.
    if field_options is None:
        if units is not None:
            raise ValueError(f"units belongs to the liquid fields, but the model is {model!r}; leave it out")
        return NeuralODE(MLPField(size, HIDDEN, **options), solver=field_solver)
    paper = {"init": "paper", "parametrisation": "sigma-mu"}
    field = LRCField(size, UNITS if units is None else units, **paper | field_options | options)
    return NeuralODE(field, solver=field_solver)
