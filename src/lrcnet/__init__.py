"""Liquid recurrent networks for PyTorch: LTC, STC, LRC and LRCU, shaped like torch.nn.GRU.

Importing the package is light: each public name is imported from its module when it is first used, so that
`lrcnet --help` does not wait for torch. Type checkers and editors read the imports below instead.

The fused operators are registered with torch on first use of a layer too. A process that only loads a program saved by
torch.export has to `import lrcnet.kernels` before it does so.
"""

import importlib
from typing import TYPE_CHECKING

from lrcnet.version import __version__

if TYPE_CHECKING:
    from lrcnet.cells import (
        CELLS,
        CfCCell,
        CTRNNCell,
        DiagonalLRCCell,
        GRUCell,
        GRUODECell,
        LRCCell,
        LRCUCell,
        LSTMCell,
        LTCCell,
        MGUCell,
        ResetBeforeGRUCell,
        STCCell,
        WiredCfCCell,
    )
    from lrcnet.cfc_layers import CfC, WiredCfC
    from lrcnet.constraints import project_
    from lrcnet.diagonal import DiagonalLRC
    from lrcnet.environment import info
    from lrcnet.errors import DivergenceError, DivergenceWarning, FirstGapWarning, StabilityWarning, TimeWarning
    from lrcnet.folders import load
    from lrcnet.layers import CTRNN, GRUODE, LAYERS, LRC, LRCU, LTC, MGU, STC, ResetBeforeGRU
    from lrcnet.liquid_ode import LiquidODE
    from lrcnet.lrc_ssm import LrcSSM
    from lrcnet.mixed_memory import MixedMemory, MixedMemoryCell
    from lrcnet.models import Classifier, Forecaster, Regressor, Tagger
    from lrcnet.neural_ode import LRCField, MLPField, NeuralODE
    from lrcnet.safe_loading import safe_globals
    from lrcnet.solvers import SOLVERS
    from lrcnet.streaming import Stream
    from lrcnet.torch_layers import GRU, LSTM
    from lrcnet.training import find_rate

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
    "CfC",
    "CfCCell",
    "Classifier",
    "DiagonalLRC",
    "DiagonalLRCCell",
    "DivergenceError",
    "DivergenceWarning",
    "FirstGapWarning",
    "Forecaster",
    "GRUCell",
    "GRUODECell",
    "LRCCell",
    "LRCField",
    "LRCUCell",
    "LSTMCell",
    "LTCCell",
    "LiquidODE",
    "LrcSSM",
    "MGUCell",
    "MLPField",
    "MixedMemory",
    "MixedMemoryCell",
    "NeuralODE",
    "Regressor",
    "ResetBeforeGRU",
    "ResetBeforeGRUCell",
    "STCCell",
    "StabilityWarning",
    "Stream",
    "Tagger",
    "TimeWarning",
    "WiredCfC",
    "WiredCfCCell",
    "__version__",
    "find_rate",
    "info",
    "load",
    "project_",
    "safe_globals",
]

# The public names of each module; a test compares this table with the imports above.
_PUBLIC = {
    "cells": (
        "CELLS",
        *(
            "CTRNNCell",
            "CfCCell",
            "DiagonalLRCCell",
            "GRUCell",
            "GRUODECell",
            "LRCCell",
            "LRCUCell",
            "LSTMCell",
            "LTCCell",
            "MGUCell",
            "ResetBeforeGRUCell",
            "STCCell",
            "WiredCfCCell",
        ),
    ),
    "cfc_layers": ("CfC", "WiredCfC"),
    "constraints": ("project_",),
    "diagonal": ("DiagonalLRC",),
    "environment": ("info",),
    "errors": ("DivergenceError", "DivergenceWarning", "FirstGapWarning", "StabilityWarning", "TimeWarning"),
    "folders": ("load",),
    "layers": ("CTRNN", "GRUODE", "LAYERS", "LRC", "LRCU", "LTC", "MGU", "STC", "ResetBeforeGRU"),
    "mixed_memory": ("MixedMemory", "MixedMemoryCell"),
    "liquid_ode": ("LiquidODE",),
    "lrc_ssm": ("LrcSSM",),
    "models": ("Classifier", "Forecaster", "Regressor", "Tagger"),
    "neural_ode": ("LRCField", "MLPField", "NeuralODE"),
    "safe_loading": ("safe_globals",),
    "solvers": ("SOLVERS",),
    "streaming": ("Stream",),
    "torch_layers": ("GRU", "LSTM"),
    "training": ("find_rate",),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}


# Hidden from type checkers, which would otherwise accept any name: they read the imports above.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name, or a module of the package, when it is first used."""
        if name in _HOMES:
            value = getattr(importlib.import_module(f"lrcnet.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        if not name.startswith("_"):
            try:
                return importlib.import_module(f"lrcnet.{name}")
            except ModuleNotFoundError as error:
                # If a module of the package exists but needs another package, the user must learn which one.
                if error.name != f"lrcnet.{name}":
                    raise
        raise AttributeError(f"module 'lrcnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
