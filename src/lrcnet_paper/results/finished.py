"""A finished run as artefacts see it: its result, its learning curve and, for trajectories, its roll-out.

It is read from a run folder, or from the one small JSON file that `collect` made of it; both give the same tables and
pictures, so that a report needs no weights and no raw data.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lrcnet_paper.results.analysis import read_analyses
from lrcnet_paper.training.files import write_text
from lrcnet_paper.training.result import FILE_NAME, Result

METRICS_FILE = "metrics.csv"
PREDICTION_FILE = "prediction.npz"
# A picture a few hundred pixels wide shows no more points of a curve or a trajectory than this.
KEPT_POINTS = 250

Curve = Sequence[float | None]


@dataclass(frozen=True)
class Finished:
    """One run.

    Attributes:
        result: what it ended with.
        history: column of the metrics file -> one value per epoch (or evaluation), None where it has none.
        prediction: name -> array as nested lists; of a trajectory `times` (N) and `states` (N, 2). Empty if there is
            none.
        analyses: name of an artefact -> what it measured on this run; see `analysis.py`.
    """

    result: Result
    history: Mapping[str, Curve] = field(default_factory=dict)
    prediction: Mapping[str, Any] = field(default_factory=dict)
    analyses: Mapping[str, Any] = field(default_factory=dict)

    def curve(self, column: str, *, over: Sequence[str] = ("iteration", "epoch")) -> tuple[list[float], list[float]]:
        """The points of a column that have a value, and where they lie: (epochs or iterations, values)."""
        where = next((self.history[name] for name in over if name in self.history), None)
        if where is None or column not in self.history:
            return [], []
        pairs = [
            (float(x), float(y))
            for x, y in zip(where, self.history[column], strict=True)
            if x is not None and y is not None and math.isfinite(y)
        ]
        return [x for x, _ in pairs], [y for _, y in pairs]


def read_runs(folder: str | os.PathLike[str]) -> list[Finished]:
    """Every finished run below a folder: run folders and collected files alike, in a fixed order.

    Raises:
        FileNotFoundError: if the folder does not exist.
        ValueError: if a result in it is broken.
    """
    root = Path(folder)
    if not root.is_dir():
        raise FileNotFoundError(f"{folder} must be a folder of runs, but there is none; `lrcnet reproduce` makes one")
    found: dict[tuple[Any, ...], Finished] = {}
    for path in sorted(root.rglob("*.json")):
        run = _read_folder(path.parent) if path.name == FILE_NAME else read_collected(path)
        if run is not None:
            found.setdefault(identity(run.result), run)
    return [found[key] for key in sorted(found, key=str)]


def identity(result: Result) -> tuple[Any, ...]:
    """What makes two results the same run."""
    return result.task, result.variant, result.model, result.budget, result.epochs, result.seed, result.command


def collect(runs: Iterable[Finished], folder: str | os.PathLike[str]) -> list[Path]:
    """Writes one small JSON file per run: the result, the thinned learning curve, the thinned trajectory.

    A run of a budget that was carried on takes the place of its shorter self.

    Returns:
        The files written; one that is there with the same content is left alone.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    written = []
    for run in runs:
        path = root / run.result.task / f"{_file_name(run.result)}.json"
        content: dict[str, Any] = asdict(run.result)
        content["history"] = {name: _rounded(values) for name, values in _thinned(run.history).items()}
        content["prediction"] = {name: _rounded(values) for name, values in _thinned(run.prediction).items()}
        if run.analyses:
            content["analyses"] = _rounded(run.analyses)
        text = _dump(content)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            write_text(path, text)
            written.append(path)
        for shorter in _shorter(path, run.result):
            shorter.unlink()
    return written


def read_collected(path: Path) -> Finished | None:
    """The run in a collected file, or None if the file is some other JSON."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name} must be a JSON file and is not ({error}); collect it again") from error
    names = {f.name for f in fields(Result)}
    if not isinstance(content, dict) or not names <= content.keys():
        return None
    result = Result(**{name: content[name] for name in names})
    return Finished(result, content.get("history", {}), content.get("prediction", {}), content.get("analyses", {}))


def _read_folder(folder: Path) -> Finished:
    history = _read_history(folder / METRICS_FILE)
    return Finished(Result.read(folder), history, _read_prediction(folder), read_analyses(folder))


def trained_so_far(folder: Path) -> int:
    """Epochs (or iterations) behind a run, finished or broken off; 0 where there is none."""
    history = _read_history(folder / METRICS_FILE)
    ends = [value for name in ("iteration", "epoch") for value in history.get(name, []) if value is not None]
    return int(max(ends, default=0))


def _read_history(path: Path) -> dict[str, list[float | None]]:
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
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

    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name].tolist() for name in arrays.files}


def _thinned(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Every so many-th entry of each column, the first and the last always among them."""
    length = max((len(values) for values in columns.values() if isinstance(values, list)), default=0)
    if length <= KEPT_POINTS:
        return dict(columns)
    kept = sorted({round(i * (length - 1) / (KEPT_POINTS - 1)) for i in range(KEPT_POINTS)})
    return {
        name: [values[i] for i in kept] if isinstance(values, list) and len(values) == length else values
        for name, values in columns.items()
    }


def _rounded(values: Any) -> Any:
    """Six digits: more than a picture or a table shows, and a third of the file."""
    if isinstance(values, Mapping):
        return {name: _rounded(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_rounded(value) for value in values]
    if isinstance(values, float):
        return float(f"{values:.6g}") if math.isfinite(values) else None
    return values


def _dump(content: Mapping[str, Any]) -> str:
    """JSON with one line per field, so that a diff of two runs can be read."""
    lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _file_name(result: Result, epochs: int | str | None = None) -> str:
    """Unique: a custom run may differ from another in its command alone."""
    length = result.epochs if epochs is None else epochs
    name = f"{result.variant}_{result.model}_{result.budget}_{length}_seed{result.seed}".replace("/", "-")
    if result.budget == "custom":
        name += f"_{hashlib.sha256(result.command.encode()).hexdigest()[:8]}"
    return name


def _shorter(path: Path, result: Result) -> list[Path]:
    """Files beside `path` of the same run after fewer epochs."""
    if result.budget == "custom":
        return []
    found = []
    for other in path.parent.glob(f"{_file_name(result, '*')}.json"):
        earlier = read_collected(other)
        if earlier is not None and earlier.result.epochs < result.epochs:
            found.append(other)
    return found
