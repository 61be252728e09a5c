"""Measurements on trained networks after their runs, such as crashes, attention and neural activity.

Each is made once, written to `analyses/NAME.json` in the run's folder, and reaches an artefact's `render` as
`FinishedRun.analyses[NAME]`, from run folders and from collected files alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from lrcnet_paper.training.atomic_files import write_text
from lrcnet_paper.training.result import FILE_NAME, Result

FOLDER = "analyses"


class Measurement(Protocol):
    """A measurement on the runs that it wants, as `MeasuringArtefact` declares it."""

    @property
    def wants(self) -> Callable[[Result], bool]: ...
    @property
    def analyse(self) -> Callable[[Path], dict[str, Any]]: ...


def analyse_all(
    measurements: Mapping[str, Measurement],
    folder: str | os.PathLike[str],
    only: Callable[[Result], bool] = lambda result: True,
    report: Callable[[str], None] = lambda line: None,
) -> int:
    """Make the missing measurements on all finished runs below a folder.

    Args:
        measurements: name -> measurement.
        folder: a folder of run folders.
        only: further condition on a run.
        report: called with one line before each measurement.

    Returns:
        The number of measurements made.
    """
    count = 0
    for path in sorted(Path(folder).rglob(FILE_NAME)):
        result = Result.read(path)
        if result.status != "finished" or not only(result):
            continue
        for name, measurement in measurements.items():
            target = path.parent / FOLDER / f"{name}.json"
            up_to_date = target.exists() and target.stat().st_mtime >= path.stat().st_mtime
            if up_to_date or not measurement.wants(result):
                continue
            report(f"{name}: {result.task} {result.spec.label()} {result.model} seed {result.seed}")
            content = json.dumps(measurement.analyse(path.parent), allow_nan=False)
            target.parent.mkdir(exist_ok=True)
            write_text(target, content)
            count += 1
    return count


def read_analyses(folder: Path) -> Mapping[str, Any]:
    """Read the measurements on the run in a folder: name -> measurement."""
    measurements = {}
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            measurements[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} must be a JSON file and is not ({error}); delete it and measure again") from error
    return measurements
