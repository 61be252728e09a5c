"""How the benchmarks measure: both sides in one run and in turn, so that a busy machine slows them alike."""

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lrcnet.environment import info


@dataclass(frozen=True)
class Measurement:
    """One number and what it is held against.

    Attributes:
        what: what was measured, and on which shape.
        value, unit: the number itself.
        against: what it is compared with, and its number in the same unit.
        ratio: value over the other's, or the other's over value where more is better.
        limit: the most (or, if `at_least`, the least) the ratio may be; None where there is none.
    """

    what: str
    value: float
    unit: str
    against: str = ""
    other: float | None = None
    ratio: float | None = None
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool | None:
        if self.ratio is None or self.limit is None:
            return None
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit


def best_in_turn(*calls: Callable[[], Any], repeats: int = 9, rounds: int = 2) -> list[float]:
    """The best time of each call in seconds: blocks of `repeats` in turn, the first of each block to warm up."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            call()
            for _ in range(repeats):
                start = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - start)
    return best


def training_step(layer: torch.nn.Module, x: Tensor) -> Callable[[], None]:
    """Forward and backward of a layer over x."""

    def run() -> None:
        layer(x)[0].sum().backward()

    return run


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    processor = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        processor = f"{names[0]} x {len(names)}" if names else processor
    found = info()
    return {
        "processor": processor,
        **{name: value for name, value in found.items() if name != "kernels"},
        **found["kernels"],
    }


def as_records(measurements: list[Measurement]) -> list[dict[str, Any]]:
    """For JSON."""
    return [{**asdict(one), "holds": one.holds} for one in measurements]


def as_table(measurements: list[Measurement]) -> str:
    """For reading: one line per measurement, with its ratio and its limit."""
    header = ("what", "measured", "against", "ratio", "limit", "")
    lines = [header]
    for one in measurements:
        other = "" if one.other is None else f"{one.against} {one.other:.4g} {one.unit}"
        sign = ">=" if one.at_least else "<="
        lines.append(
            (
                one.what,
                f"{one.value:.4g} {one.unit}",
                other,
                "" if one.ratio is None else f"{one.ratio:.3g}",
                "" if one.limit is None else f"{sign} {one.limit:g}",
                {None: "", True: "holds", False: "misses"}[one.holds],
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)
