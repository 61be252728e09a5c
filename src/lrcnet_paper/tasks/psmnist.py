"""Permuted sequential MNIST: a digit, read one pixel per step in one fixed random order."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .data_folders import find_files
from .losses_and_metrics import accuracy, cross_entropy
from .sources import SOURCES
from .task import DataPath, Recipe, Samples, Task
from .unpack import read_decompressed

PIXELS = 784
CLASSES = 10
VALIDATION = 10_000
PERMUTATION_SEED = 0
_UNSIGNED_BYTES = 8
_KINDS = ("images-idx3", "labels-idx1")


def permutation() -> NDArray[np.int64]:
    """Return the order of the pixels, (784,), from numpy's legacy generator with seed 0."""
    return np.random.RandomState(PERMUTATION_SEED).permutation(PIXELS).astype(np.int64)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read one idx file of bytes, plain or compressed (.gz).

    The format: two zero bytes, the type of the numbers (8 = bytes), the number of axes, the length of each axis as four
    bytes (most significant first), then the numbers.

    Raises:
        ValueError: for a file that is truncated, has extra bytes, or has another format.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = read_decompressed(file, path.name)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path.name} must be a complete gzip file and is not ({error}); get it again") from error
    if len(content) < 4 or content[:3] != bytes([0, 0, _UNSIGNED_BYTES]):
        raise ValueError(f"{path.name} must begin as an idx file of bytes, 00 00 08; it begins {content[:3].hex(' ')}")
    start = 4 + 4 * content[3]
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if len(content) - start != math.prod(shape):
        raise ValueError(
            f"{path.name} must hold {math.prod(shape)} bytes for the shape {shape} it states and holds "
            f"{max(len(content) - start, 0)}; get it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _names(part: str, kind: str) -> tuple[str, str]:
    return f"{part}-{kind}-ubyte.gz", f"{part}-{kind}-ubyte"


FILES = tuple(_names(part, kind) for part in ("train", "t10k") for kind in _KINDS)
"""For each file, its names in order of preference."""


def read_split(task: str, split: str, data: DataPath | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read the pixels (image, 784), row by row, and the digits (image,) of a split.

    Args:
        task: the name of the task in messages.
        split: "train", "validation" (the last 10,000 training images) or "test".
        data: folder with the files; None searches `LRCNET_DATA`, then the cache.
    """
    part = "t10k" if split == "test" else "train"
    images_path, labels_path = find_files(task, [_names(part, kind) for kind in _KINDS], data)
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or images.shape[1] * images.shape[2] != PIXELS or labels.shape != (len(images),):
        raise ValueError(
            f"{images_path.name} and {labels_path.name} must have shapes (n, 28, 28) and (n,); "
            f"they have {images.shape} and {labels.shape}"
        )
    if len(labels) and labels.max() >= CLASSES:
        raise ValueError(f"{labels_path.name} must hold digits 0 to 9; it holds {labels.max()}")
    if split != "test":
        if len(images) <= VALIDATION:
            raise ValueError(f"{images_path.name} must hold more than {VALIDATION} images; it holds {len(images)}")
        rows = slice(-VALIDATION, None) if split == "validation" else slice(None, -VALIDATION)
        images, labels = images[rows], labels[rows]
    return images.reshape(len(images), PIXELS), labels.astype(np.int64)


def _load(variant: str, split: str, data: DataPath | None) -> Samples:
    pixels, labels = read_split("psmnist", split, data)
    if variant == "permuted":
        pixels = pixels[:, permutation()]
    x = torch.from_numpy(pixels.astype(np.float32)).div_(255)
    return Samples(x.unsqueeze(-1), None, torch.from_numpy(labels))


def _task(variant: str, notes: str) -> Task:
    source = SOURCES["psmnist"]
    return Task(
        name="psmnist",
        variant=variant,
        variants=tuple(_NOTES),
        title="Permuted sequential MNIST",
        kind="label-per-sequence",
        input_size=1,
        vocabulary=0,
        output_size=CLASSES,
        length=PIXELS,
        splits={"train": 50_000, "validation": VALIDATION, "test": 10_000},
        irregular=False,
        negative_dt="error",
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        maximise=True,
        recipe=Recipe("rmsprop", 1e-3, 0.9, 1e-7, 64, 200, None, "best-validation"),
        citation=source.citation,
        licence=source.licence,
        notes=notes,
        reader=_load,
        files=FILES,
    )


_NOTES = {
    "permuted": "one fixed random order of the pixels, the paper's task",
    "ordered": "pixels row by row: for looking at the data, not a task of the paper",
}
VARIANTS: dict[str, Task] = {variant: _task(variant, notes) for variant, notes in _NOTES.items()}
"""Every variant of the task, the paper's first."""
