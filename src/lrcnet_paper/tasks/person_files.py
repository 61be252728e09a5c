"""Readers of the person-activity data: the official comma-separated file, whole or in part, and the coarse arrays."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from .unpack import check_unpacked_size, read_decompressed

TAGS = ("010-000-024-033", "010-000-030-096", "020-000-033-111", "020-000-032-221")
"""Left ankle, right ankle, chest, belt: the order of the one-hot columns."""

CLASSES = ("lying", "sitting", "standing up", "walking", "falling", "on all fours", "sitting on the ground")

ACTIVITIES = {
    "lying down": 0,
    "lying": 0,
    "sitting down": 1,
    "sitting": 1,
    "standing up from lying": 2,
    "standing up from sitting": 2,
    "standing up from sitting on the ground": 2,
    "walking": 3,
    "falling": 4,
    "on all fours": 5,
    "sitting on the ground": 6,
}
"""The eleven activities of the file -> the seven classes of the benchmark."""

FIRST_GAP = 5.0
"""The gap that stands in for the undefined one before the first reading of a sequence."""

_TICKS_PER_UNIT = 1_000_000  # 100 ns ticks in the benchmark's unit of 100 ms


@dataclass(frozen=True)
class ActivitySequence:
    """One recorded sequence of a person's activities.

    Attributes:
        name: A01..E05, the person's letter and the number of the take.
        features: (rows, 7) float32: one-hot tag, then x, y, z in metres.
        dt: (rows,) float32, the gap before each reading in units of 100 ms; None if the file has no timestamps.
        labels: (rows,) int64, 0..6.
    """

    name: str
    features: NDArray[np.float32]
    dt: NDArray[np.float32] | None
    labels: NDArray[np.int64]


def _features(tags: NDArray[np.int64], places: NDArray[np.float64]) -> NDArray[np.float32]:
    one_hot = np.eye(len(TAGS), dtype=np.float32)[tags]
    return np.concatenate([one_hot, places.astype(np.float32)], axis=1)


_COMPRESSED: dict[str, Callable[[Path], io.BufferedIOBase]] = {".xz": lzma.LZMAFile, ".gz": gzip.GzipFile}


def _open_text(path: Path) -> TextIO:
    if path.suffix not in _COMPRESSED:
        return path.open(encoding="ascii", newline=None)
    with _COMPRESSED[path.suffix](path) as file:
        return io.TextIOWrapper(io.BytesIO(read_decompressed(file, path.name)), encoding="ascii", newline=None)


def _parse(line: str, where: str) -> tuple[str, int, int, tuple[float, float, float], int]:
    fields = line.rstrip("\n").split(",")
    if len(fields) != 8:
        raise ValueError(
            f"{where} must have 8 fields (sequence, tag, ticks, date, x, y, z, activity) and has {len(fields)}: "
            f"{line.strip()[:80]!r}; the file is truncated or not the right one, get it again"
        )
    name, tag, ticks, _, x, y, z, activity = fields
    if tag not in TAGS:
        raise ValueError(f"{where} must name one of the tags {list(TAGS)}; it has {tag!r}")
    if activity not in ACTIVITIES:
        raise ValueError(f"{where} must name one of the activities {list(ACTIVITIES)}; it has {activity!r}")
    try:
        return name, TAGS.index(tag), _read_ticks(ticks), (_finite(x), _finite(y), _finite(z)), ACTIVITIES[activity]
    except ValueError:
        raise ValueError(f"{where} must have finite numbers as ticks, x, y and z; it has {[ticks, x, y, z]}") from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _read_ticks(text: str) -> int:
    ticks = int(text)
    # Differences are taken in 64 bits.
    if abs(ticks) >= 1 << 62:
        raise ValueError(text)
    return ticks


def _group_rows(
    path: Path, rows: Iterable[tuple[str, int, int, tuple[float, float, float], int]]
) -> tuple[ActivitySequence, ...]:
    grouped: dict[str, list[tuple[int, int, tuple[float, float, float], int]]] = {}
    current = None
    for name, *row in rows:
        if name != current and name in grouped:
            raise ValueError(f"{path.name} must hold each sequence in one piece; {name} begins a second time")
        grouped.setdefault(name, []).append(cast(Any, tuple(row)))
        current = name
    if not grouped:
        raise ValueError(f"{path.name} must hold readings; it is empty, get it again")
    result = []
    for name, group in grouped.items():
        tags, ticks, places, labels = zip(*group, strict=True)
        # Ticks have 18 digits: subtract as integers, since float64 would round them.
        gaps = np.diff(np.array(ticks, dtype=np.int64)) / _TICKS_PER_UNIT
        result.append(
            ActivitySequence(
                name,
                _features(np.array(tags), np.array(places)),
                np.concatenate([[FIRST_GAP], gaps]).astype(np.float32),
                np.array(labels, dtype=np.int64),
            )
        )
    return tuple(result)


def read_official(path: Path) -> tuple[ActivitySequence, ...]:
    """Read the official format, plain or compressed (.xz, .gz): every row is one step, in file order.

    Args:
        path: `ConfLongDemo_JSI.txt`, or a part of it.

    Returns:
        The sequences in file order.

    Raises:
        ValueError: for a file that is truncated, empty or not of this format; the message names the line.
    """
    try:
        with _open_text(path) as lines:
            rows = [
                _parse(line, f"line {number} of {path.name}") for number, line in enumerate(lines, 1) if line.strip()
            ]
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path.name} must be a complete text file, plain or compressed, and is not ({error})"
        ) from error
    return _group_rows(path, rows)


def read_coarse(path: Path) -> tuple[ActivitySequence, ...]:
    """Read the coarse arrays: all sequences, coordinates in whole decimetres, no timestamps.

    Args:
        path: `person_activity_coarse.npz`.

    Returns:
        The sequences in file order, with `dt` None.

    Raises:
        ValueError: for a file that lacks an array or has arrays that do not fit together.
    """
    wanted = ("sequence", "sequence_names", "tag", "tag_names", "xyz_decimetre", "activity", "activity_names")
    # numpy leaves a file open when it is not an archive, so it gets a handle that is closed here.
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                check_unpacked_size(path.name, sum(member.file_size for member in archive.zip.infolist()))
                missing = [name for name in wanted if name not in archive.files]
                arrays = {name: archive[name] for name in wanted if name in archive.files}
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path.name} must be a complete .npz file and is not ({error})") from error
    if missing:
        raise ValueError(f"{path.name} must hold the arrays {list(wanted)}; it lacks {missing}")
    sequence = arrays["sequence"]
    rows = len(sequence)
    shapes = {name: arrays[name].shape for name in ("tag", "xyz_decimetre", "activity")}
    if rows == 0 or shapes != {"tag": (rows,), "xyz_decimetre": (rows, 3), "activity": (rows,)}:
        raise ValueError(f"{path.name} must hold one tag, place and activity for each of {rows} rows; it has {shapes}")
    tag_names, activity_names = arrays["tag_names"].tolist(), arrays["activity_names"].tolist()
    unknown = [name for name in tag_names if name not in TAGS] + [a for a in activity_names if a not in ACTIVITIES]
    if unknown:
        raise ValueError(f"{path.name} must name the benchmark's tags and activities only; it has {unknown}")
    if (np.diff(sequence.astype(np.int64)) < 0).any():
        raise ValueError(f"{path.name} must hold each sequence in one piece; its rows are out of order")
    for name, limit in (("sequence", "sequence_names"), ("tag", "tag_names"), ("activity", "activity_names")):
        if arrays[name].max() >= len(arrays[limit]):
            raise ValueError(f"{path.name} must have {name} below {len(arrays[limit])}; it has {arrays[name].max()}")
    tags = np.array([TAGS.index(name) for name in tag_names])[arrays["tag"]]
    labels = np.array([ACTIVITIES[name] for name in activity_names], dtype=np.int64)[arrays["activity"]]
    features = _features(tags, arrays["xyz_decimetre"] / 10.0)
    chosen = [(str(name), sequence == number) for number, name in enumerate(arrays["sequence_names"])]
    return tuple(ActivitySequence(name, features[mask], None, labels[mask]) for name, mask in chosen if mask.any())
