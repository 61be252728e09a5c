"""One car of gymnasium's CarRacing-v3: steered by curvature, kept at a speed, with its track drawn by our camera.

CarRacing's unit of length is taken for a metre, and one of its steps for 1/30 s. Needs the extra `carracing`.
"""

from __future__ import annotations

import importlib
import math
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving.flat_camera import FlatCamera
from lrcnet_paper.driving.vehicle import STEP

MISSING = "CarRacing needs gymnasium with Box2D; run: pip install 'lrcnet[carracing]'"
# CarRacing's own drawing takes longer than everything else in a step, and nothing uses it.
_UNUSED_IMAGE = np.zeros((96, 96, 3), np.uint8)


class RaceCar:
    """A car on its track.

    Args:
        seed: seed of the track.

    Raises:
        ImportError: without the extra.

    Attributes:
        rear: distance from the hull's origin back to the rear axle, m.
        centre_line: points of the track's centre line, (point, 2), m.
        camera: camera that shows the track and the grass.
    """

    def __init__(self, seed: int) -> None:
        racing, dynamics = load_car_racing()
        size = dynamics.SIZE
        front, rear = dynamics.WHEELPOS[0][1] * size, dynamics.WHEELPOS[2][1] * size
        self.rear, self._wheelbase = -rear, front - rear
        self._world = racing.CarRacing()
        self._world._render = lambda mode: _UNUSED_IMAGE
        self._world.reset(seed=seed)
        self._hull = self._world.car.hull
        # CarRacing's speeds are this many times ours, because its second has more steps.
        self._speed_scale = STEP * racing.FPS
        self.centre_line: NDArray[np.float64] = np.array([(x, y) for _, _, x, y in self._world.track])
        self.camera = _make_camera(self._world, racing)

    def pose(self) -> tuple[float, float, float]:
        """Return position of the rear axle and direction of the car on the map, m, m, rad."""
        angle = self._hull.angle
        # CarRacing's cars point along their own y axis.
        x, y = self._hull.position
        return x + self.rear * math.sin(angle), y - self.rear * math.cos(angle), angle + math.pi / 2

    @property
    def speed(self) -> float:
        """Speed in m/s, by our seconds."""
        return float(self._hull.linearVelocity.length / self._speed_scale)

    @property
    def steering(self) -> float:
        """Angle of the front wheels, rad."""
        wheels = self._world.car.wheels
        return float(wheels[0].joint.angle + wheels[1].joint.angle) / 2

    def start(self, x: float, y: float, direction: float, speed: float) -> None:
        """Put the rear axle at (x, y), m, and let the car drive in a direction (rad) at a speed (m/s)."""
        before, turn = self.pose(), direction - self.pose()[2]
        their_speed = speed * self._speed_scale
        cos, sin = math.cos(turn), math.sin(turn)
        for body in (self._hull, *self._world.car.wheels):
            east, north = body.position[0] - before[0], body.position[1] - before[1]
            body.position = x + cos * east - sin * north, y + sin * east + cos * north
            body.angle += turn
            body.linearVelocity = their_speed * math.cos(direction), their_speed * math.sin(direction)
        for wheel in self._world.car.wheels:
            wheel.omega = their_speed / wheel.wheel_rad

    def step(self, curvature: float, speed: float) -> None:
        """Advance by one step of CarRacing; steer towards a curvature (1/m), accelerate towards a speed (m/s)."""
        angle = math.atan(curvature * self._wheelbase)
        missing = speed - self.speed
        gas, brake = min(max(0.1 * missing, 0.0), 1.0), min(max(-0.1 * missing, 0.0), 0.8)
        # In CarRacing's actions right is positive.
        self._world.step(np.array([-angle, gas, brake]))


def _make_camera(world: Any, racing: Any) -> FlatCamera:
    """Make a camera over CarRacing's grass and track, in the colours of its own view from above."""
    side = racing.GRASS_DIM
    square = np.array([(1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
    places = [(x, y) for x in range(-20, 20, 2) for y in range(-20, 20, 2)]
    grass = side * (np.array(places, np.float64)[:, None] + square)
    track = np.array([corners for corners, _ in world.road_poly], np.float64)
    colours = np.concatenate(
        [
            np.broadcast_to(world.grass_color, (len(grass), 3)),
            np.array([colour for _, colour in world.road_poly], np.float64),
        ]
    )
    return FlatCamera(np.asarray(world.bg_color, np.float64), np.concatenate([grass, track]), colours)


def load_car_racing() -> tuple[Any, Any]:
    """Import gymnasium's modules car_racing and car_dynamics.

    Raises:
        ImportError: if a package is missing; the message says which command installs it.
    """
    # Otherwise pygame prints a greeting on import.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        with warnings.catch_warnings():
            # Box2D's own warnings on import crash the interpreter where warnings are errors.
            warnings.simplefilter("ignore")
            # gymnasium's own error for a missing package is no ImportError.
            for name in ("Box2D", "pygame"):
                importlib.import_module(name)
            from gymnasium.envs.box2d import car_dynamics, car_racing
    except ImportError as error:
        raise ImportError(MISSING) from error
    return car_racing, car_dynamics
