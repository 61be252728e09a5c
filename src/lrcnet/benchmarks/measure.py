"""Timing for the benchmarks: the sides of a comparison take turns in one run, so a busy machine slows all alike."""

import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lrcnet.environment import info
from lrcnet.pages.content import Cell, RichCell, Table


@dataclass(frozen=True)
class Measurement:
    """One measured number, compared with a rival's or with a goal.

    Attributes:
        what: description of the measurement, with the shape.
        value, unit: the number.
        against, other: name of the rival, and its number in the same unit.
        ratio: `value` over `other`, or `other` over `value` where more is better.
        limit: the largest allowed ratio, or the smallest if `at_least`; None if there is no limit.
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
        """Whether the ratio keeps its limit; None if there is no limit."""
        if self.ratio is None or self.limit is None:
            return None
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit


def _choose_clock() -> Callable[[], float]:
    """Return a clock: that of the processor with one thread, so that other programs on the machine are not counted."""
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def best_in_turn(*calls: Callable[[], Any], repeats: int = 9, rounds: int = 2) -> list[float]:
    """Return the best time of each call in seconds.

    The calls take turns in blocks: one call to warm up, then `repeats` timed calls.
    """
    clock = _choose_clock()
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            call()
            for _ in range(repeats):
                start = clock()
                call()
                best[i] = min(best[i], clock() - start)
    return best


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let torch compute with this many threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def medians_in_turn(*calls: Callable[[], Any], repeats: int = 15) -> list[float]:
    """Return the median time of each call in seconds; the calls take turns one by one, after one each to warm up."""
    clock = _choose_clock()
    times: list[list[float]] = [[] for _ in calls]
    for repeat in range(repeats + 1):
        for call_times, call in zip(times, calls, strict=True):
            start = clock()
            call()
            if repeat:
                call_times.append(clock() - start)
    return [statistics.median(call_times) for call_times in times]


def training_step(layer: torch.nn.Module, x: Tensor) -> Callable[[], None]:
    """Return a function that runs the forward and the backward pass of a layer over x."""

    def run() -> None:
        layer(x)[0].sum().backward()

    return run


def machine() -> dict[str, Any]:
    """Describe the machine and the installation."""
    processor = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        processor = f"{names[0]} x {len(names)}" if names else processor
    installation = info()
    return {
        "processor": processor,
        **{name: value for name, value in installation.items() if name not in ("kernels", "gpu")},
        **installation["kernels"],
        "gpus": ", ".join(installation["gpu"]["devices"]),
    }


def as_records(measurements: list[Measurement]) -> list[dict[str, Any]]:
    """Return the measurements as JSON values."""
    return [{**asdict(one), "holds": one.holds} for one in measurements]


class Outcome(RichCell):
    """Whether a ratio keeps its limit, as a cell of a table."""

    def __init__(self, holds: bool | None) -> None:
        self.holds = holds

    @property
    def colour(self) -> str:
        return {None: "", True: "green", False: "red"}[self.holds]

    def __str__(self) -> str:
        return {None: "", True: "holds", False: "misses"}[self.holds]


def as_table(name: str, measurements: list[Measurement]) -> Table:
    """Return a table for people: one row per measurement, with its ratio and its limit."""
    rows: list[tuple[Cell, ...]] = [
        (
            one.what,
            f"{one.value:.4g} {one.unit}",
            "" if one.other is None else f"{one.against} {one.other:.4g} {one.unit}",
            "" if one.ratio is None else f"{one.ratio:.3g}",
            "" if one.limit is None else f"{'>=' if one.at_least else '<='} {one.limit:g}",
            Outcome(one.holds),
        )
        for one in measurements
    ]
    return Table(name, name, ("what", "measured", "against", "ratio", "limit", "verdict"), rows)
