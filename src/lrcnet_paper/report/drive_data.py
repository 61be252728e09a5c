"""The numbers and pictures of drives as JSON inside a page."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lrcnet.pages import palette
from lrcnet_paper.driving import HEIGHT, ROAD_WIDTH, STEP, WIDTH
from lrcnet_paper.driving.camera import CAMERA_AHEAD, CAMERA_HEIGHT, FOCAL, HORIZON, ROAD_EDGE
from lrcnet_paper.driving.road import LANE_WIDTH
from lrcnet_paper.driving.vehicle import LARGEST_CURVATURE, LARGEST_HEADING, STEERING_RATE, WHEELBASE
from lrcnet_paper.interpret import correlation
from lrcnet_paper.interpret.neurons import CLEAR
from lrcnet_paper.report import drive_pictures as pictures
from lrcnet_paper.report.drive_map import RoadMap
from lrcnet_paper.report.drive_set import DriveSet, RecordedDrive
from lrcnet_paper.report.replay import REASONS

Floats = NDArray[np.float64]

WARM_UP = 30
"""Steps after which a network has left its initial state; the colours of its neurons are scaled by the steps after."""
PERCENTILES = (2, 98)


def data_element(drives: DriveSet, road_maps: Mapping[str, RoadMap], span: float) -> str:
    """Return the script element with everything that the page's program needs.

    Args:
        drives: the drives.
        road_maps: the road of each season on the map.
        span: time that the axes of the curves cover, s.
    """
    shares = _sheet_shares(drives)
    shown = drives.select(drives.seasons[0], drives.noises[0])
    data = {
        "step": STEP,
        "span": round(span, 4),
        "columns": pictures.COLUMNS,
        "rows": pictures.ROWS,
        "camera": _camera(drives.setting.world),
        "vehicle": {
            "step": STEP,
            "wheelbase": WHEELBASE,
            "steeringRate": STEERING_RATE,
            "largestSteering": math.atan(WHEELBASE * LARGEST_CURVATURE),
            "largestHeading": LARGEST_HEADING,
            "roadWidth": ROAD_WIDTH,
        },
        "ramp": palette.SEQUENTIAL_SAMPLES,
        "clear": CLEAR,
        "seasons": drives.seasons,
        "noises": drives.noises,
        "policies": [
            {"label": label, "units": replay.activity.shape[1]}
            for label, replay in zip(drives.labels, shown, strict=True)
        ],
        "roads": [_road(road_maps[season]) for season in drives.seasons],
        "drives": [
            _drive(drives, drive, road_maps[drive.season], share)
            for drive, share in zip(drives.drives, shares, strict=True)
        ],
    }
    # "</" would end the script element; JSON can spell "<" differently.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{text}</script>'


def neuron_ranges(activity: Floats) -> dict[str, Floats]:
    """Return the whole range of each neuron of a drive, and its percentiles after the first second, each (neuron,).

    Args:
        activity: states, (step, neuron).
    """
    settled = activity[WARM_UP:] if len(activity) > 2 * WARM_UP else activity
    low, high = np.percentile(settled, PERCENTILES, axis=0)
    return {"least": activity.min(0), "most": activity.max(0), "low": low, "high": high}


def _camera(world: str) -> dict[str, Any]:
    camera: dict[str, Any] = {
        "columns": WIDTH,
        "rows": HEIGHT,
        "focal": FOCAL,
        "height": CAMERA_HEIGHT,
        "ahead": CAMERA_AHEAD,
        "horizon": HORIZON,
    }
    if world == "own":
        # Traffic keeps to the right: the other lane is to the left.
        camera["edges"] = [-LANE_WIDTH / 2, LANE_WIDTH / 2]
        camera["asphalt"] = [LANE_WIDTH / 2 - ROAD_EDGE, LANE_WIDTH / 2 + ROAD_EDGE]
    else:
        camera["edges"] = camera["asphalt"] = [-ROAD_WIDTH / 2, ROAD_WIDTH / 2]
    return camera


def _road(road_map: RoadMap) -> dict[str, Any]:
    return {
        "x": _numbers(road_map.points[:, 0], 3),
        "y": _numbers(road_map.points[:, 1], 3),
        "direction": _numbers(road_map.direction, 5),
        "curvature": _numbers(road_map.curvature, 6),
        "speed": _numbers(road_map.speed, 3),
    }


def _drive(drives: DriveSet, drive: RecordedDrive, road_map: RoadMap, share: int) -> dict[str, Any]:
    replay = drive.replay
    x, y, direction = road_map.place(replay.x, replay.y, replay.direction)
    ranges = neuron_ranges(replay.activity)
    span = np.where(ranges["most"] > ranges["least"], ranges["most"] - ranges["least"], 1.0)
    levels = (255 * (replay.activity - ranges["least"]) / span).round().astype(np.uint8)
    r = correlation(torch.from_numpy(replay.activity), torch.from_numpy(replay.action)) if replay.steps > 1 else None
    # Attention is smooth and small, so a sixth of the bytes is enough for it.
    seen = None if replay.attention is None else pictures.sheets(replay.attention, share // 6)
    return {
        "policy": drive.policy,
        "season": drives.seasons.index(drive.season),
        "noise": drives.noises.index(drive.noise),
        "frames": len(replay.frames),
        "interval": replay.frame_interval,
        "sheets": pictures.sheets(replay.frames, share),
        "attention": seen,
        "action": _numbers(replay.action, 5),
        "advice": _numbers(replay.advice, 5),
        "offset": _numbers(replay.offset, 3),
        "speed": _numbers(replay.speed, 2),
        "distance": _numbers(replay.distance, 1),
        "x": _numbers(x, 2),
        "y": _numbers(y, 2),
        "direction": _numbers(np.degrees(direction), 2),
        **{name: _numbers(values, 5) for name, values in ranges.items()},
        "activity": base64.b64encode(levels.tobytes()).decode(),
        "r": [0.0] * levels.shape[1] if r is None else _numbers(r.double().numpy(), 3),
        "crashed": replay.crashed,
        "ending": replay.ending[0].upper() + replay.ending[1:],
        "reason": REASONS[replay.status],
    }


def _sheet_shares(drives: DriveSet) -> list[int]:
    """Return the largest length of the sheets of each drive, in proportion to its frames."""
    frames = [len(drive.replay.frames) for drive in drives.drives]
    return [pictures.LARGEST * count // sum(frames) for count in frames]


def _numbers(values: Floats, digits: int) -> list[float | None]:
    """Round values for JSON, with null where the world does not know the quantity."""
    return [round(value, digits) if np.isfinite(value) else None for value in values.tolist()]
