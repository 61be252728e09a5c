"""The keyword options of layers, written so that type checkers and editors know them.

A layer passes its options on to its cells, whose constructors are the specification; the options of time belong to
`ContinuousLayer`. A test holds each class here to these keyword-only parameters. The names an option may take are
`Literal` types, so that a misspelt one is an error before the program runs; at run time the cell checks it and lists
the valid ones.
"""

from typing import Literal, Required, TypedDict

from lrcnet.cells.cfc_equation import CfCActivation, CfCMode
from lrcnet.cells.diagonal import Synapses
from lrcnet.constraints import Constraint
from lrcnet.initial_values import Init
from lrcnet.liquid import Elastance, Parametrisation
from lrcnet.solvers import SolverName
from lrcnet.wirings import Wiring

BackendChoice = Literal["auto", "fused", "reference"]
NegativeDt = Literal["error", "clamp", "allow"]
TimeScale = float | Literal["auto"]


class GatedOptions(TypedDict, total=False):
    """Options of MGU, ResetBeforeGRU, LSTM and GRU; see `GatedCell`."""

    time_feature: bool


class ODEOptions(TypedDict, total=False):
    """Options of CTRNN and GRUODE; see `ODECell` and, for time, `ContinuousLayer`."""

    solver: SolverName
    unfolds: int
    negative_dt: NegativeDt
    time_scale: TimeScale
    time_feature: bool
    fill_first_gap: bool
    time_warnings: bool


class LiquidOptions(TypedDict, total=False):
    """Options of LTC, STC, LRC and LRCU; see `LiquidCell` and, for time, `ContinuousLayer`."""

    elastance: Elastance | None
    solver: SolverName | None
    unfolds: int | None
    negative_dt: NegativeDt
    input_map: bool
    output_map: bool
    parametrisation: Parametrisation
    constraint: Constraint
    init: Init
    wiring: Wiring | None
    backend: BackendChoice
    time_scale: TimeScale
    time_feature: bool
    fill_first_gap: bool
    time_warnings: bool


class CfCOptions(TypedDict, total=False):
    """Options of CfC; see `CfCCell` and, for time, `ContinuousLayer`."""

    mode: CfCMode
    backbone_units: int
    backbone_layers: int
    backbone_dropout: float
    activation: CfCActivation
    negative_dt: NegativeDt
    time_scale: TimeScale
    time_feature: bool
    fill_first_gap: bool
    time_warnings: bool


class WiredCfCOptions(TypedDict, total=False):
    """Options of WiredCfC; see `WiredCfCCell` and, for time, `ContinuousLayer`."""

    wiring: Required[Wiring]
    mode: CfCMode
    dense_gates: bool
    negative_dt: NegativeDt
    time_scale: TimeScale
    time_feature: bool
    fill_first_gap: bool
    time_warnings: bool


class DiagonalOptions(TypedDict, total=False):
    """Options of DiagonalLRC; see `DiagonalLRCCell` and, for time, `ContinuousLayer`."""

    elastance: Literal["symmetric", "asymmetric"]
    synapses: Synapses
    solver: SolverName
    unfolds: int
    negative_dt: NegativeDt
    contraction: float | None
    backend: BackendChoice
    time_scale: TimeScale
    time_feature: bool
    fill_first_gap: bool
    time_warnings: bool
