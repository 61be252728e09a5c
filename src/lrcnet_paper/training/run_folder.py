"""The folder of one run: the lock on it, the check that it holds this run, and its small files.

config.json       the run, and the settings that the recipe and the model add to it
environment.json  versions, machine and threads of the first start
metrics.csv       one row per evaluation, the same bytes however often the run was interrupted
timings.csv       seconds per row
last.ckpt, previous.ckpt, best.ckpt
result.json       the result, when the run is finished
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lrcnet_paper.training.atomic_files import remove_leftovers, write_json, write_text
from lrcnet_paper.training.checkpoint import LAST, Row
from lrcnet_paper.training.result import FILE_NAME as RESULT
from lrcnet_paper.training.result import machine, versions
from lrcnet_paper.training.spec import RunSpec

CONFIG, ENVIRONMENT, METRICS, TIMINGS, LOCK = (
    "config.json",
    "environment.json",
    "metrics.csv",
    "timings.csv",
    ".lock",
)


class BusyFolderError(RuntimeError):
    """Another process is training the run in a folder."""


class LongerRunError(ValueError):
    """A folder holds more of a run than was asked for."""


def claim(folder: Path, spec: RunSpec, resolved: dict[str, Any]) -> None:
    """Make a folder the folder of this run, or check that it already is.

    Raises:
        ValueError: if it holds another run; the message names the differences.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    check_same_run(folder, spec)
    write_json(folder / CONFIG, {"run": spec.as_dict(), "resolved": resolved})
    if not (folder / ENVIRONMENT).exists():
        write_json(folder / ENVIRONMENT, {"versions": versions(), "machine": machine()})


def check_same_run(folder: Path, spec: RunSpec) -> None:
    """Raise ValueError if the folder holds another run; runs that differ only in length count as the same.

    A run that failed before its first checkpoint does not count: its command was probably corrected.
    """
    existing = read_spec(folder)
    if existing is None or not any((folder / name).exists() for name in (LAST, RESULT, METRICS)):
        return
    before, now = existing.identity(), spec.identity()
    if before != now:
        names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        changes = ", ".join(f"{name} {getattr(existing, name)!r} there, {getattr(spec, name)!r} here" for name in names)
        raise ValueError(f"the run folder {folder} holds another run ({changes}); choose another folder with --out")


def read_spec(folder: Path) -> RunSpec | None:
    """Read the description of the run in a folder; None if the folder holds none.

    Raises:
        ValueError: if its config.json is not the description of a run.
    """
    path = folder / CONFIG
    if not path.exists():
        return None
    try:
        return RunSpec.from_dict(json.loads(path.read_text(encoding="utf-8"))["run"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not the description of a run ({error}); choose another folder") from error


def first_threads(folder: Path) -> int | None:
    """Return the number of threads that the run was first started with; the last digits of sums depend on it."""
    path = folder / ENVIRONMENT
    if not path.exists():
        return None
    return int(json.loads(path.read_text(encoding="utf-8"))["machine"]["threads"])


def write_tables(folder: Path, unit: str, history: Sequence[Row], seconds: Sequence[float]) -> None:
    """Rewrite metrics.csv and timings.csv; numbers are written as their shortest exact decimals."""
    if not history:
        return
    columns = list(history[0])
    lines = [",".join(columns), *(",".join(repr(row[column]) for column in columns) for row in history)]
    write_text(folder / METRICS, "\n".join(lines) + "\n")
    lines = [f"{unit},seconds", *(f"{row[unit]},{s:.6f}" for row, s in zip(history, seconds, strict=True))]
    write_text(folder / TIMINGS, "\n".join(lines) + "\n")


@contextlib.contextmanager
def lock_folder(folder: Path, patience: float = 10.0) -> Iterator[None]:
    """Lock a folder against other processes on this machine; the lock ends with the process, however that ends.

    Raises:
        BusyFolderError: if another process still holds it after `patience` seconds.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # A link would be followed, and the file that it points to emptied.
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError(f"{folder / LOCK} must be a file of this run, but is a link; delete it") from error
    with os.fdopen(descriptor, "w") as file:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BusyFolderError(
                        f"another process is training the run in {folder}; wait for it, or choose another folder "
                        "with --out"
                    ) from None
                time.sleep(0.2)
        yield
