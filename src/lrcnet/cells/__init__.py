"""Recurrent cells: one step of each model, and the collection of all of them."""

from lrcnet.cells.base import Cell, ODECell
from lrcnet.cells.cfc import CfCCell
from lrcnet.cells.ctrnn import CTRNNCell
from lrcnet.cells.diagonal import DiagonalLRCCell
from lrcnet.cells.gated import GRUCell, LSTMCell, MGUCell, ResetBeforeGRUCell
from lrcnet.cells.gru_ode import GRUODECell
from lrcnet.cells.liquid import LiquidCell, LRCCell, LRCUCell, LTCCell, STCCell
from lrcnet.cells.wired_cfc import WiredCfCCell

CELLS: dict[str, type[Cell] | type[LSTMCell] | type[GRUCell]] = {
    "ltc": LTCCell,
    "stc": STCCell,
    "lrc": LRCCell,
    "lrcu": LRCUCell,
    "mgu": MGUCell,
    "lstm": LSTMCell,
    "gru": GRUCell,
    "gru-reset-before": ResetBeforeGRUCell,
    "ctrnn": CTRNNCell,
    "gru-ode": GRUODECell,
    "cfc": CfCCell,
    "diagonal-lrc": DiagonalLRCCell,
}

__all__ = [
    "CELLS",
    "CTRNNCell",
    "Cell",
    "CfCCell",
    "DiagonalLRCCell",
    "GRUCell",
    "GRUODECell",
    "LRCCell",
    "LRCUCell",
    "LSTMCell",
    "LTCCell",
    "LiquidCell",
    "MGUCell",
    "ODECell",
    "ResetBeforeGRUCell",
    "STCCell",
    "WiredCfCCell",
]
