"""Lane keeping: steer by the camera's pictures as the driver of a recording did.

The paper's recordings are not public, so these are made by `lrcnet_paper.driving`, from seeds, when they are wanted;
they lie in the user's cache folder. Loss is in curvature, in units of 1/100 m, so that an error as large as a bend of 100 m
radius counts 1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
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
from .task import DataPath, Index, Recipe, Task

CURVATURE_UNIT = 0.01
"""1/m."""

LENGTH = 32
"""Steps of a sequence, the paper's."""
# Part of the folder's name: another one when the recordings change.
_EDITION = "4"


def _errors(output: Tensor, target: Tensor) -> Tensor:
    if output.shape != target.shape:
        raise ValueError(f"output must have the target's shape {tuple(target.shape)}; got {tuple(output.shape)}")
    return ((output - target) / CURVATURE_UNIT) ** 2


def curvature_loss(output: Tensor, target: Tensor) -> Tensor:
    """Mean squared error of curvatures (1/m) of one shape, in units of (1/100 m)^2.

    >>> curvature_loss(torch.tensor([0.01, 0.0]), torch.tensor([0.0, 0.0]))
    tensor(0.5000)
    """
    return _errors(output, target).mean()


def weighted_curvature_loss(output: Tensor, target: Tensor) -> Tensor:
    """As `curvature_loss`, each step weighted by the curvature that the driver took, in units of 1/100 m.

    The paper does not give its weights. With these a straight counts nothing, a bend of 100 m radius 1 and one of 25 m
    4; the mean is over steps, so that the mean over equal batches is the mean over the whole split.

    >>> weighted_curvature_loss(torch.tensor([0.01, 0.05]), torch.tensor([0.0, 0.04]))
    tensor(2.0000)
    """
    return (target.abs() / CURVATURE_UNIT * _errors(output, target)).mean()


class WindowSamples(Dataset[tuple[Tensor, None, Tensor]]):
    """Windows of a recording as a split: `(frames, None, curvature)`, read from the disk when they are asked for.

    Args:
        windows: all of them.
        count: samples of an epoch.
        balanced: an epoch draws from all windows so that straights, bends and sharp bends come equally often;
            otherwise it is `count` windows, evenly spaced, which `samples[0]`, `samples[1]`, ... are.
    """

    def __init__(self, windows: Windows, count: int, *, balanced: bool) -> None:
        if count > len(windows):
            raise ValueError(f"the recording must hold {count} windows and holds {len(windows)}; make it again")
        self._windows, self._count, self._balanced = windows, count, balanced
        self._device = torch.device("cpu")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Index) -> tuple[Tensor, None, Tensor]:
        chosen = index if self._balanced else (torch.arange(self._count) * len(self._windows) // self._count)[index]
        frames, _, curvature = self._windows[chosen.cpu() if isinstance(chosen, Tensor) else chosen]
        return frames.to(self._device), None, curvature.to(self._device)

    def order(self, generator: torch.Generator) -> Tensor:
        """Numbers of the windows of one epoch."""
        if self._balanced:
            return self._windows.balanced(self._count, generator)
        return torch.randperm(self._count, generator=generator)

    def evenly_spaced(self, count: int) -> WindowSamples:
        """An epoch of so many windows; of all of them if it is balanced."""
        return WindowSamples(self._windows, min(count, self._count), balanced=self._balanced).to(self._device)

    def to(self, device: torch.device) -> WindowSamples:
        """The same windows, handed out on a device."""
        self._device = device
        return self


@dataclass(frozen=True)
class _World:
    """Where a variant's recordings come from: roads of each split, windows of each split, and who makes them."""

    roads: dict[str, int]
    windows: dict[str, int]
    make: Callable[[Path, range], DriveRecording]
    notes: str


def _own(length: float) -> Callable[[Path, range], DriveRecording]:
    return lambda folder, roads: record(folder, roads, season="mixed", length=length)


def _car_racing(folder: Path, roads: range) -> DriveRecording:
    from lrcnet_paper.driving.car_racing import record_car_racing

    return record_car_racing(folder, roads)


_WORLDS = {
    "own": _World(
        {"train": 48, "validation": 12, "test": 12},
        {"train": 1280, "validation": 96, "test": 96},
        _own(400.0),
        "drives of a synthetic driver in the project's own world, summer and winter: not the paper's recordings",
    ),
    "own-sample": _World(
        {"train": 2, "validation": 1, "test": 1},
        {"train": 4, "validation": 2, "test": 2},
        _own(60.0),
        "a few seconds in the project's own world, to see that everything runs",
    ),
    "carracing": _World(
        {"train": 12, "validation": 3, "test": 3},
        {"train": 320, "validation": 48, "test": 48},
        _car_racing,
        "drives in gymnasium's CarRacing-v3 by a controller that knows the track: not the paper's recordings",
    ),
}


@lru_cache(maxsize=8)
def recording(variant: str, split: str) -> DriveRecording:
    """The recording of a variant's split, made when it is not in the user's cache folder yet.

    Several processes may ask at once: each makes its own copy aside, and the first to finish wins.
    """
    world = _WORLDS[variant]
    folder = cache_folder() / "driving" / f"{variant}-{split}-{_EDITION}"
    if not (folder / "recording.json").exists():
        aside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
        shutil.rmtree(aside, ignore_errors=True)
        world.make(aside, split_roads(**world.roads)[split])
        try:
            aside.replace(folder)
        except OSError:
            shutil.rmtree(aside)
    return open_recording(folder)


def _load(variant: str, split: str, data: DataPath | None) -> WindowSamples:
    # Windows of training overlap, so that a bend is seen from many moments; judged ones follow each other.
    windows = Windows(recording(variant, split), LENGTH, stride=4 if split == "train" else LENGTH)
    return WindowSamples(windows, _WORLDS[variant].windows[split], balanced=split == "train")


def _task(variant: str, world: _World) -> Task:
    return Task(
        name="driving",
        variant=variant,
        variants=tuple(_WORLDS),
        title="Lane keeping from a camera",
        kind="steering",
        input_size=HEIGHT * WIDTH * 3,
        vocabulary=0,
        output_size=1,
        length=LENGTH,
        splits=world.windows,
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
        notes=world.notes,
        reader=_load,
    )


VARIANTS: dict[str, Task] = {variant: _task(variant, world) for variant, world in _WORLDS.items()}
"""Every variant of the task, the default one first."""
