"""Traces in VISTA's format: a drive as a video with its times, speeds, yaw rates and camera; recording and checking.

A trace is a folder with `camera_front.avi`, `camera_front.csv` (frame number and time under a header), `speed.csv`
(time, m/s), `imu.csv` (time and six readings, the last one the yaw rate in rad/s) and `params.xml` (the camera).
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving.camera import CAMERA_HEIGHT, FOCAL, HEIGHT, HORIZON, WIDTH, Camera, Lens
from lrcnet_paper.driving.expert_drive import expert_drive
from lrcnet_paper.driving.recording import FolderPath, mark_finished
from lrcnet_paper.driving.vehicle import STEP
from lrcnet_paper.driving.vista_video import write_video
from lrcnet_paper.driving.world import World

CAMERA = "camera_front"
FILES = (f"{CAMERA}.avi", f"{CAMERA}.csv", "speed.csv", "imu.csv", "params.xml")
FORMAT = 1
# VISTA puts the horizon in the middle of the frame; an even height would put a row on it, infinitely far away. A
# displaced or turned car sees ground beside and below our own frame, so the recorded frame has more columns on either
# side and more rows below. With this size, corners stay black only shortly before a drive ends; a larger one would cost
# time in VISTA.
_BESIDE, _BELOW = 80, 8
_GROUND = HEIGHT - HORIZON + _BELOW
LENS = Lens(height=2 * _GROUND + 1, width=WIDTH + 2 * _BESIDE, horizon=_GROUND + 1)
ROI = (LENS.above, _BESIDE, LENS.above + HEIGHT, _BESIDE + WIDTH)
"""The part of a frame that is the networks' input: top, left, bottom, right."""


def record_trace(
    folder: FolderPath, seed: int, *, season: str = "mixed", length: float = 1000.0, noise: float = 0.0
) -> Path:
    """Record the expert's drive through our own world as a trace for VISTA, unless the folder has it already.

    Args:
        folder: folder of the trace; created if it does not exist. A second takes about 0.5 MB.
        seed, season, length: as `World` takes them.
        noise: noise of the expert, as `World.expert` takes it; cars in VISTA must keep to the path driven here.

    Returns:
        The folder.

    Raises:
        ValueError: for a folder that holds another trace.
        ImportError: without the extra `vista`.
    """
    target = Path(folder)
    settings = {"format": FORMAT, "seed": int(seed), "season": season, "length": length, "noise": noise}
    marker = target / "trace.json"
    if marker.exists():
        if json.loads(marker.read_text()) != settings:
            raise ValueError(f"{target.name} holds a trace of another road or other settings; choose another folder")
        return target
    target.mkdir(parents=True, exist_ok=True)
    world = World([seed], season=season, length=length)
    camera = Camera(world.road, world.appearance, LENS)
    speed: list[float] = []
    direction: list[float] = []

    def frames() -> Iterator[NDArray[np.uint8]]:
        for step in expert_drive(world, world.expert(noise=noise), frames=False):
            speed.append(step.speed.item())
            direction.append(world.situation().direction.item())
            yield camera.frames(step.state)[0].numpy()

    write_video(target / f"{CAMERA}.avi", frames(), size=(LENS.height, LENS.width), rate=round(1 / STEP))
    turned = np.diff([*direction, world.situation().direction.item()])
    _write_numbers(target, np.array(speed), turned / STEP)
    _write_camera(target / "params.xml")
    mark_finished(marker, settings)
    return target


def _write_numbers(folder: Path, speed: NDArray[np.float64], yaw_rate: NDArray[np.float64]) -> None:
    time = np.arange(len(speed)) * STEP
    header = {"delimiter": ",", "comments": "", "fmt": "%.9g"}
    np.savetxt(folder / f"{CAMERA}.csv", np.stack([np.arange(len(time)), time], 1), header="frame,ros_time", **header)
    np.savetxt(folder / "speed.csv", np.stack([time, speed], 1), **header)
    still = np.zeros((len(time), 5))
    np.savetxt(folder / "imu.csv", np.concatenate([time[:, None], still, yaw_rate[:, None]], 1), **header)


def _write_camera(path: Path) -> None:
    root = ElementTree.Element("rig")
    camera = ElementTree.SubElement(ElementTree.SubElement(root, "sensors"), "camera", name=CAMERA)
    values = {
        "height": (LENS.height,),
        "width": (LENS.width,),
        "fx": (FOCAL,),
        "fy": (FOCAL,),
        "cx": (LENS.width / 2,),
        "cy": (LENS.height / 2,),
        "distortion": (0, 0, 0, 0),
        "quaternion": (0, 0, 0, 1),
        "position": (0, CAMERA_HEIGHT, 0),
        "yaw": (0,),
        "roi": ROI,
        "roi_angle": (0,),
    }
    for name, numbers in values.items():
        ElementTree.SubElement(camera, "property", name=name, value=",".join(str(number) for number in numbers))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path)


@dataclass(frozen=True)
class Optics:
    """The properties of a trace's camera that are needed to ask VISTA for frames.

    Attributes:
        height, width: size of its frames, pixels.
        roi: region of interest: top, left, bottom and right, pixels.
    """

    height: float
    width: float
    roi: tuple[float, ...]


def open_trace(folder: FolderPath) -> Optics:
    """Check a trace before VISTA reads it, because VISTA's own errors do not say what is wrong.

    Raises:
        FileNotFoundError: for a missing folder or file.
        ValueError: for a file that cannot be read.
    """
    source = Path(folder)
    missing = [name for name in FILES if not (source / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{source.name} must be a trace with the files {', '.join(FILES)}, but lacks {', '.join(missing)}; "
            "record one with lrcnet_paper.driving.vista_trace.record_trace"
        )
    for name, columns, skipped in ((f"{CAMERA}.csv", 2, 1), ("speed.csv", 2, 0), ("imu.csv", 7, 0)):
        _check_numbers(source / name, columns, skipped)
    return _read_optics(source / "params.xml")


def _check_numbers(path: Path, columns: int, skipped: int) -> None:
    try:
        table = np.genfromtxt(path, delimiter=",", skip_header=skipped, dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path.name} must have the same number of columns in every line; write it again") from error
    if table.shape[1] < columns or len(table) < 3 or not np.isfinite(table[:, [0, columns - 1]]).all():
        raise ValueError(
            f"{path.name} must have {columns} columns of numbers in three lines at least, but has shape {table.shape} "
            "or gaps; write it again"
        )


def _read_optics(path: Path) -> Optics:
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise ValueError(f"{path.name} must be XML, but cannot be read: {error}") from error
    cameras = [n for n in root.iter() if n.tag.lower() == "camera" and n.get("name", "").lower() == CAMERA]
    properties = {p.get("name", "").lower(): p.get("value", "") for camera in cameras[:1] for p in camera}
    try:
        height, width = float(properties["height"]), float(properties["width"])
        roi = tuple(float(number) for number in properties["roi"].split(","))
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"{path.name} must give height, width and roi of {CAMERA}; it has {sorted(properties)}"
        ) from error
    if len(roi) != 4 or not (0 <= roi[0] < roi[2] <= height and 0 <= roi[1] < roi[3] <= width):
        raise ValueError(f"roi in {path.name} must be top, left, bottom, right within the frame, but is {roi}")
    return Optics(height, width, roi)
