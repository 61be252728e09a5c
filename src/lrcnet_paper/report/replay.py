"""One closed-loop drive, kept as arrays: what a page needs to show it again."""

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
from lrcnet_paper.driving.vehicle import LARGEST_HEADING
from lrcnet_paper.interpret import attention
from lrcnet_paper.models.policy import Policy

Floats = NDArray[np.float64]

MOST_PICTURES = 1000
"""Longer drives are shown with fewer pictures per second."""
FEWEST_STEPS = 2
"""From one picture to the next: 15 pictures per second."""
REASONS = {
    ARRIVED: "the end of the road",
    LEFT_ROAD: f"more than {ROAD_WIDTH / 2:g} m beside the path of the world's own driver",
    TURNED_AWAY: f"more than {math.degrees(LARGEST_HEADING):.0f}° away from the road's direction",
    RUNNING: "the last step that was allowed",
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
        pictures: what the policy saw, noise included, (picture, 48, 160, 3), uint8.
        attention: where it looked, (picture, 48, 160), uint8, 255 where most; None if that was not asked for.
        every: steps from one picture to the next.
        action: the policy's curvature, 1/m, (step,).
        advice: what the world's own driver would have steered, 1/m, (step,).
        offset, speed, x, y, direction: as `driving.Situation`, (step + 1,): the last is where the drive ended.
        activity: the recurrent layer's state h, (step, neuron).
        middle: path of the world's own driver on the map, (point, 2), m.
        standing: how the drive ended, a code of `lrcnet_paper.driving.vehicle`.
    """

    pictures: NDArray[np.uint8]
    attention: NDArray[np.uint8] | None
    every: int
    action: Floats
    advice: Floats
    offset: Floats
    speed: Floats
    x: Floats
    y: Floats
    direction: Floats
    activity: Floats
    middle: Floats
    standing: int

    @property
    def steps(self) -> int:
        """Steps driven."""
        return len(self.action)

    @property
    def seconds(self) -> float:
        """Time driven."""
        return self.steps * STEP

    @property
    def way(self) -> Floats:
        """Way along the driven path since the start, m, (step + 1,)."""
        return np.concatenate([[0.0], np.hypot(np.diff(self.x), np.diff(self.y)).cumsum()])

    @property
    def crashed(self) -> bool:
        """Whether the car left the road or turned away."""
        return self.standing in (LEFT_ROAD, TURNED_AWAY)

    @property
    def ending(self) -> str:
        """How it ended, such as "left the road after 12 m"."""
        return _ENDINGS[self.standing].format(metres=self.way[-1])


def record_drive(
    policy: Policy,
    world: Drivable,
    *,
    noise: float = 0.0,
    seed: int = 0,
    steps: int = 3000,
    look: bool = True,
) -> Replay:
    """Lets a policy drive a world's only car and keeps everything that can be seen of it.

    Args:
        policy: who steers.
        world: of one car, at the beginning of its drive.
        noise, seed, steps: as `lrcnet_paper.driving.drive` takes them.
        look: whether to find out where the policy looks.

    Raises:
        ValueError: for a world with more than one car, or arguments that `drive` refuses.
        DivergenceError: if the policy steers something that is not a finite number.

    Example:
        >>> from lrcnet_paper.driving import World
        >>> record_drive(Policy("lrcu-s"), World([1], length=3.0), look=False).ending
        'arrived after 3 m'
    """
    if len(world) != 1:
        raise ValueError(f"a replay shows one car, but the world has {len(world)}; make it from one seed")
    frames: list[NDArray[np.uint8]] = []
    steered: list[tuple[float, float]] = []
    places: list[tuple[float, ...]] = []
    states: list[NDArray[Any]] = []

    def watch(now: PolicyStep) -> None:
        action = float(now.action[0])
        if not math.isfinite(action):
            raise DivergenceError(
                f"the policy must steer a finite curvature, but steered {action} at step {len(frames) + 1}; "
                "its weights have diverged, train it again"
            )
        frames.append(_bytes(now.frames[0]))
        steered.append((action, float(now.advice[0])))
        places.append(_place(world))
        # An LSTM's state is a pair, and h comes first; (layer, car, neuron).
        hidden = now.state[0] if isinstance(now.state, tuple) else now.state
        states.append(hidden[-1, 0].double().numpy().copy())

    policy.eval()
    ended = drive(world, policy.step, noise=noise, seed=seed, steps=positive_size("steps", steps), watch=watch)
    places.append(_place(world))
    every = max(FEWEST_STEPS, math.ceil(len(frames) / MOST_PICTURES))
    pictures = np.stack(frames[::every])
    offset, speed, x, y, direction = np.array(places).T
    actions, advice = np.array(steered).T
    return Replay(
        pictures=pictures,
        attention=_bytes(attention(policy, torch.from_numpy(pictures))) if look else None,
        every=every,
        action=actions,
        advice=advice,
        offset=offset,
        speed=speed,
        x=x,
        y=y,
        direction=direction,
        activity=np.stack(states),
        middle=world.centre_line(0).double().numpy(),
        standing=int(ended.status[0]),
    )


def _place(world: Drivable) -> tuple[float, ...]:
    now = world.situation()
    return tuple(float(part[0]) for part in (now.offset, now.speed, now.x, now.y, now.direction))


def _bytes(bright: Tensor) -> NDArray[np.uint8]:
    """uint8 as it is; 0 to 1 in 256 steps."""
    values = bright if bright.dtype is torch.uint8 else bright.mul(255).round().to(torch.uint8)
    kept: NDArray[np.uint8] = values.numpy().copy()
    return kept
