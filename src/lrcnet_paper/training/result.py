"""What a finished run leaves: one small JSON file that tables and reports are made of."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from lrcnet.errors import one_of
from lrcnet.version import __version__
from lrcnet_paper.training.files import write_json

FILE_NAME = "result.json"
STATUSES = ("finished", "diverged")


@dataclass(frozen=True)
class Result:
    """One finished run.

    Attributes:
        task: the task's name.
        variant: the task's variant, and after a plus the solver and the rate's schedule where these are not the model's
            or the task's own.
        model: the model's name.
        seed: the seed.
        budget: smoke, quick, paper or custom.
        parameters: trainable numbers of the model.
        epochs: how many were trained; iterations where the task counts these.
        best_epoch: the one whose weights gave the numbers: of best validation, or the last.
        seconds_per_epoch: median wall-clock time of an epoch's training, evaluation excluded; of an iteration likewise.
        metrics: name -> finite number. The reported one has the task's own name of it (`Task.metric`).
        status: "finished", or "diverged" where a loss or the reported number left the finite numbers.
        versions: of Python and of the libraries.
        machine: system, processor, cores, threads.
        command: what to type to get it again.
    """

    task: str
    variant: str
    model: str
    seed: int
    budget: str
    parameters: int
    epochs: int
    best_epoch: int
    seconds_per_epoch: float
    metrics: Mapping[str, float]
    status: str
    versions: Mapping[str, str]
    machine: Mapping[str, str | int]
    command: str

    def __post_init__(self) -> None:
        one_of("status", self.status, STATUSES)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write atomically to a file, or as result.json into a folder."""
        write_json(_file(path), asdict(self))

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
        except json.JSONDecodeError as error:
            raise ValueError(f"{file} must be a JSON file and is not ({error}); delete it and run again") from error
        names = [f.name for f in fields(cls)]
        if not isinstance(content, dict) or sorted(content) != sorted(names):
            given = sorted(content) if isinstance(content, dict) else type(content).__name__
            raise ValueError(f"{file} must be a result with the fields {names}; it has {given}")
        return cls(**content)


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that decide a run's numbers."""
    found = {"python": platform.python_version(), "lrcnet": __version__, "torch": str(torch.__version__)}
    for name in ("numpy", "lightning", "torchdiffeq"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """What a reader of a timing must know about the machine; nothing that names it."""
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
