"""Lane keeping: steer by camera frames as the expert of a recording did.

The paper's recordings are not public. These are made by `lrcnet_paper.driving` from seeds when they are needed, and are
kept in the user's cache folder. The loss is in curvature, in units of 1/100 m, so that an error as large as a bend of
100 m radius counts 1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import Dataset

from lrcnet_paper.driving.camera import HEIGHT, WIDTH
from lrcnet_paper.driving.expert_recording import record
from lrcnet_paper.driving.recording import DriveRecording, open_recording
from lrcnet_paper.driving.windows import Windows
from lrcnet_paper.road_seeds import split_roads

from .data_folders import cache_folder
from .own_recordings import NOTES, read_own
from .task import ANY_NUMBER, DataPath, Index, Recipe, Task

CURVATURE_UNIT = 0.01
"""Unit of curvature in the losses, 1/m."""

RECORDINGS = "recordings"
"""The variant of a user's own recordings, in the folder of --data."""

LENGTH = 32
"""Number of frames of a sequence, as in the paper."""
# Part of the folder's name; change it whenever the recordings change.
_EDITION = "4"


def _squared_errors(output: Tensor, target: Tensor) -> Tensor:
    if output.shape != target.shape:
        raise ValueError(f"output must have the target's shape {tuple(target.shape)}; got {tuple(output.shape)}")
    return ((output - target) / CURVATURE_UNIT) ** 2


def curvature_loss(output: Tensor, target: Tensor) -> Tensor:
    """Compute the mean squared error of curvatures (1/m) of one shape, in units of (1/100 m)^2.

    >>> curvature_loss(torch.tensor([0.01, 0.0]), torch.tensor([0.0, 0.0]))
    tensor(0.5000)
    """
    return _squared_errors(output, target).mean()


def weighted_curvature_loss(output: Tensor, target: Tensor) -> Tensor:
    """Compute `curvature_loss` with each step weighted by the target curvature in units of 1/100 m.

    The paper does not give its weights. With these, a straight counts 0, a bend of 100 m radius 1 and a bend of 25 m 4.
    The mean is over steps, so that the mean over equal batches is the mean over the whole split.

    >>> weighted_curvature_loss(torch.tensor([0.01, 0.05]), torch.tensor([0.0, 0.04]))
    tensor(2.0000)
    """
    return (target.abs() / CURVATURE_UNIT * _squared_errors(output, target)).mean()


class WindowSamples(Dataset[tuple[Tensor, None, Tensor]]):
    """A split of windows of a recording: `(frames, None, curvature)`, read from the disk when they are indexed.

    Args:
        windows: all windows of the recording.
        count: number of samples of an epoch.
        balanced: if true, an epoch draws from all windows so that straights, bends and sharp bends come equally often;
            otherwise `samples[0]`, `samples[1]`, ... are `count` evenly spaced windows.
    """

    def __init__(self, windows: Windows, count: int, *, balanced: bool) -> None:
        if count > len(windows):
            raise ValueError(f"the recording must hold {count} windows and holds {len(windows)}; make it again")
        self._windows, self._count, self._balanced = windows, count, balanced
        self._device = torch.device("cpu")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Index) -> tuple[Tensor, None, Tensor]:
        numbers = index if self._balanced else (torch.arange(self._count) * len(self._windows) // self._count)[index]
        frames, _, curvature = self._windows[numbers.cpu() if isinstance(numbers, Tensor) else numbers]
        return frames.to(self._device), None, curvature.to(self._device)

    def order(self, generator: torch.Generator) -> Tensor:
        """Return the numbers of the windows of one epoch."""
        if self._balanced:
            return self._windows.draw_balanced(self._count, generator)
        return torch.randperm(self._count, generator=generator)

    def evenly_spaced(self, count: int) -> WindowSamples:
        """Return a split with epochs of at most `count` windows; a balanced one still draws from all windows."""
        return WindowSamples(self._windows, min(count, self._count), balanced=self._balanced).to(self._device)

    def to(self, device: torch.device) -> WindowSamples:
        """Put all samples that are read from now on onto a device."""
        self._device = device
        return self


@dataclass(frozen=True)
class _Source:
    """The recordings of a variant: numbers of roads and of windows of each split, and the function that makes them."""

    roads: dict[str, int]
    windows: dict[str, int]
    make: Callable[[Path, range], DriveRecording]
    notes: str


def _record_own(length: float) -> Callable[[Path, range], DriveRecording]:
    return lambda folder, roads: record(folder, roads, season="mixed", length=length)


def _record_car_racing(folder: Path, roads: range) -> DriveRecording:
    from lrcnet_paper.driving.car_racing import record_car_racing

    return record_car_racing(folder, roads)


_SOURCES = {
    "own": _Source(
        {"train": 48, "validation": 12, "test": 12},
        {"train": 1280, "validation": 96, "test": 96},
        _record_own(400.0),
        "drives of a synthetic expert in the project's own world, summer and winter: not the paper's recordings",
    ),
    "own-sample": _Source(
        {"train": 2, "validation": 1, "test": 1},
        {"train": 4, "validation": 2, "test": 2},
        _record_own(60.0),
        "a few seconds in the project's own world, to see that everything runs",
    ),
    "carracing": _Source(
        {"train": 12, "validation": 3, "test": 3},
        {"train": 320, "validation": 48, "test": 48},
        _record_car_racing,
        "drives in gymnasium's CarRacing-v3 by a controller that knows the track: not the paper's recordings",
    ),
}


@lru_cache(maxsize=8)
def recording(variant: str, split: str) -> DriveRecording:
    """Open the recording of a variant's split; make it if it is not in the user's cache folder yet.

    Several processes may ask at once: each makes its own copy, and the first one to finish keeps it.
    """
    source = _SOURCES[variant]
    folder = cache_folder() / "driving" / f"{variant}-{split}-{_EDITION}"
    if not (folder / "recording.json").exists():
        aside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        shutil.rmtree(aside, ignore_errors=True)
        source.make(aside, split_roads(**source.roads)[split])
        try:
            aside.replace(folder)
        except OSError:
            shutil.rmtree(aside)
    return open_recording(folder)


def _load(variant: str, split: str, data: DataPath | None) -> WindowSamples:
    if variant == RECORDINGS:
        return window_samples(variant, split, read_own(data).split(split, LENGTH))
    return window_samples(variant, split, recording(variant, split))


def window_samples(variant: str, split: str, drives: DriveRecording) -> WindowSamples:
    """Return the windows of a split; `drives` may have features in the place of its frames."""
    # Windows for training overlap, so that a bend is seen at many moments; the others do not overlap.
    windows = Windows(drives, LENGTH, stride=4 if split == "train" else LENGTH)
    count = len(windows) if variant == RECORDINGS else _SOURCES[variant].windows[split]
    return WindowSamples(windows, count, balanced=split == "train")


def _task(variant: str, source: _Source) -> Task:
    return Task(
        name="driving",
        variant=variant,
        variants=(*_SOURCES, RECORDINGS, *FEATURE_VARIANTS),
        title="Lane keeping from a camera",
        kind="steering",
        input_size=HEIGHT * WIDTH * 3,
        vocabulary=0,
        output_size=1,
        length=LENGTH,
        splits=source.windows,
        irregular=False,
        negative_dt="error",
        loss=curvature_loss,
        metrics={"curvature_loss": curvature_loss, "weighted_loss": weighted_curvature_loss},
        maximise=False,
        recipe=Recipe(
            "adamw", 5e-4, None, 1e-8, 32, 100, None, "best-validation", weight_decay=1e-6, schedule="cosine"
        ),
        citation="made by this project",
        licence="as this project",
        notes=source.notes,
        reader=_load,
    )


def _load_nothing(variant: str, split: str, data: DataPath | None) -> WindowSamples:
    raise ValueError(
        f"the features of {variant} depend on the seed of a run; train with it, or load {split} of its source"
    )


def _feature_task(variant: str, source: str) -> Task:
    return replace(
        _task(source, _SOURCES[source]),
        variant=variant,
        title="Lane keeping from the features of a shared head",
        kind="steering-features",
        input_size=64,
        notes=f"{_SOURCES[source].notes}; the head is trained once per seed without memory and shared by all models",
        reader=_load_nothing,
    )


FEATURE_VARIANTS = {"own-features": "own", "own-sample-features": "own-sample"}
"""Variants that train on the features of a shared head -> the variant of the frames."""

_OWN = _task(RECORDINGS, _Source({}, dict.fromkeys(("train", "validation", "test"), ANY_NUMBER), record, NOTES))

VARIANTS: dict[str, Task] = {
    **{variant: _task(variant, source) for variant, source in _SOURCES.items()},
    **{variant: _feature_task(variant, source) for variant, source in FEATURE_VARIANTS.items()},
    RECORDINGS: replace(_OWN, takes_data=True),
}
"""Every variant of the task, the default one first."""
