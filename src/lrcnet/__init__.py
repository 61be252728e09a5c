"""Liquid recurrent networks for PyTorch: LTC, STC, LRC and LRCU, shaped like torch.nn.GRU."""

from typing import Any

from lrcnet.cells import CELLS, CTRNNCell, GRUCell, GRUODECell, LRCCell, LRCUCell, LSTMCell, LTCCell, MGUCell, STCCell
from lrcnet.constraints import project_
from lrcnet.environment import info
from lrcnet.errors import DivergenceError, DivergenceWarning
from lrcnet.layers import CTRNN, GRUODE, LRC, LRCU, LTC, MGU, STC
from lrcnet.neural_ode import LRCField, MLPField, NeuralODE
from lrcnet.solvers import SOLVERS
from lrcnet.torch_layers import GRU, LSTM
from lrcnet.version import __version__

__all__ = [
    "CELLS",
    "CTRNN",
    "GRU",
    "GRUODE",
    "LAYERS",
    "LRC",
    "LRCU",
    "LSTM",
    "LTC",
    "MGU",
    "SOLVERS",
    "STC",
    "CTRNNCell",
    "DivergenceError",
    "DivergenceWarning",
    "GRUCell",
    "GRUODECell",
    "LRCCell",
    "LRCField",
    "LRCUCell",
    "LSTMCell",
    "LTCCell",
    "MGUCell",
    "MLPField",
    "NeuralODE",
    "STCCell",
    "__version__",
    "info",
    "project_",
]

LAYERS: dict[str, Any] = {
    "ltc": LTC,
    "stc": STC,
    "lrc": LRC,
    "lrcu": LRCU,
    "mgu": MGU,
    "lstm": LSTM,
    "gru": GRU,
    "ctrnn": CTRNN,
    "gru-ode": GRUODE,
}
