"""Recordings of drives: pictures in a memory-mapped file, and what the driver did, drive after drive.

A folder holds `frames.npy` (frame, 48, 160, 3) in uint8, `labels.npz` with one number per frame, and `recording.json`,
written last: a folder without it is not finished and is made anew. The driver's recordings are made from seeds when
they are wanted, so nobody has to keep or send them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrcnet_paper.driving.camera import HEIGHT, WIDTH
from lrcnet_paper.driving.vehicle import RUNNING, State
from lrcnet_paper.driving.world import World, expert_drive

FORMAT = 1
NUMBERS = ("curvature", "offset", "heading", "speed", "road_curvature")
UNKNOWN_SEASON = 255

FolderPath = str | os.PathLike[str]


@dataclass(frozen=True)
class DriveRecording:
    """Drives one after the other. Arrays are (frame, ...); a quantity that is not known is NaN.

    Attributes:
        frames: (frame, 48, 160, 3), uint8, RGB, memory-mapped and read-only.
        curvature: what the driver steered, 1/m, float32: the label.
        offset: from the middle of the lane, m, float32.
        heading: against the road's direction, rad, float32.
        speed: m/s, float32.
        road_curvature: of the lane under the car, 1/m, float32.
        season: 0 summer, 1 winter, 255 unknown, uint8.
        road: the road's seed or number, int64.
        starts: where drives begin, and the number of frames at the end, (drive + 1,), int64.
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


def record(
    folder: FolderPath,
    roads: Sequence[int],
    *,
    season: str = "mixed",
    length: float = 400.0,
    noise: float = 1.0,
    mirrored: bool = False,
    batch: int = 32,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> DriveRecording:
    """The driver's drives over some roads; opened if the folder has them already, made otherwise.

    Args:
        folder: where the recording is kept; made if it is not there. A frame takes 23 kB.
        roads: their seeds.
        season, length, mirrored: as `World`.
        noise: of the driver, as `World.expert`.
        batch: roads driven at once; the result does not depend on it.
        progress: called with the number of frames done and to do.

    Raises:
        ValueError: for no roads, or a folder that holds another recording.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     recording = record(folder, [1, 2], length=20.0)
        ...     recording.frames.shape[1:], len(recording.starts)
        ((48, 160, 3), 3)
    """
    if not len(roads):
        raise ValueError("roads must name one road at least, but are empty; pass a range of seeds")
    names = [int(road) for road in roads]
    settings = {"roads": names, "season": season, "length": length, "noise": noise, "mirrored": mirrored}
    target = Path(folder)
    if (made := open_if_recorded(target, settings)) is not None:
        return made

    parts = [names[i : i + batch] for i in range(0, len(names), batch)]
    driven = [_driven(World(p, season=season, length=length, mirrored=mirrored), noise) for p in parts]
    labels = {key: np.concatenate([part.labels[key] for part in driven]) for key in driven[0].labels}
    lengths = np.concatenate([part.lengths for part in driven])
    done = 0

    def fill(frames: NDArray[np.uint8]) -> None:
        nonlocal done
        for part in driven:
            starts = done + np.concatenate([[0], part.lengths.cumsum()[:-1]])
            for time, state in enumerate(part.states):
                going = np.flatnonzero(part.lengths > time)
                frames[starts[going] + time] = part.world.camera.frames(state).numpy()[going]
                progress(done + min(int(part.lengths.sum()), (time + 1) * len(part.lengths)), int(lengths.sum()))
            done += int(part.lengths.sum())

    return write_recording(target, settings, labels, lengths, fill)


@dataclass(frozen=True)
class _Driven:
    """A batch of drives without pictures: `lengths` (drive,), `labels` drive after drive, `states` by time."""

    world: World
    lengths: NDArray[np.int64]
    labels: dict[str, NDArray[Any]]
    states: list[State]


def _driven(world: World, noise: float) -> _Driven:
    """Drives first and draws later: how many frames a drive has is known at its end only."""
    moments = list(expert_drive(world, world.expert(noise=noise), frames=False))
    going = torch.stack([moment.status == RUNNING for moment in moments], 1)
    lengths = going.sum(1).numpy()
    columns = {
        "curvature": [m.action for m in moments],
        "offset": [m.state.offset for m in moments],
        "heading": [m.state.heading for m in moments],
        "speed": [m.speed for m in moments],
        "road_curvature": [m.road_curvature for m in moments],
    }
    labels: dict[str, NDArray[Any]] = {
        name: torch.stack(column, 1)[going].float().numpy() for name, column in columns.items()
    }
    labels["season"] = world.appearance.winter.numpy().astype(np.uint8).repeat(lengths)
    labels["road"] = np.array(world.seeds).repeat(lengths)
    return _Driven(world, lengths, labels, [moment.state for moment in moments])


def open_if_recorded(folder: Path, settings: Mapping[str, Any]) -> DriveRecording | None:
    """The recording that a folder holds, or None where it holds none.

    Raises:
        ValueError: if it was made with other settings.
    """
    if not (folder / "recording.json").exists():
        return None
    found = json.loads((folder / "recording.json").read_text())
    if found.get("format") != FORMAT or found.get("settings") != settings:
        raise ValueError(f"{folder.name} holds a recording of other roads or settings; choose another folder")
    return open_recording(folder)


def write_recording(
    folder: Path,
    settings: Mapping[str, Any],
    labels: Mapping[str, NDArray[Any]],
    lengths: NDArray[np.int64],
    fill: Callable[[NDArray[np.uint8]], None],
) -> DriveRecording:
    """Writes a recording.

    Args:
        folder: where to; an unfinished recording there is overwritten.
        settings: what made it.
        labels: of every frame, `NUMBERS`, "season" and "road"; a missing number is NaN.
        lengths: frames of each drive, (drive,).
        fill: writes the pictures into the array it is given, (frame, 48, 160, 3).
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = int(lengths.sum())
    frames = np.lib.format.open_memmap(
        folder / "frames.npy", mode="w+", dtype=np.uint8, shape=(count, HEIGHT, WIDTH, 3)
    )
    fill(frames)
    frames.flush()
    unknown = np.full(count, np.nan, np.float32)
    arrays: dict[str, Any] = {name: np.asarray(labels.get(name, unknown), np.float32) for name in NUMBERS}
    arrays["season"] = np.asarray(labels["season"], np.uint8)
    arrays["road"] = np.asarray(labels["road"], np.int64)
    arrays["starts"] = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
    np.savez(folder / "labels.npz", **arrays)
    half_done = folder / "recording.json.part"
    half_done.write_text(json.dumps({"format": FORMAT, "settings": dict(settings)}) + "\n")
    half_done.replace(folder / "recording.json")
    return open_recording(folder)


def open_recording(folder: FolderPath) -> DriveRecording:
    """A finished recording.

    Raises:
        FileNotFoundError: if there is none in the folder.
        ValueError: if its files do not fit each other.
    """
    source = Path(folder)
    if not (source / "recording.json").exists():
        raise FileNotFoundError(f"{source.name} holds no finished recording; make one with lrcnet_paper.driving.record")
    frames = np.load(source / "frames.npy", mmap_mode="r")
    with np.load(source / "labels.npz") as labels:
        arrays = {name: labels[name] for name in (*NUMBERS, "season", "road", "starts")}
    if frames.shape != (len(arrays["curvature"]), HEIGHT, WIDTH, 3) or arrays["starts"][-1] != len(frames):
        raise ValueError(f"{source.name} must have a label for each of its {len(frames)} frames; make it again")
    return DriveRecording(frames, **arrays)
