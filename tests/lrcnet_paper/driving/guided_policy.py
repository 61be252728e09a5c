"""An untrained policy that the expert keeps on the path, to test that a policy can drive for long in a world."""

from __future__ import annotations

import torch

from lrcnet_paper.driving import Drivable, DriveOutcomes, drive
from lrcnet_paper.models.policy import Policy


def drive_with_guided_policy(world: Drivable, steps: int) -> tuple[DriveOutcomes, torch.Tensor]:
    """Let the expert steer with a small part added by an untrained policy, which alone would soon leave the path.

    Returns:
        The outcomes, and the curvatures of the policy, (step, car).
    """
    policy, actions = Policy("lrcu-s"), []

    def steer(frames: torch.Tensor, state: object) -> tuple[torch.Tensor, object]:
        action, state = policy.step(frames, state)
        actions.append(action)
        return world.advice() + 0.002 * action.tanh(), state

    outcomes = drive(world, steer, steps=steps)
    return outcomes, torch.stack(actions)
