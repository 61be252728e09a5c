"""Speed, latency, memory and scaling of the fused kernels, each beside what it is compared with, in one run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lrcnet.benchmarks.measure import Measurement

BENCHMARKS = ("kernels", "latency", "memory", "scaling", "theory", "ode", "driving", "interpret")


def load(name: str) -> Callable[[], list[Measurement]]:
    """The function that runs one of BENCHMARKS and returns its measurements."""
    if name not in BENCHMARKS:
        raise ValueError(f"benchmark must be one of {', '.join(BENCHMARKS)}, but is {name!r}; choose one of these")
    measure: Callable[[], list[Measurement]] = importlib.import_module(f"lrcnet.benchmarks.{name}").measure
    return measure


__all__ = ["BENCHMARKS", "load"]
