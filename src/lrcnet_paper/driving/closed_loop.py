"""The closed loop: a policy steers by what the camera shows, perhaps through noise, until every drive is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from lrcnet_paper.driving.drivable import Drivable, Situation
from lrcnet_paper.driving.vehicle import ARRIVED, RUNNING

Policy = Callable[[Tensor, Any], tuple[Tensor, Any]]
"""From frames (batch, 48, 160, 3) and its state (None at first) to curvatures (batch,) and the state afterwards.

Tensors in the state have the cars along their second axis, as recurrent layers have them.
"""


@dataclass(frozen=True)
class PolicyStep:
    """One step of drives as a spectator sees it, taken before the cars move. Of the cars still driving, `cars`.

    Attributes:
        cars: their numbers, (driving,).
        frames: what the policy saw, noise included, (driving, 48, 160, 3): uint8, or float in [0, 1] with noise.
        action: the policy's curvature, 1/m, (driving,).
        advice: what the world's own driver would have steered, 1/m, (driving,).
        situation: of all cars.
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
    """How drives ended, each (batch,).

    Attributes:
        status: RUNNING for those who drove to the last step allowed, else LEFT_ROAD, TURNED_AWAY or ARRIVED.
        steps: until then.
    """

    status: Tensor
    steps: Tensor

    @property
    def crashed(self) -> Tensor:
        """Which cars left the road or turned away, (batch,), bool."""
        return (self.status != RUNNING) & (self.status != ARRIVED)


def add_noise(frames: Tensor, variance: float, generator: torch.Generator | None = None) -> Tensor:
    """Pictures with Gaussian noise, independent for every pixel and colour.

    Args:
        frames: uint8.
        variance: in the units of pixels from 0 to 1, so that 0.1 is a standard deviation of 81 of 255 steps.
        generator: of the noise.

    Returns:
        float32 in [0, 1], what lies outside clipped as a camera's sensor would; the frames themselves for variance 0.

    Raises:
        ValueError: for a negative variance.
    """
    if not variance >= 0:
        raise ValueError(f"noise is a variance, so it must be at least 0, but is {variance}")
    if variance == 0:
        return frames
    bright = frames.float() / 255
    return torch.randn(frames.shape, generator=generator).mul_(variance**0.5).add_(bright).clamp_(0, 1)


@torch.inference_mode()
def drive(
    world: Drivable,
    policy: Policy,
    *,
    noise: float = 0.0,
    seed: int = 0,
    steps: int = 3000,
    watch: Callable[[PolicyStep], None] | None = None,
) -> DriveOutcomes:
    """Lets a policy drive all cars of a world until each has crashed or arrived.

    Args:
        world: at the beginning of its drives.
        policy: who steers; see `Policy`.
        noise: variance of Gaussian noise on the pictures, see `add_noise`.
        seed: of the noise.
        steps: the drive is over after so many, 1/30 s each.
        watch: called once per step.

    Returns:
        How the drives ended.

    >>> from lrcnet_paper.driving.world import World
    >>> straight_on = lambda frames, state: (torch.zeros(len(frames)), state)
    >>> drive(World([1, 2], length=5.0), straight_on).crashed
    tensor([False, False])
    """
    generator = torch.Generator().manual_seed(seed)
    status = world.status().clone()
    cars = torch.nonzero(status == RUNNING)[:, 0]
    lasted = torch.zeros(len(world), dtype=torch.long)
    state: Any = None
    for _ in range(steps):
        if not len(cars):
            break
        seen = add_noise(world.frames()[cars], noise, generator)
        action, state = policy(seen, state)
        if watch is not None:
            watch(PolicyStep(cars, seen, action, world.advice()[cars], world.situation(), state))
        everyone = torch.zeros(len(world), dtype=action.dtype)
        everyone[cars] = action
        status = world.step(everyone)
        lasted[cars] += 1
        going = status[cars] == RUNNING
        if not bool(going.all()):
            # The policy thinks for those only who still drive: its time is the camera's hundredfold.
            cars = cars[going]
            state = pytree.tree_map_only(Tensor, lambda part: part[:, going], state)  # noqa: B023
    return DriveOutcomes(status, lasted)
