"""A user's own recordings for lane keeping: found in a folder, split by drives, labels in a unit that trains.

A network's first answers are of the size of a car's curvatures, about 0.01 1/m. The label of a small car, whose
curvatures are ten times as large, or of a wheel angle in degrees, is divided by a power of ten until it has that size;
the unit is logged.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from lrcnet_paper.driving.real_recordings import from_folder
from lrcnet_paper.driving.recording import DriveRecording, open_recording

from .data_folders import cache_folder
from .task import DataPath

NOTES = "recordings of the user; curvatures in 1/m times the factor that the log names"
# The root mean square of curvatures that trains as it is; outside, the label's unit is changed.
USUAL = (0.002, 0.05)
SHARES = {"train": 0.7, "validation": 0.15, "test": 0.15}
_log = logging.getLogger("lrcnet")


@dataclass(frozen=True)
class OwnRecordings:
    """Recordings of a folder.

    Attributes:
        drives: one recording per drive, labels multiplied by `factor`.
        factor: a power of ten; 1 if the curvatures are of a car's size.
    """

    drives: tuple[DriveRecording, ...]
    factor: float

    def split(self, name: str, length: int) -> DriveRecording:
        """Return the frames of a split: whole drives if there are several, else consecutive parts of the one.

        Raises:
            ValueError: if the part is too short for one sequence of `length` frames.
        """
        if len(self.drives) < len(SHARES):
            pieces = [_part(drive, name) for drive in self.drives]
        else:
            count = len(self.drives)
            test, validation = (max(1, round(SHARES[part] * count)) for part in ("test", "validation"))
            bounds = {"train": (0, count - test - validation), "validation": (count - test - validation, count - test)}
            first, last = bounds.get(name, (count - test, count))
            pieces = list(self.drives[first:last])
        if all(len(piece) < length for piece in pieces):
            raise ValueError(
                f"the {name} part of the recordings must hold {length} frames in a row, but its longest drive has "
                f"{max(map(len, pieces))}; record longer drives"
            )
        return _join(pieces)


def read_own(data: DataPath | None) -> OwnRecordings:
    """Read the recordings of a folder: itself or its sub-folders hold recording.json (ours), or labels.csv and images.

    Raises:
        ValueError: if there is no folder, or no recording in it.
    """
    if data is None:
        raise ValueError("own recordings need their folder, but --data is not given; name it")
    return _read(Path(data))


@lru_cache(maxsize=4)
def _read(root: Path) -> OwnRecordings:
    folders = [root, *sorted(path for path in root.glob("*") if path.is_dir())]
    recordings = [one for folder in folders if (one := _open(folder)) is not None]
    if not recordings:
        raise ValueError(
            f"--data must be a folder of recordings, that is of images with a labels.csv, but {root} holds none; see "
            "docs/driving.md"
        )
    drives = [drive for recording in recordings for drive in _drives(recording)]
    size = float(np.sqrt(np.mean(np.concatenate([drive.curvature for drive in drives]).astype(np.float64) ** 2)))
    if size == 0:
        raise ValueError(f"curvatures of the recordings must differ from 0, but all in {root} are 0; check labels.csv")
    factor = 1.0 if USUAL[0] <= size <= USUAL[1] else 10.0 ** round(math.log10(0.01 / size))
    _log.warning(
        "%d drives of %d frames; curvatures have a root mean square of %.3g 1/m and are learned times %g",
        len(drives),
        sum(map(len, drives)),
        size,
        factor,
    )
    times = np.float32(factor)
    scaled = [replace(d, curvature=d.curvature * times, road_curvature=d.road_curvature * times) for d in drives]
    return OwnRecordings(tuple(scaled), factor)


def _open(folder: Path) -> DriveRecording | None:
    if (folder / "recording.json").is_file():
        return open_recording(folder)
    labels = folder / "labels.csv"
    if not labels.is_file():
        return None
    # The labels decide which cached copy is the right one.
    key = hashlib.sha256(f"{folder.resolve()}".encode() + labels.read_bytes()).hexdigest()[:16]
    copy = cache_folder() / "driving" / f"recordings-{key}"
    return open_recording(copy) if (copy / "recording.json").is_file() else from_folder(folder, copy)


def _drives(recording: DriveRecording) -> list[DriveRecording]:
    ends = recording.starts.tolist()
    return [_cut(recording, first, last) for first, last in itertools.pairwise(ends)]


def _part(drive: DriveRecording, name: str) -> DriveRecording:
    """Return a share of one drive, in the order of `SHARES`."""
    shares = list(SHARES)
    before = sum(SHARES[other] for other in shares[: shares.index(name)])
    first, last = (round(len(drive) * share) for share in (before, before + SHARES[name]))
    return _cut(drive, first, last)


_ARRAYS = ("frames", "curvature", "offset", "heading", "speed", "road_curvature", "season", "road")


def _cut(recording: DriveRecording, first: int, last: int) -> DriveRecording:
    arrays = {name: getattr(recording, name)[first:last] for name in _ARRAYS}
    return DriveRecording(**arrays, starts=np.array([0, last - first]))


def _join(pieces: list[DriveRecording]) -> DriveRecording:
    if len(pieces) == 1:
        return pieces[0]
    arrays = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _ARRAYS}
    return DriveRecording(**arrays, starts=np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])]))
