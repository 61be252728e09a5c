"""The format of recorded drives: camera frames in a memory-mapped file, and one label of each kind per frame.

A folder holds `frames.npy` (frame, 48, 160, 3) in uint8, `labels.npz` with one number per frame, and `recording.json`,
which is written last: a folder without it is unfinished, and its recording is made anew.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving.camera import HEIGHT, WIDTH

FORMAT = 1
NUMBERS = ("curvature", "offset", "heading", "speed", "road_curvature")
UNKNOWN_SEASON = 255

FolderPath = str | os.PathLike[str]


@dataclass(frozen=True)
class DriveRecording:
    """Drives one after the other. Arrays are (frame, ...); a quantity that is not known is NaN.

    Attributes:
        frames: (frame, 48, 160, 3), uint8, RGB, memory-mapped and read-only.
        curvature: the curvature that was steered, 1/m, float32: the label.
        offset: distance from the centre line, m, float32.
        heading: angle against the road's direction, rad, float32.
        speed: m/s, float32.
        road_curvature: curvature of the lane under the car, 1/m, float32.
        season: 0 summer, 1 winter, 255 unknown, uint8.
        road: the road's seed or number, int64.
        starts: index of the first frame of each drive, and the number of frames at the end, (drive + 1,), int64.
    """

    frames: NDArray[np.uint8]
    curvature: NDArray[np.float32]
    offset: NDArray[np.float32]
    heading: NDArray[np.float32]
    speed: NDArray[np.float32]
    road_curvature: NDArray[np.float32]
    season: NDArray[np.uint8]
    road: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.frames)


def open_if_recorded(folder: Path, settings: Mapping[str, Any]) -> DriveRecording | None:
    """Open the recording that a folder holds, or return None if there is no finished one.

    Raises:
        ValueError: if it was made with other settings.
    """
    if not (folder / "recording.json").exists():
        return None
    stored = json.loads((folder / "recording.json").read_text())
    if stored.get("format") != FORMAT or stored.get("settings") != settings:
        raise ValueError(f"{folder.name} holds a recording of other roads or settings; choose another folder")
    return open_recording(folder)


def write_recording(
    folder: Path,
    settings: Mapping[str, Any],
    labels: Mapping[str, NDArray[Any]],
    lengths: NDArray[np.int64],
    render: Callable[[NDArray[np.uint8]], None],
) -> DriveRecording:
    """Write a recording.

    Args:
        folder: folder to write to; an unfinished recording there is overwritten.
        settings: arguments that the recording was made with.
        labels: labels of every frame, `NUMBERS`, "season" and "road"; a missing number becomes NaN.
        lengths: number of frames of each drive, (drive,).
        render: writes the frames into the array that it is given, (frame, 48, 160, 3).
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = int(lengths.sum())
    frames = np.lib.format.open_memmap(
        folder / "frames.npy", mode="w+", dtype=np.uint8, shape=(count, HEIGHT, WIDTH, 3)
    )
    render(frames)
    frames.flush()
    unknown = np.full(count, np.nan, np.float32)
    arrays: dict[str, Any] = {name: np.asarray(labels.get(name, unknown), np.float32) for name in NUMBERS}
    arrays["season"] = np.asarray(labels["season"], np.uint8)
    arrays["road"] = np.asarray(labels["road"], np.int64)
    arrays["starts"] = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
    np.savez(folder / "labels.npz", **arrays)
    mark_finished(folder / "recording.json", {"format": FORMAT, "settings": dict(settings)})
    return open_recording(folder)


def mark_finished(path: Path, content: Mapping[str, Any]) -> None:
    """Write the JSON file whose presence says that a folder is finished, all of it at once."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(content) + "\n")
    unfinished.replace(path)


def open_recording(folder: FolderPath) -> DriveRecording:
    """Open a finished recording.

    Raises:
        FileNotFoundError: if the folder holds none.
        ValueError: if its files do not fit each other.
    """
    source = Path(folder)
    if not (source / "recording.json").exists():
        raise FileNotFoundError(f"{source.name} holds no finished recording; make one with lrcnet_paper.driving.record")
    try:
        frames = np.load(source / "frames.npy", mmap_mode="r", allow_pickle=False)
        with np.load(source / "labels.npz", allow_pickle=False) as labels:
            arrays = {name: labels[name] for name in (*NUMBERS, "season", "road", "starts")}
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{source.name} must hold frames.npy and labels.npz of a recording ({error}); make it again"
        ) from error
    if not _fits(frames, arrays):
        raise ValueError(f"{source.name} must have a label for each of its {len(frames)} frames; make it again")
    return DriveRecording(frames, **arrays)


def _fits(frames: NDArray[Any], arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether all arrays have the dtypes of a recording and one row per frame, and the drives rise in order."""
    count, starts = len(frames) if frames.ndim else -1, arrays["starts"]
    kinds = {**dict.fromkeys(NUMBERS, np.float32), "season": np.uint8, "road": np.int64}
    return (
        frames.shape == (count, HEIGHT, WIDTH, 3)
        and frames.dtype == np.uint8
        and all(arrays[name].shape == (count,) and arrays[name].dtype == kind for name, kind in kinds.items())
        and starts.ndim == 1
        and starts.dtype == np.int64
        and len(starts) > 0
        and starts[0] == 0
        and starts[-1] == count
        and bool((np.diff(starts) >= 0).all())
        and bool(np.isfinite(arrays["curvature"]).all())
    )
