"""The folder that `lrcnet fit` leaves: the network, how to read tables for it, its measures and its report."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lrcnet import folders
from lrcnet.estimators.preparation import Preparation
from lrcnet.own_data.examples import example_inputs, write_examples
from lrcnet.own_data.fit import Fit, make_estimator
from lrcnet.own_data.report import write_report
from lrcnet.own_data.schema import Schema
from lrcnet.saving import CONFIG

METRICS, REPORT = "metrics.json", "report.html"
KEY = "own_data"


@dataclass(frozen=True)
class FittedFolder:
    """A folder that has been read.

    Attributes:
        estimator: ready to predict.
        schema: the meaning of columns.
        seen: fingerprints of the series of training.
        path: the folder.
    """

    estimator: Any
    schema: Schema
    seen: frozenset[str]
    path: Path


def fingerprint(name: str) -> str:
    """Return a short hash of the name of a series; a folder keeps no names of patients."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def check_target_folder(out: str | os.PathLike[str]) -> Path:
    """Return the path if a folder may be written there: it is free, empty, or an earlier result."""
    path = Path(out)
    if path.is_file():
        raise ValueError(f"--out must be a folder, but {path} is a file; choose another name")
    if path.is_dir() and any(path.iterdir()) and not (path / METRICS).is_file():
        raise ValueError(f"--out must be a new folder or an earlier result of fit, but {path} holds other files")
    return path


def write_folder(result: Fit, out: str | os.PathLike[str], source: str) -> Path:
    """Write everything into a new folder, which then takes its place: it is complete or not there.

    Args:
        source: name of the training file, for the report.
    """
    target = check_target_folder(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        estimator, schema = result.estimator, result.schema
        extra = {
            "schema": schema.to_json(),
            "preparation": estimator.preparation_.to_json(),
            "cell": estimator.cell,
            "units": int(estimator.units),
            "classes": [str(name) for name in getattr(estimator, "classes_", [])],
            "seen": sorted(fingerprint(name) for name in {*result.split.training.ids, *result.split.test.ids}),
        }
        estimator.module_.save(temporary, {KEY: extra, **_for_streams(result)})
        write_examples(example_inputs(result), temporary)
        (temporary / METRICS).write_text(json.dumps(_metrics(result, source), indent=2) + "\n")
        write_report(result, temporary / REPORT, source)
        temporary.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return target


def read_folder(path: str | os.PathLike[str]) -> FittedFolder:
    """Read a folder that `write_folder` wrote.

    Raises:
        ValueError: if it is none.
    """
    folder = Path(path)
    if not (folder / CONFIG).is_file() or KEY not in folders.read_extra(folder):
        raise ValueError(f"MODEL must be a folder that `lrcnet fit` wrote, but {folder} is none; check the path")
    extra = folders.read_extra(folder)[KEY]
    schema = Schema.from_json(extra["schema"])
    estimator = make_estimator(schema, extra["cell"], units=extra["units"])
    estimator.module_ = folders.load(folder)
    estimator.preparation_ = Preparation(**extra["preparation"])
    estimator.classes_ = np.array(extra["classes"])
    estimator.single_target_ = True
    return FittedFolder(estimator, schema, frozenset(extra["seen"]), folder)


def _for_streams(result: Fit) -> dict[str, Any]:
    """Return what a stream has to know: the channels, the unit of time, the gap before the first reading."""
    prepared, schema = result.estimator.preparation_, result.schema
    return {
        "channels": schema.channels,
        "mask": prepared.mask,
        "time_unit": "s" if schema.dates else None,
        "typical_gap": prepared.time_scale,
    }


def _metrics(result: Fit, source: str) -> dict[str, Any]:
    return {
        "file": source,
        "task": result.schema.task,
        "training_series": len(result.split.training.ids),
        "test_series": len(result.split.test.ids),
        "test_examples": len(result.predictions.truth),
        "models": [
            {"name": one.name, "parameters": one.parameters, "standard_error": one.error, **one.measures}
            for one in result.candidates
        ],
        "channel_weights": result.weights,
        "history": result.estimator.history_,
    }
