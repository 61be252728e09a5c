"""Table and figures: LRCs and the Neural ODE on six dynamical systems."""

from lrcnet_paper.artefacts.neural_ode.table import ARTEFACT

__all__ = ["ARTEFACT"]
