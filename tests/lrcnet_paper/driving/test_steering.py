"""Steering that is not a number."""

import pytest
import torch

from lrcnet_paper.driving.world import World


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_steering_must_be_finite(value: float) -> None:
    world = World([0, 1], length=50)
    with pytest.raises(ValueError, match="action must be finite, but is (nan|inf) for car 1"):
        world.step(torch.tensor([0.0, value]))
