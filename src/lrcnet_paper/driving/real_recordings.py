"""Recordings of real cars, converted to our format (needs Pillow).

Two forms are read: a folder of images with a CSV, and images back to back in one file with an index beside it.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving.camera import HEIGHT, WIDTH
from lrcnet_paper.driving.recording import NUMBERS, UNKNOWN_SEASON, DriveRecording, FolderPath, write_recording
from lrcnet_paper.driving.textures import SEASONS
from lrcnet_paper.driving.vehicle import WHEELBASE

CropBox = tuple[float, float, float, float]
"""The part of an image that is used: left, top, right, bottom, each 0 to 1."""


def curvature_of_steering(
    angle: NDArray[Any], *, ratio: float = 1.0, wheelbase: float = WHEELBASE, left: int = 1
) -> NDArray[np.float32]:
    """Compute the curvature of a car's path, 1/m.

    Args:
        angle: angle of the steering wheel, or of the front wheels if ratio is 1, rad.
        ratio: turns of the steering wheel per turn of the front wheels; about 16 in a passenger car.
        wheelbase: distance between the axles, m.
        left: 1 if left is positive in `angle`, -1 if right is positive.

    >>> curvature_of_steering(np.array([0.0, 0.27]), wheelbase=2.7).round(3)
    array([0.   , 0.103], dtype=float32)
    """
    return (left * np.tan(np.asarray(angle, np.float64) / ratio) / wheelbase).astype(np.float32)


def from_folder(
    source: FolderPath, folder: FolderPath, *, labels: str = "labels.csv", box: CropBox | None = None
) -> DriveRecording:
    """Convert a folder of images with a CSV.

    Args:
        source: the folder. Its CSV has a line per frame, in order, under a header. The columns `frame` (name of the
            file) and `curvature` (1/m, left positive) are required; `offset` (m), `heading` (rad), `speed` (m/s),
            `road_curvature` (1/m), `season` (summer or winter) and `road` (a whole number, a new one for each drive)
            are optional. Other columns are not read.
        folder: folder to write the recording to.
        labels: name of the CSV.
        box: the part of the images to use; None takes the whole width at the middle of the height.

    Raises:
        FileNotFoundError: for a missing CSV or image.
        ValueError: for a CSV that is empty, lacks a required column, or has an unreadable value (with its line).
    """
    root = Path(source)
    with (root / labels).open(newline="") as stream:
        reader = csv.DictReader(stream)
        columns = reader.fieldnames or []
        missing = [name for name in ("frame", "curvature") if name not in columns]
        if missing:
            raise ValueError(f"{labels} must have the columns frame and curvature; it lacks {missing} in {columns}")
        rows = list(reader)
    if not rows:
        raise ValueError(f"{labels} must have a line per frame, but has none under its header")

    def column(name: str, read: Callable[[str], float]) -> NDArray[Any]:
        numbers = []
        for line, row in enumerate(rows, start=2):
            try:
                numbers.append(read(row[name]))
            except (ValueError, TypeError) as error:
                raise ValueError(f"line {line} of {labels}: {name} is {row[name]!r}, which cannot be read") from error
        return np.array(numbers)

    values = {name: column(name, float) for name in NUMBERS if name in columns}
    if not np.isfinite(values["curvature"]).all():
        raise ValueError(f"curvature in {labels} must be a finite number in every line")
    if "season" in columns:
        values["season"] = column("season", SEASONS.index)
    if "road" in columns:
        values["road"] = column("road", int)

    def images() -> Iterator[Any]:
        for row in rows:
            yield root / row["frame"]

    return _write(Path(folder), values, len(rows), images, box)


def from_jpegs(
    jpegs: FolderPath,
    folder: FolderPath,
    curvature: Callable[[dict[str, NDArray[Any]]], NDArray[Any]],
    *,
    index: FolderPath | None = None,
    box: CropBox | None = None,
) -> DriveRecording:
    """Convert images that are stored back to back in one file.

    Args:
        jpegs: the file; frame k is its bytes offsets[k] to offsets[k + 1].
        folder: folder to write the recording to.
        curvature: computes the label, 1/m, (frame,), from the arrays in the index; see `curvature_of_steering`.
        index: an .npz file with `offsets` (frame + 1,) and labels; None is NAME_index.npz beside NAME.jpegs.
        box: as `from_folder` takes it.

    Raises:
        FileNotFoundError: for a missing file.
        ValueError: if index, labels and images do not fit each other.
    """
    path = Path(jpegs)
    beside = Path(index) if index is not None else path.with_name(f"{path.stem}_index.npz")
    with np.load(beside) as stored:
        arrays = {name: stored[name] for name in stored.files}
    if "offsets" not in arrays:
        raise ValueError(f"{beside.name} must hold the array offsets, but holds {sorted(arrays)}")
    offsets = arrays["offsets"].tolist()
    if offsets[-1] > path.stat().st_size or any(b <= a for a, b in itertools.pairwise(offsets)):
        raise ValueError(f"offsets in {beside.name} must rise and end within {path.name}; the files do not fit")
    label = np.asarray(curvature(arrays))
    if label.shape != (len(offsets) - 1,) or not np.isfinite(label).all():
        raise ValueError(f"curvature must give {len(offsets) - 1} finite numbers, but gave {label.shape}")

    def images() -> Iterator[Any]:
        with path.open("rb") as stream:
            stream.seek(offsets[0])
            for start, end in itertools.pairwise(offsets):
                yield io.BytesIO(stream.read(end - start))

    values = {"curvature": label}
    if "speed" in arrays and arrays["speed"].shape == label.shape:
        values["speed"] = arrays["speed"]
    return _write(Path(folder), values, len(label), images, box)


def _write(
    folder: Path,
    labels: dict[str, NDArray[Any]],
    count: int,
    images: Callable[[], Iterator[Any]],
    box: CropBox | None,
) -> DriveRecording:
    from PIL import Image

    if box is not None and not (0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1):
        raise ValueError(f"box must be left < right and top < bottom within 0 to 1, but is {box}")

    def render(frames: NDArray[np.uint8]) -> None:
        for k, source in enumerate(images()):
            with Image.open(source) as image:
                part = _crop_pixels(image.width, image.height, box)
                small = image.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.BOX, part)
                frames[k] = np.asarray(small)

    labels.setdefault("season", np.full(count, UNKNOWN_SEASON))
    road = labels.setdefault("road", np.zeros(count, np.int64))
    ends = np.flatnonzero(np.diff(road)) + 1
    lengths = np.diff(np.concatenate([[0], ends, [count]]))
    return write_recording(folder, {"own": True}, labels, lengths, render)


def _crop_pixels(width: int, height: int, box: CropBox | None) -> tuple[float, float, float, float]:
    if box is not None:
        return box[0] * width, box[1] * height, box[2] * width, box[3] * height
    # The largest part in the middle that has our frame's aspect ratio.
    wide, high = min(width, height * WIDTH / HEIGHT), min(height, width * HEIGHT / WIDTH)
    left, top = math.floor((width - wide) / 2), math.floor((height - high) / 2)
    return left, top, left + wide, top + high
