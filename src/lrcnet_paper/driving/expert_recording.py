"""Recordings of the expert's drives, made from seeds: all drives come first, then all frames are rendered.

The number of frames of a drive is known only at its end, and the file of frames needs its size at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrcnet_paper.driving.drivable import check_not_empty
from lrcnet_paper.driving.expert_drive import expert_drive
from lrcnet_paper.driving.recording import DriveRecording, FolderPath, open_if_recorded, write_recording
from lrcnet_paper.driving.road_world import RoadWorld
from lrcnet_paper.driving.vehicle import RUNNING
from lrcnet_paper.driving.world import World

Progress = Callable[[int, int], None]
"""Called with the number of frames that are done and the number of all frames."""


def record(
    folder: FolderPath,
    roads: Sequence[int],
    *,
    season: str = "mixed",
    length: float = 400.0,
    noise: float = 1.0,
    mirrored: bool = False,
    batch: int = 32,
    progress: Progress = lambda done, total: None,
) -> DriveRecording:
    """Record the expert's drives over roads of our own world, or open the recording if the folder has it already.

    Args:
        folder: folder of the recording; created if it does not exist. A frame takes 23 kB.
        roads: seeds of the roads.
        season, length, mirrored: as `World` takes them.
        noise: noise of the expert, as `World.expert` takes it.
        batch: number of roads driven at once; the result does not depend on it.
        progress: called with the number of frames that are done and the number of all frames.

    Raises:
        ValueError: for no roads, or a folder that holds another recording.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     recording = record(folder, [1, 2], length=20.0)
        ...     recording.frames.shape[1:], len(recording.starts)
        ((48, 160, 3), 3)
    """
    check_not_empty("roads", roads, "road", "pass a range of seeds")
    seeds = [int(road) for road in roads]
    settings = {"roads": seeds, "season": season, "length": length, "noise": noise, "mirrored": mirrored}

    def make_world(part: list[int]) -> World:
        return World(part, season=season, length=length, mirrored=mirrored)

    return record_expert_drives(folder, seeds, make_world, settings, noise=noise, batch=batch, progress=progress)


def record_expert_drives(
    folder: FolderPath,
    seeds: Sequence[int],
    make_world: Callable[[list[int]], RoadWorld[Any]],
    settings: Mapping[str, Any],
    *,
    noise: float,
    batch: int,
    progress: Progress,
) -> DriveRecording:
    """Record the expert's drives in a kind of world, or open the recording if the folder has it already.

    Args:
        folder: folder of the recording.
        seeds: one per drive.
        make_world: makes the world of some of the seeds.
        settings: written into the recording; a recording with other settings is not opened.
        noise, batch, progress: as `record` takes them.

    Raises:
        ValueError: for a folder that holds another recording.
    """
    target = Path(folder)
    if (finished := open_if_recorded(target, settings)) is not None:
        return finished
    batches = [list(seeds[i : i + batch]) for i in range(0, len(seeds), batch)]
    drives = [_drive(make_world(part), noise) for part in batches]
    labels = {name: np.concatenate([part.labels[name] for part in drives]) for name in drives[0].labels}
    lengths = np.concatenate([part.lengths for part in drives])

    def render(frames: NDArray[np.uint8]) -> None:
        first, done = 0, 0
        for part in drives:
            starts = first + np.concatenate([[0], part.lengths.cumsum()[:-1]])
            for time, viewpoint in enumerate(part.viewpoints):
                cars = np.flatnonzero(part.lengths > time)
                frames[starts[cars] + time] = part.world.render(viewpoint, cars).numpy()
                done += len(cars)
                progress(done, len(frames))
            first += int(part.lengths.sum())

    return write_recording(target, settings, labels, lengths, render)


@dataclass(frozen=True)
class _Drives:
    """A batch of finished drives that are not rendered yet.

    Attributes:
        world: the world they took place in.
        lengths: number of frames of each drive, (drive,).
        labels: label of every frame, drive after drive.
        viewpoints: viewpoint of all cars at each step.
    """

    world: RoadWorld[Any]
    lengths: NDArray[np.int64]
    labels: dict[str, NDArray[Any]]
    viewpoints: list[Any]


def _drive(world: RoadWorld[Any], noise: float) -> _Drives:
    steps, viewpoints = [], []
    for step in expert_drive(world, world.expert(noise=noise), frames=False):
        steps.append(step)
        viewpoints.append(world.viewpoint())
    running = torch.stack([step.status == RUNNING for step in steps], 1)
    lengths = running.sum(1).numpy()
    columns = {
        "curvature": [step.action for step in steps],
        "offset": [step.state.offset for step in steps],
        "heading": [step.state.heading for step in steps],
        "speed": [step.speed for step in steps],
        "road_curvature": [step.road_curvature for step in steps],
    }
    labels: dict[str, NDArray[Any]] = {
        name: torch.stack(column, 1)[running].float().numpy() for name, column in columns.items()
    }
    labels["season"] = world.season_codes.repeat(lengths)
    labels["road"] = np.array(world.seeds).repeat(lengths)
    return _Drives(world, lengths, labels, viewpoints)
