"""The suite that re-runs the paper *Liquid Resistance Liquid Capacitance Networks*, built on the library `lrcnet`.

    >>> import lrcnet_paper
    >>> callable(lrcnet_paper.reproduce)
    True

The pipelines are imported on first use, so that the command line can be read without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrcnet_paper.reproduction import Reproduction, reproduce, write_report
    from lrcnet_paper.results.reading import read_runs
    from lrcnet_paper.training import train

_HOMES = {
    "Reproduction": "lrcnet_paper.reproduction",
    "read_runs": "lrcnet_paper.results.reading",
    "reproduce": "lrcnet_paper.reproduction",
    "train": "lrcnet_paper.training",
    "write_report": "lrcnet_paper.reproduction",
}

__all__ = ["Reproduction", "read_runs", "reproduce", "train", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
