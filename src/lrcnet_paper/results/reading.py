"""Reading finished runs: all of them below a folder, from run folders and from collected files alike.

Both sources give the same tables and pictures, so that a report needs no weights and no raw data.
"""

from __future__ import annotations

import csv
import math
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

from lrcnet_paper.results.analysis import read_analyses
from lrcnet_paper.results.collected import read_collected
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.training.result import FILE_NAME, Result
from lrcnet_paper.training.spec import RunSpec

METRICS_FILE = "metrics.csv"
PREDICTION_FILE = "prediction.npz"


def read_runs(folder: str | os.PathLike[str]) -> list[FinishedRun]:
    """Read every finished run below a folder, each once, in a fixed order.

    Raises:
        FileNotFoundError: if the folder does not exist.
        ValueError: if a result in it is broken.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{folder} must be a folder of runs, but there is none; `lrcnet reproduce` makes one")
    runs: dict[tuple[RunSpec, int], FinishedRun] = {}
    for path in sorted(root.rglob("*.json")):
        run = read_run_folder(path.parent) if path.name == FILE_NAME else read_collected(path)
        if run is not None:
            # The same run may lie here twice: in its folder and as a collected file.
            runs.setdefault((run.result.spec, run.result.epochs), run)
    return sorted(runs.values(), key=lambda run: _order(run.result))


def _order(result: Result) -> tuple[Any, ...]:
    spec = result.spec
    return spec.task, spec.slug(), spec.model, spec.budget, result.epochs, spec.seed, spec.command()


def read_run_folder(folder: Path) -> FinishedRun:
    """Read the finished run in a run folder."""
    history = _read_history(folder / METRICS_FILE)
    return FinishedRun(Result.read(folder), history, _read_prediction(folder), read_analyses(folder))


def trained_so_far(folder: Path) -> int:
    """Count the epochs (or iterations) of a run in its folder, finished or interrupted; 0 if there is none."""
    history = _read_history(folder / METRICS_FILE)
    ends = [value for name in ("iteration", "epoch") for value in history.get(name, []) if value is not None]
    return int(max(ends, default=0))


def _read_history(path: Path) -> dict[str, list[float | None]]:
    if not path.exists():
        return {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path} must be a table of numbers and is not ({error}); delete the run and train it"
        ) from error
    names = list(rows[0]) if rows else []
    return {name: [_number(row[name]) for row in rows] for name in names}


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _read_prediction(folder: Path) -> dict[str, Any]:
    path = folder / PREDICTION_FILE
    if not path.exists():
        return {}
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name].tolist() for name in arrays.files}
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} must hold the arrays of a roll-out and does not ({error}); delete it") from error
