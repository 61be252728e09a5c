"""Collected files: one small JSON file per finished run, with thinned curves, as `results/` keeps them."""

from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.training.atomic_files import write_text
from lrcnet_paper.training.budgets import CUSTOM
from lrcnet_paper.training.old_results import is_old_result
from lrcnet_paper.training.result import Result

# A picture a few hundred pixels wide shows no more points of a curve than this.
KEPT_POINTS = 250
# A trajectory winds: with fewer points a spiral would be drawn as a polygon. So it keeps them all, to four digits.
TRAJECTORY_DIGITS = 4
# Fields of a collected file that are not fields of the result.
MEASURED = ("history", "prediction", "analyses")


def collect(runs: Iterable[FinishedRun], folder: str | os.PathLike[str]) -> list[Path]:
    """Write one small JSON file per run: the result, the thinned learning curves, the trajectory.

    The file of a run that was continued replaces the file of the same run after fewer epochs. A trajectory or a
    measurement that a file already has stays, even if the run folder no longer has it.

    Returns:
        The files written; a file that exists with the same content is left alone.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    written = []
    for run in runs:
        path = root / run.result.task / f"{_file_name(run.result, run.result.epochs)}.json"
        text = _dump(_content(_keep_measured(run, path)))
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            write_text(path, text)
            written.append(path)
        for shorter in _shorter_runs(path, run.result):
            shorter.unlink()
    return written


def _keep_measured(run: FinishedRun, path: Path) -> FinishedRun:
    """Add the trajectory and the measurements that the collected file of the same run already has."""
    earlier = read_collected(path) if path.exists() else None
    if earlier is None or earlier.result.as_dict() != run.result.as_dict():
        return run
    return replace(run, prediction=run.prediction or earlier.prediction, analyses={**earlier.analyses, **run.analyses})


def read_collected(path: Path) -> FinishedRun | None:
    """Read the run in a collected file; None if the file is some other JSON."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no text
        raise ValueError(f"{path.name} must be a JSON file and is not ({error}); collect it again") from error
    if not isinstance(content, dict) or not (is_old_result(content) or _has_result(content)):
        return None
    try:
        result = Result.from_dict({name: value for name, value in content.items() if name not in MEASURED})
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path.name} must be a collected run: {error}") from error
    measured = [content.get(name, {}) for name in MEASURED]
    if not all(isinstance(part, dict) for part in measured):
        raise ValueError(f"{path.name} must map names to values in {', '.join(MEASURED)}; collect it again")
    return FinishedRun(result, *measured)


def _has_result(content: Mapping[str, Any]) -> bool:
    return all(field.name in content for field in fields(Result))


def _content(run: FinishedRun) -> dict[str, Any]:
    content = run.result.as_dict()
    content["history"] = {name: _round_floats(values) for name, values in _thin(run.history).items()}
    content["prediction"] = {name: _round_floats(v, TRAJECTORY_DIGITS) for name, v in run.prediction.items()}
    if run.analyses:
        content["analyses"] = _round_floats(run.analyses)
    return content


def _thin(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return at most KEPT_POINTS evenly spread entries of each column, always with the first and the last."""
    length = max((len(values) for values in columns.values() if isinstance(values, list)), default=0)
    if length <= KEPT_POINTS:
        return dict(columns)
    indices = sorted({round(i * (length - 1) / (KEPT_POINTS - 1)) for i in range(KEPT_POINTS)})
    return {
        name: [values[i] for i in indices] if isinstance(values, list) and len(values) == length else values
        for name, values in columns.items()
    }


def _round_floats(values: Any, digits: int = 6) -> Any:
    """Round every number: six digits are more than a table shows, and the file is a third as large."""
    if isinstance(values, Mapping):
        return {name: _round_floats(value, digits) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_round_floats(value, digits) for value in values]
    if isinstance(values, float):
        return float(f"{values:.{digits}g}") if math.isfinite(values) else None
    return values


def _dump(content: Mapping[str, Any]) -> str:
    """Write JSON with one line per field, so that people can read a diff of two runs."""
    lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _file_name(result: Result, epochs: int | str) -> str:
    spec = result.spec
    name = f"{spec.slug()}_{spec.model}_{spec.budget}_{epochs}_seed{spec.seed}".replace("/", "-")
    # Two custom runs of the same name, or runs with options, may have different settings; the digest tells them apart.
    return f"{name}_{spec.digest()}" if spec.budget == CUSTOM or spec.options else name


def _shorter_runs(path: Path, result: Result) -> list[Path]:
    """List the files beside `path` that hold the same run after fewer epochs."""
    if result.budget == CUSTOM or result.spec.options:
        return []
    shorter = []
    before, _, after = _file_name(result, "*").partition("*")
    for other in path.parent.glob(f"{glob.escape(before)}*{glob.escape(after)}.json"):
        earlier = read_collected(other)
        same = earlier is not None and earlier.result.spec.without_length() == result.spec.without_length()
        if earlier is not None and same and earlier.result.epochs < result.epochs:
            shorter.append(other)
    return shorter
