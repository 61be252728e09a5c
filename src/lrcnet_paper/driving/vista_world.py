"""VISTA 2.0.6, the simulator of the paper's line of work, as a world to drive in (needs the extra `vista`).

It moves a car beside a recorded drive and warps the recorded frames into those that the car would see. The simulation,
the car and the frames are VISTA's; a trace is a recorded drive, real or made in our own world. VISTA's car takes any
curvature at once, whereas ours turns its wheels by at most 0.4 rad/s.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet_paper.driving.camera import HEIGHT, WIDTH
from lrcnet_paper.driving.drivable import Situation, check_action, check_length, check_not_empty
from lrcnet_paper.driving.expert import PREVIEW, steer_back
from lrcnet_paper.driving.recording import FolderPath
from lrcnet_paper.driving.road import ROAD_WIDTH
from lrcnet_paper.driving.vehicle import RUNNING, STEP, drive_status
from lrcnet_paper.driving.vista_simulator import load_vista
from lrcnet_paper.driving.vista_trace import CAMERA, open_trace, record_trace


class VistaWorld:
    """Cars beside recorded drives, each alone in its trace; a `Drivable`.

    Args:
        traces: folders in VISTA's format, one per car.
        length: distance to drive, m; at most the recorded distance.

    Raises:
        ValueError: for no traces, a length below 1 m, or a trace that cannot be read.
        FileNotFoundError: for a trace that lacks a file.
        ImportError: without the extra, or without libEGL.
    """

    def __init__(self, traces: Sequence[FolderPath], *, length: float = math.inf) -> None:
        check_not_empty("traces", traces, "folder", "record one with record_trace")
        check_length(length)
        self._cars = [_Car(Path(trace), length) for trace in traces]

    def __len__(self) -> int:
        return len(self._cars)

    def status(self) -> Tensor:
        """Return vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED for each car, (batch,)."""
        places = torch.tensor([(car.offset, car.heading) for car in self._cars], dtype=torch.float64)
        return drive_status(places[:, 0], places[:, 1], torch.tensor([car.has_arrived() for car in self._cars]))

    def situation(self) -> Situation:
        """Return position and motion of the cars; the trace starts at the map's origin and leads to the north."""
        columns = torch.tensor([car.situation() for car in self._cars], dtype=torch.float64).unbind(1)
        return Situation(*columns)

    def advice(self) -> Tensor:
        """Return the recorded curvature 0.1 s ahead, corrected to lead back to the recorded path, 1/m, (batch,)."""
        return torch.tensor([car.advice() for car in self._cars], dtype=torch.float64)

    def centre_line(self, car: int) -> Tensor:
        """Return the recorded path on the map, (point, 2), m, one point per frame."""
        return torch.from_numpy(self._cars[car].path.copy())

    def frames(self) -> Tensor:
        """Render the camera frames of all cars, (batch, 48, 160, 3), uint8, RGB."""
        return torch.from_numpy(np.stack([car.frame() for car in self._cars]))

    def step(self, action: Tensor) -> Tensor:
        """Advance every car by 1/30 s at the recorded speed; see `Drivable.step`."""
        check_action(action, len(self))
        curvatures = action.double().tolist()
        for car, curvature, status in zip(self._cars, curvatures, self.status().tolist(), strict=True):
            if status == RUNNING:
                car.step(curvature)
        return self.status()


class RecordedVistaWorld(VistaWorld):
    """Cars beside drives of the expert in our own world, recorded from seeds when the world is made.

    Args:
        seeds: one per car.
        season, length: as `World` takes them.
        folder: where traces are kept, one folder per seed; None keeps them as long as this world lives.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        season: str = "mixed",
        length: float = 1000.0,
        folder: FolderPath | None = None,
    ) -> None:
        check_not_empty("seeds", seeds, "road", "pass a list such as [0]")
        # Fail before the recording, which takes longer.
        load_vista()
        root = Path(tempfile.mkdtemp() if folder is None else folder)
        if folder is None:
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        # VISTA stops some frames before the end of a trace.
        traces = [record_trace(root / f"{seed}", seed, season=season, length=length + 5) for seed in seeds]
        super().__init__(traces, length=length)
        self.seeds = list(seeds)


class _Car:
    """One world of VISTA, with one trace, one car and one camera."""

    def __init__(self, folder: Path, length: float) -> None:
        optics = open_trace(folder)
        vista = load_vista()
        # The size at which the region of interest has our width; the height is odd because of the horizon.
        share = WIDTH / (optics.roi[3] - optics.roi[1])
        height = 2 * round((share * optics.height - 1) / 2) + 1
        self._length = length
        self._world = vista.World([str(folder)], {"reset_mode": "segment_start", "road_width": ROAD_WIDTH})
        self._trace = self._world.traces[0]
        times = self._trace.good_timestamps[CAMERA]
        if not times or len(times[0]) < 3:
            raise ValueError(f"{folder.name} must have a stretch driven faster than 2.5 m/s, but has none")
        self._times: NDArray[np.float64] = np.array(times[0])
        # VISTA's equations of motion assume this wheelbase for every car.
        self._car = self._world.spawn_agent({"wheel_base": 2.8})
        camera = self._car.spawn_camera({"name": CAMERA, "size": (height, round(share * optics.width))})
        lens = camera.view_synthesis._camera_node.camera
        # VISTA puts image points on the corners of pixels. A shift by half a pixel makes the frame sharper, and a car
        # at rest gets the recorded frame.
        lens.cx, lens.cy = lens.cx - 0.5, lens.cy + 0.5
        self._roi: list[int] = camera.camera_param.get_roi()
        self._car.reset(0, 0, 0, step_sensors=False)
        self._frame: NDArray[np.uint8] | None = None
        self.path, self._arc = self._integrate_path()

    def _integrate_path(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Integrate the recorded path (frame, 2) and the distance along it (frame,), m, as VISTA's car follows it."""
        speed, bend = self._trace.f_speed(self._times), self._trace.f_curvature(self._times)
        distance = speed[:-1] * np.diff(self._times)
        direction = np.concatenate([[0.0], (bend[:-1] * distance).cumsum()])
        # The chord of a circular arc points half-way between the directions of its ends.
        middle = (direction[1:] + direction[:-1]) / 2
        chord = distance * np.sinc(bend[:-1] * distance / (2 * np.pi))
        steps = np.stack([-chord * np.sin(middle), chord * np.cos(middle)], 1)
        return np.concatenate([np.zeros((1, 2)), steps.cumsum(0)]), np.concatenate([[0.0], distance.cumsum()])

    @property
    def offset(self) -> float:
        # VISTA's first coordinate points to the right.
        return float(-self._car.relative_state.x)

    @property
    def heading(self) -> float:
        return float(self._car.relative_state.yaw)

    def has_arrived(self) -> bool:
        # The last frame that VISTA can still show.
        over = self._car.done or self._car.frame_index >= len(self._times) - 2
        return bool(over or self._arc[self._car.frame_index] >= self._length)

    def situation(self) -> tuple[float, ...]:
        ego, car = self._car.ego_dynamics, self._car
        place = (float(ego.x), float(ego.y), float(ego.yaw) + math.pi / 2)
        return (self.offset, self.heading, float(car.human_speed), float(car.human_curvature), *place)

    def advice(self) -> float:
        ahead = float(self._trace.f_curvature(min(self._car.timestamp + PREVIEW, self._times[-1])))
        return steer_back(ahead, self.offset, math.sin(self.heading), float(self._car.human_speed))

    def frame(self) -> NDArray[np.uint8]:
        if self._frame is None:
            self._car.step_sensors()
            image: NDArray[Any] = self._car.observations[CAMERA]
            top, left, bottom, right = self._roi
            region = image[top:bottom, left:right, ::-1]
            if region.shape != (HEIGHT, WIDTH, 3):
                import cv2

                region = cv2.resize(np.ascontiguousarray(region), (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
            self._frame = np.ascontiguousarray(region)
        return self._frame

    def step(self, curvature: float) -> None:
        self._car.step_dynamics(np.array([curvature, float(self._car.human_speed)]), dt=STEP)
        self._frame = None
