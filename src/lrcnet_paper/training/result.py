"""`Result`: the outcome of a finished run, one small JSON file that tables and reports are made of."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from lrcnet.errors import one_of, positive_size
from lrcnet.version import __version__
from lrcnet_paper.training.atomic_files import write_json
from lrcnet_paper.training.old_results import convert_old_result, is_old_result
from lrcnet_paper.training.spec import HasRunSpec, RunSpec

FILE_NAME = "result.json"
STATUSES = ("finished", "diverged")
UNITS = ("epoch", "iteration")


@dataclass(frozen=True)
class Result(HasRunSpec):
    """One finished run.

    Attributes:
        spec: the run; every choice that changes its numbers is one of its fields.
        rate: learning rate of the first step: the run's own or the recipe's.
        unit: unit of the length, "epoch" or "iteration".
        parameters: number of trainable parameters.
        epochs: number of units that were trained; `spec.epochs` or `spec.iterations` is the number asked for.
        updates: number of optimiser updates; None in older results of tasks that count epochs.
        best_epoch: the unit whose weights gave the metrics: the one of best validation, or the last.
        seconds_per_epoch: median wall-clock time of training one unit, evaluation excluded.
        metrics: name -> finite number. The reported metric is named as in `Task.metric`.
        status: "finished", or "diverged" if a loss or the reported metric was not finite.
        versions: versions of Python and of the libraries.
        machine: system, processor, cores, threads.
    """

    spec: RunSpec
    rate: float
    unit: str
    parameters: int
    epochs: int
    updates: int | None
    best_epoch: int
    seconds_per_epoch: float
    metrics: Mapping[str, float]
    status: str
    versions: Mapping[str, str]
    machine: Mapping[str, str | int]

    def __post_init__(self) -> None:
        one_of("status", self.status, STATUSES)
        one_of("unit", self.unit, UNITS)
        for name in ("parameters", "epochs", "best_epoch"):
            positive_size(name, getattr(self, name), least=0)
        for name, value in (("rate", self.rate), ("seconds_per_epoch", self.seconds_per_epoch)):
            _check_finite(name, value)
        for name in ("metrics", "versions", "machine"):
            if not isinstance(getattr(self, name), Mapping):
                raise TypeError(f"{name} must map names to values, but is {getattr(self, name)!r}")
        for name, value in self.metrics.items():
            _check_finite(f"the metric {name}", value)

    @property
    def seed(self) -> int:
        """The random seed."""
        return self.spec.seed

    @property
    def command(self) -> str:
        """The command line that makes this run again."""
        return self.spec.command()

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; the inverse of `from_dict`."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"spec": self.spec.as_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Result:
        """Make a result from the values that `as_dict` returns, or from those of an older version.

        Raises:
            ValueError: for missing or unknown fields.
        """
        if is_old_result(content):
            content = convert_old_result(content)
        names = [f.name for f in fields(cls)]
        if sorted(content) != sorted(names):
            raise ValueError(f"a result must have the fields {names}; got {sorted(content)}")
        return cls(**{**content, "spec": RunSpec.from_dict(content["spec"])})

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write atomically to a file, or as result.json into a folder."""
        write_json(_file(path), self.as_dict())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Result:
        """Read a result.json, or the one in a folder.

        Raises:
            FileNotFoundError: if there is none.
            ValueError: if it is not a result.
        """
        file = _file(path)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file} must be a JSON file and is not ({error}); delete it and run again") from error
        if not isinstance(content, dict):
            raise ValueError(f"{file} must be a result with named fields; it is a {type(content).__name__}")
        try:
            return cls.from_dict(content)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{file} must be a result: {error}") from error


def _check_finite(what: str, given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError(f"{what} must be a finite number, but is {given!r}; make the result again")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide a run's numbers."""
    by_name = {"python": platform.python_version(), "lrcnet": __version__, "torch": str(torch.__version__)}
    for name in ("numpy", "lightning", "torchdiffeq"):
        try:
            by_name[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return by_name


def machine() -> dict[str, Any]:
    """Describe the machine as far as a timing depends on it; nothing here identifies it."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
    }


@lru_cache
def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _file(path: str | os.PathLike[str]) -> Path:
    file = Path(path)
    return file / FILE_NAME if file.is_dir() else file
