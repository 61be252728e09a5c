"""One closed-loop drive as arrays: everything that a page needs to replay it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lrcnet.errors import DivergenceError, positive_size
from lrcnet_paper.driving import ARRIVED, LEFT_ROAD, ROAD_WIDTH, RUNNING, STEP, TURNED_AWAY, Drivable, PolicyStep, drive
from lrcnet_paper.driving.road_world import RoadWorld
from lrcnet_paper.driving.vehicle import LARGEST_HEADING
from lrcnet_paper.interpret import attention, smooth
from lrcnet_paper.models.policy import Policy

Floats = NDArray[np.float64]

MOST_FRAMES = 1000
"""Drives with more frames than this keep fewer per second."""
SHORTEST_INTERVAL = 2
"""Steps from one kept frame to the next: 15 frames per second."""
USUAL_SPEED = 12.0
"""Speed on a road of which nothing is known, m/s."""
REASONS = {
    ARRIVED: "the end of the road",
    LEFT_ROAD: f"more than {ROAD_WIDTH / 2:g} m away from the expert's path",
    TURNED_AWAY: f"more than {math.degrees(LARGEST_HEADING):.0f}° away from the road's direction",
    RUNNING: "the maximum number of steps",
}
_ENDINGS = {
    ARRIVED: "arrived after {metres:.0f} m",
    LEFT_ROAD: "left the road after {metres:.0f} m",
    TURNED_AWAY: "turned away from the road after {metres:.0f} m",
    RUNNING: "still on the road after {metres:.0f} m",
}


@dataclass(frozen=True)
class Replay:
    """A drive of one car in steps of 1/30 s.

    Attributes:
        frames: the camera's frames without noise, (frame, 48, 160, 3), uint8; noise does not compress, and one sample
            of it shows as much as another.
        attention: the policy's attention to each frame, noise included, smoothed over time and space, (frame, 24, 80),
            uint8; None if it was not computed.
        frame_interval: steps from one frame to the next.
        action: curvature that the policy steered, 1/m, (step,).
        advice: curvature that the expert would have steered, 1/m, (step,).
        offset, speed, x, y, direction: as in `driving.Situation`, (step + 1,); the last entry is the end of the drive.
        activity: state h of the recurrent layer, (step, neuron).
        centre_line: the expert's path on the map, (point, 2), m.
        road_curvature: curvature of the road at each of these points, 1/m, (point,); None if it is unknown.
        road_speed: speed of the traffic there, m/s, (point,).
        status: how the drive ended, a code of `lrcnet_paper.driving.vehicle`.
    """

    frames: NDArray[np.uint8]
    attention: NDArray[np.uint8] | None
    frame_interval: int
    action: Floats
    advice: Floats
    offset: Floats
    speed: Floats
    x: Floats
    y: Floats
    direction: Floats
    activity: Floats
    centre_line: Floats
    road_curvature: Floats | None
    road_speed: Floats
    status: int

    @property
    def steps(self) -> int:
        """Number of steps driven."""
        return len(self.action)

    @property
    def seconds(self) -> float:
        """Time driven, s."""
        return self.steps * STEP

    @property
    def distance(self) -> Floats:
        """Distance along the driven path since the start, m, (step + 1,)."""
        return np.concatenate([[0.0], np.hypot(np.diff(self.x), np.diff(self.y)).cumsum()])

    @property
    def crashed(self) -> bool:
        """Whether the car left the road or turned away."""
        return self.status in (LEFT_ROAD, TURNED_AWAY)

    @property
    def ending(self) -> str:
        """The end of the drive in words, such as "left the road after 12 m"."""
        return _ENDINGS[self.status].format(metres=self.distance[-1])


def record_drive(
    policy: Policy,
    world: Drivable,
    *,
    noise: float = 0.0,
    seed: int = 0,
    steps: int = 3000,
    with_attention: bool = True,
) -> Replay:
    """Let a policy drive the only car of a world and record everything that a page can show of the drive.

    Args:
        policy: the policy that steers.
        world: a world with one car, at the beginning of its drive.
        noise, seed, steps: as in `lrcnet_paper.driving.drive`.
        with_attention: whether to compute the policy's attention to each frame.

    Raises:
        ValueError: for a world with more than one car, or arguments that `drive` refuses.
        DivergenceError: if the policy steers a curvature that is not finite.

    Example:
        >>> from lrcnet_paper.driving import World
        >>> record_drive(Policy("lrcu-s"), World([1], length=3.0), with_attention=False).ending
        'arrived after 3 m'
    """
    if len(world) != 1:
        raise ValueError(f"a replay shows one car, but the world has {len(world)}; make it from one seed")
    frames: list[Tensor] = []
    seen: list[Tensor] = []
    curvatures: list[tuple[float, float]] = []
    places: list[tuple[float, ...]] = []
    states: list[NDArray[Any]] = []

    def record(now: PolicyStep) -> None:
        action = float(now.action[0])
        if not math.isfinite(action):
            raise DivergenceError(
                f"the policy must steer a finite curvature, but steered {action} at step {len(states) + 1}; "
                "its weights have diverged, train it again"
            )
        if len(states) % SHORTEST_INTERVAL == 0:
            frames.append((world.frames() if noise else now.frames)[0].clone())
            if with_attention:
                seen.append(now.frames[0].clone())
        curvatures.append((action, float(now.advice[0])))
        places.append(_place(world))
        # An LSTM's state is a pair with h first; h is (layer, car, neuron).
        hidden = now.state[0] if isinstance(now.state, tuple) else now.state
        states.append(hidden[-1, 0].double().numpy().copy())

    policy.eval()
    outcomes = drive(world, policy.step, noise=noise, seed=seed, steps=positive_size("steps", steps), watch=record)
    places.append(_place(world))
    every = max(1, math.ceil(len(frames) / MOST_FRAMES))
    centre_line = world.centre_line(0).double().numpy()
    offset, speed, x, y, direction = np.array(places).T
    actions, advice = np.array(curvatures).T
    road_curvature, road_speed = _road_tables(world, len(centre_line), speed)
    return Replay(
        frames=torch.stack(frames[::every]).numpy(),
        attention=_to_bytes(smooth(attention(policy, torch.stack(seen[::every])))) if with_attention else None,
        frame_interval=SHORTEST_INTERVAL * every,
        action=actions,
        advice=advice,
        offset=offset,
        speed=speed,
        x=x,
        y=y,
        direction=direction,
        activity=np.stack(states),
        centre_line=centre_line,
        road_curvature=road_curvature,
        road_speed=road_speed,
        status=int(outcomes.status[0]),
    )


def _place(world: Drivable) -> tuple[float, ...]:
    now = world.situation()
    return tuple(float(part[0]) for part in (now.offset, now.speed, now.x, now.y, now.direction))


def _road_tables(world: Drivable, points: int, speed: Floats) -> tuple[Floats | None, Floats]:
    """Return curvature and speed of the road at each point of the centre line; else None and the drive's mean speed."""
    if isinstance(world, RoadWorld):
        curvature, limit = (
            table[0, :points].double().numpy().copy() for table in (world.road.curvature, world.road.speed)
        )
        return curvature, limit
    known = speed[np.isfinite(speed)]
    return None, np.full(points, known.mean() if len(known) else USUAL_SPEED)


def _to_bytes(brightness: Tensor) -> NDArray[np.uint8]:
    """Convert brightness from 0 to 1 to bytes."""
    values: NDArray[np.uint8] = brightness.mul(255).round().to(torch.uint8).numpy()
    return values
