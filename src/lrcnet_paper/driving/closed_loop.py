"""The closed loop: a policy steers by the camera frames, with or without noise, until every drive has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from lrcnet.errors import one_of
from lrcnet_paper.driving.drivable import Drivable, Situation
from lrcnet_paper.driving.vehicle import ARRIVED, RUNNING

Policy = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""Maps frames (batch, 48, 160, 3) and its state (None at first) to curvatures (batch,) and the state afterwards.

Tensors in the state have the cars along their second axis, as in recurrent layers.
"""


@dataclass(frozen=True)
class PolicyStep:
    """One step of a policy's drives, taken before the cars move; `driving` counts the cars whose drive has not ended.

    Attributes:
        cars: numbers of the cars that still drive, (driving,).
        frames: the policy's input, noise included, (driving, 48, 160, 3): uint8, or float in [0, 1] with noise.
        action: the policy's curvature, 1/m, (driving,).
        advice: the curvature that the world's expert would have steered, 1/m, (driving,).
        situation: position and motion of all cars.
        state: the policy's state after this step.
    """

    cars: Tensor
    frames: Tensor
    action: Tensor
    advice: Tensor
    situation: Situation
    state: Any


@dataclass(frozen=True)
class DriveOutcomes:
    """Outcomes of drives, each (batch,).

    Attributes:
        status: RUNNING for drives that reached the maximum number of steps, else LEFT_ROAD, TURNED_AWAY or ARRIVED.
        steps: number of steps driven.
    """

    status: Tensor
    steps: Tensor

    @property
    def crashed(self) -> Tensor:
        """Whether each car left the road or turned away, (batch,), bool."""
        return (self.status != RUNNING) & (self.status != ARRIVED)


NoiseReading = Literal["pixels", "normalised"]
"""What the variance of noise refers to: pixel values from 0 to 1, or the frame of variance 1 that a policy computes."""
READINGS: tuple[NoiseReading, ...] = get_args(NoiseReading)


def add_noise(
    frames: Tensor, variance: float, generator: torch.Generator | None = None, *, reading: NoiseReading = "pixels"
) -> Tensor:
    """Add Gaussian noise to frames, independently for every pixel and colour.

    Args:
        frames: uint8.
        variance: variance of the noise; on pixels 0.1 is a standard deviation of 81 of 255 steps.
        generator: random generator of the noise.
        reading: "pixels" for a variance on pixels from 0 to 1; "normalised" for a share of each frame's own variance,
            which is how much noise it is once the frame is normalised to variance 1.

    Returns:
        float32; on pixels clipped to [0, 1] as a camera's sensor would clip it. The frames themselves for variance 0.

    Raises:
        ValueError: for a negative variance or an unknown reading.
    """
    one_of("reading", reading, READINGS)
    if not variance >= 0:
        raise ValueError(f"noise is a variance, so it must be at least 0, but is {variance}")
    if variance == 0:
        return frames
    brightness = frames.float() / 255
    noise = torch.randn(frames.shape, generator=generator).mul_(variance**0.5)
    if reading == "pixels":
        return noise.add_(brightness).clamp_(0, 1)
    return noise.mul_(brightness.std((-3, -2, -1), correction=0, keepdim=True)).add_(brightness)


@torch.inference_mode()
def drive(
    world: Drivable,
    policy: Policy,
    *,
    noise: float = 0.0,
    reading: NoiseReading = "pixels",
    seed: int = 0,
    steps: int = 3000,
    watch: Callable[[PolicyStep], None] | None = None,
) -> DriveOutcomes:
    """Let a policy drive all cars of a world until each has crashed or arrived.

    Args:
        world: at the beginning of its drives.
        policy: the policy that steers; see `Policy`.
        noise, reading: variance of Gaussian noise on the frames and what it refers to, see `add_noise`.
        seed: random seed of the noise.
        steps: maximum number of 1/30 s steps.
        watch: called once per step.

    >>> from lrcnet_paper.driving.world import World
    >>> straight_on = lambda frames, state: (torch.zeros(len(frames)), state)
    >>> drive(World([1, 2], length=5.0), straight_on).crashed
    tensor([False, False])
    """
    generator = torch.Generator().manual_seed(seed)
    status = world.status().clone()
    cars = torch.nonzero(status == RUNNING)[:, 0]
    steps_driven = torch.zeros(len(world), dtype=torch.long)
    state: Any = None
    for _ in range(steps):
        if not len(cars):
            break
        frames = add_noise(world.frames()[cars], noise, generator, reading=reading)
        action, state = policy(frames, state)
        if watch is not None:
            watch(PolicyStep(cars, frames, action, world.advice()[cars], world.situation(), state))
        actions = torch.zeros(len(world), dtype=action.dtype)
        actions[cars] = action
        status = world.step(actions)
        steps_driven[cars] += 1
        running = status[cars] == RUNNING
        if not bool(running.all()):
            # The policy computes only for cars that still drive: it takes a hundred times as long as the camera.
            cars = cars[running]
            state = pytree.tree_map_only(Tensor, lambda part: part[:, running], state)  # noqa: B023
    return DriveOutcomes(status, steps_driven)
