"""What is measured on a trained network after its run, and kept beside it: crashes, attention, neural activity.

An artefact that needs such measurements has, besides the contract of `artefact.py`,

- `wants(result) -> bool`: whether a finished run is one of those it measures,
- `analyse(folder) -> dict`: the measurement, as plain JSON values; it loads the weights from the run's folder.

Each is measured once, written to `analyses/NAME.json` in the run's folder, and reaches `render` as
`Finished.analyses[NAME]`, from run folders and from collected files alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lrcnet_paper.artefacts import MeasuringArtefact, load
from lrcnet_paper.training.files import write_atomically
from lrcnet_paper.training.result import FILE_NAME, Result

FOLDER = "analyses"


def analyse_all(
    names: Sequence[str],
    folder: str | os.PathLike[str],
    only: Callable[[Result], bool] = lambda result: True,
    tell: Callable[[str], None] = lambda line: None,
) -> int:
    """Makes the missing measurements of artefacts on all finished runs below a folder.

    Args:
        names: of artefacts; those that measure nothing are passed over.
        folder: of runs.
        only: further condition on a run.
        tell: called with a line about each measurement that is made.

    Returns:
        How many were made.
    """
    made = 0
    for path in sorted(Path(folder).rglob(FILE_NAME)):
        place, result = path.parent, Result.read(path.parent)
        for name in names:
            module = load(name)
            if not isinstance(module, MeasuringArtefact) or result.status != "finished":
                continue
            target = place / FOLDER / f"{name}.json"
            fresh = target.exists() and target.stat().st_mtime >= path.stat().st_mtime
            if fresh or not only(result) or not module.wants(result):
                continue
            tell(f"{name}: {result.task} {result.variant} {result.model} seed {result.seed}")
            content = json.dumps(module.analyse(place), allow_nan=False)
            target.parent.mkdir(exist_ok=True)
            write_atomically(target, lambda file, text=content: file.write(text.encode()))  # type: ignore[misc]
            made += 1
    return made


def read_analyses(folder: Path) -> Mapping[str, Any]:
    """name of an artefact -> its measurement on the run in a folder."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((folder / FOLDER).glob("*.json"))}
