"""VISTA 2.0.6, the simulator of the paper's line of work, as a world to drive in (needs the extra `vista`).

It moves a car beside a recorded drive and bends the recorded pictures into what the car would see. The simulation, the
car and the pictures are theirs; a trace is somebody's drive, real or recorded in our own world. Their car takes any
curvature at once, where ours turns its wheels by 0.4 rad/s at most.
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
from lrcnet_paper.driving.drivable import Situation, check_action
from lrcnet_paper.driving.expert import LOOK_AHEAD
from lrcnet_paper.driving.recording import FolderPath
from lrcnet_paper.driving.road import ROAD_WIDTH
from lrcnet_paper.driving.vehicle import ARRIVED, LARGEST_HEADING, LEFT_ROAD, RUNNING, STEP, TURNED_AWAY
from lrcnet_paper.driving.vista_simulator import simulator
from lrcnet_paper.driving.vista_trace import CAMERA, open_trace, record_trace

_PREVIEW = 0.1


class VistaWorld:
    """Cars beside recorded drives, each alone in its trace; a `Drivable`.

    Args:
        traces: folders in VISTA's format, one per car.
        length: m to drive; at most what was recorded.

    Raises:
        ValueError: for no traces, a length below 1 m, or a trace that cannot be read.
        FileNotFoundError: for a trace that lacks a file.
        ImportError: without the extra, or without libEGL.
    """

    def __init__(self, traces: Sequence[FolderPath], *, length: float = math.inf) -> None:
        if not traces:
            raise ValueError("traces must name one folder at least, but are empty; record one with record_trace")
        if not length >= 1:
            raise ValueError(f"length must be at least 1 m, but is {length}; ask for a longer drive")
        self._cars = [_Car(Path(trace), length) for trace in traces]

    def __len__(self) -> int:
        return len(self._cars)

    def status(self) -> Tensor:
        """vehicle.RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED of each car, (batch,), by the limits of our own world."""
        return torch.tensor([car.status() for car in self._cars])

    def situation(self) -> Situation:
        """Where the cars are; the map begins where the trace does, which leads to the north."""
        columns = torch.tensor([car.situation() for car in self._cars], dtype=torch.float64).unbind(1)
        return Situation(*columns)

    def advice(self) -> Tensor:
        """The recorded driver's curvature 0.1 s further on, and what leads back to the recorded path, 1/m, (batch,)."""
        return torch.tensor([car.advice() for car in self._cars], dtype=torch.float64)

    def centre_line(self, car: int) -> Tensor:
        """The recorded path on the map, (point, 2), m, one point per frame."""
        return torch.from_numpy(self._cars[car].path.copy())

    def frames(self) -> Tensor:
        """What the cars see, (batch, 48, 160, 3), uint8, RGB."""
        return torch.from_numpy(np.stack([car.frame() for car in self._cars]))

    def step(self, action: Tensor) -> Tensor:
        """1/30 s further, at the recorded driver's speed.

        Args:
            action: curvature to steer, 1/m, (batch,).

        Returns:
            How each drive stands, as `status`; cars whose drive is over stay where it ended.

        Raises:
            ValueError: for an action of another shape.
        """
        check_action(action, len(self))
        for car, curvature in zip(self._cars, action.double().tolist(), strict=True):
            if car.status() == RUNNING:
                car.step(curvature)
        return self.status()


class RecordedVistaWorld(VistaWorld):
    """Cars beside drives that our own driver makes in our own world, from seeds, when they are wanted.

    Args:
        seeds: one per car.
        season, length: as `World`.
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
        if not seeds:
            raise ValueError("seeds must name one road at least, but are empty; pass a list such as [0]")
        # Before the recording, which takes longer.
        simulator()
        root = Path(tempfile.mkdtemp() if folder is None else folder)
        if folder is None:
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        # VISTA gives up some frames before the end of a trace.
        recorded = [record_trace(root / f"{seed}", seed, season=season, length=length + 5) for seed in seeds]
        super().__init__(recorded, length=length)
        self.seeds = list(seeds)


class _Car:
    """One of their worlds, with one trace, one car and one camera."""

    def __init__(self, folder: Path, length: float) -> None:
        optics = open_trace(folder)
        vista = simulator()
        # Large enough that the part which is looked at has our width; odd, because of the horizon.
        share = WIDTH / (optics.roi[3] - optics.roi[1])
        height = 2 * round((share * optics.height - 1) / 2) + 1
        self._length = length
        self._world = vista.World([str(folder)], {"reset_mode": "segment_start", "road_width": ROAD_WIDTH})
        self._trace = self._world.traces[0]
        times = self._trace.good_timestamps[CAMERA]
        if not times or len(times[0]) < 3:
            raise ValueError(f"{folder.name} must have a stretch driven faster than 2.5 m/s, but has none")
        self._times: NDArray[np.float64] = np.array(times[0])
        # The wheelbase that their equations of motion assume, whatever the car's.
        self._car = self._world.spawn_agent({"wheel_base": 2.8})
        camera = self._car.spawn_camera({"name": CAMERA, "size": (height, round(share * optics.width))})
        lens = camera.view_synthesis._camera_node.camera
        # Their picture's points lie on the corners of pixels; half a pixel sharpens it, and at rest it is the recorded.
        lens.cx, lens.cy = lens.cx - 0.5, lens.cy + 0.5
        self._roi: list[int] = camera.camera_param.get_roi()
        self._car.reset(0, 0, 0, step_sensors=False)
        self._seen: NDArray[np.uint8] | None = None
        self.path, self._arc = self._driven()

    def _driven(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The recorded path (frame, 2), and the way along it (frame,), m, as their car goes along it."""
        speed, bend = self._trace.f_speed(self._times), self._trace.f_curvature(self._times)
        way = speed[:-1] * np.diff(self._times)
        turned = np.concatenate([[0.0], (bend[:-1] * way).cumsum()])
        # Along an arc of a circle the chord points half-way between the directions of its ends.
        middle = (turned[1:] + turned[:-1]) / 2
        chord = way * np.sinc(bend[:-1] * way / (2 * np.pi))
        steps = np.stack([-chord * np.sin(middle), chord * np.cos(middle)], 1)
        return np.concatenate([np.zeros((1, 2)), steps.cumsum(0)]), np.concatenate([[0.0], way.cumsum()])

    @property
    def _offset(self) -> float:
        # Their first coordinate points to the right.
        return float(-self._car.relative_state.x)

    @property
    def _heading(self) -> float:
        return float(self._car.relative_state.yaw)

    def status(self) -> int:
        if abs(self._offset) > ROAD_WIDTH / 2:
            return LEFT_ROAD
        if abs(self._heading) > LARGEST_HEADING:
            return TURNED_AWAY
        # The last frame that they can still show.
        over = self._car.done or self._car.frame_index >= len(self._times) - 2
        return ARRIVED if over or self._arc[self._car.frame_index] >= self._length else RUNNING

    def situation(self) -> tuple[float, ...]:
        ego, car = self._car.ego_dynamics, self._car
        place = (float(ego.x), float(ego.y), float(ego.yaw) + math.pi / 2)
        return (self._offset, self._heading, float(car.human_speed), float(car.human_curvature), *place)

    def advice(self) -> float:
        ahead = LOOK_AHEAD * float(self._car.human_speed)
        feed = float(self._trace.f_curvature(min(self._car.timestamp + _PREVIEW, self._times[-1])))
        return feed - 2 * (self._offset + ahead * math.sin(self._heading)) / ahead**2

    def frame(self) -> NDArray[np.uint8]:
        if self._seen is None:
            self._car.step_sensors()
            picture: NDArray[Any] = self._car.observations[CAMERA]
            top, left, bottom, right = self._roi
            part = picture[top:bottom, left:right, ::-1]
            if part.shape != (HEIGHT, WIDTH, 3):
                import cv2

                part = cv2.resize(np.ascontiguousarray(part), (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)
            self._seen = np.ascontiguousarray(part)
        return self._seen

    def step(self, curvature: float) -> None:
        self._car.step_dynamics(np.array([curvature, float(self._car.human_speed)]), dt=STEP)
        self._seen = None
