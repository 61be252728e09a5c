"""The keyword options of layers, written so that type checkers and editors know them.

A layer passes its options on to its cells, whose constructors are the specification: a test holds each class here to
the keyword-only parameters of its cells. The names an option may take are `Literal` types, so that a misspelt one is
an error before the program runs; at run time the cell checks it and lists the valid ones.
"""

from typing import Literal, TypedDict

from lrcnet.constraints import Constraint
from lrcnet.initial_values import Init
from lrcnet.liquid import Elastance, Parametrisation
from lrcnet.solvers import SolverName

BackendChoice = Literal["auto", "fused", "reference"]
NegativeDt = Literal["error", "clamp", "allow"]


class GatedOptions(TypedDict, total=False):
    """Options of MGU, LSTM and GRU; see `MGUCell`."""

    time_feature: bool


class ODEOptions(TypedDict, total=False):
    """Options of CTRNN and GRUODE; see `ODECell`."""

    solver: SolverName
    unfolds: int
    negative_dt: NegativeDt


class LiquidOptions(TypedDict, total=False):
    """Options of LTC, STC, LRC and LRCU; see `LiquidCell`."""

    elastance: Elastance | None
    solver: SolverName | None
    unfolds: int | None
    negative_dt: NegativeDt
    input_map: bool
    output_map: bool
    parametrisation: Parametrisation
    constraint: Constraint
    init: Init
    backend: BackendChoice
