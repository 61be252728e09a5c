"""The paper's numbers on the six systems, and the rows of our table: models with their solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lrcnet.pages import palette
from lrcnet_paper.results.estimate import Estimate


def _loss(mean: float, std: float) -> Estimate:
    return Estimate(mean, std, seeds=3, digits=4 if std < 0.001 else 3)


# Test loss (mean absolute error over 1000 points) over 3 seeds; the paper does not state the elastance of "lrc".
CLAIMED: Mapping[str, Any] = {
    "test loss": {
        "sinusoid": {"neural-ode": _loss(0.140, 0.033), "lrc": _loss(0.019, 0.005)},
        "spiral": {"neural-ode": _loss(0.012, 0.005), "lrc": _loss(0.009, 0.004)},
        "duffing": {"neural-ode": _loss(0.142, 0.117), "lrc": _loss(0.003, 0.001)},
        "lotka-volterra-periodic": {"neural-ode": _loss(0.025, 0.006), "lrc": _loss(0.005, 0.001)},
        "lotka-volterra-asymptotic": {"neural-ode": _loss(0.030, 0.0002), "lrc": _loss(0.009, 0.001)},
        "lotka-volterra-nonlinear": {"neural-ode": _loss(0.033, 0.010), "lrc": _loss(0.008, 0.004)},
    },
}


class Row(NamedTuple):
    """A model with the solver that it is trained and tested by; "" for the paper's own."""

    model: str
    solver: str = ""

    @property
    def by_euler(self) -> bool:
        """Whether the solver is Euler's."""
        return self.model != "neural-ode" or bool(self.solver)

    @property
    def label(self) -> str:
        """The row's name for people."""
        return f"{palette.model_label(self.model)}, {'Euler' if self.by_euler else 'Dormand-Prince'}"


LRC_S, LRC_A, ADAPTIVE, BY_EULER = Row("lrc-s"), Row("lrc-a"), Row("neural-ode"), Row("neural-ode", "euler-1")
ROWS = (LRC_S, LRC_A, ADAPTIVE, BY_EULER)
