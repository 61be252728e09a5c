"""The closed loop: who steers well arrives, who does not crashes, noise is what it says, the rest drive on alone."""

import pytest
import torch

from lrcnet_paper.driving import LEFT_ROAD, RUNNING, TURNED_AWAY, World, add_noise, drive


def straight_on(frames, state):
    return torch.zeros(len(frames)), state


def advised(world):
    """A policy that asks the world's own driver; it keeps track of who still drives by the numbers in its state."""

    def policy(frames, state):
        cars = torch.arange(len(world))[None] if state is None else state
        return world.advice()[cars[0]], cars

    return policy


def test_the_driver_arrives_everywhere_and_straight_on_does_not():
    roads = list(range(500, 516))
    good = World(roads, length=150.0)
    assert not drive(good, advised(good)).crashed.any()
    bad = drive(World(roads, length=150.0), straight_on)
    assert bad.crashed.float().mean() > 0.5
    assert set(bad.status[bad.crashed].tolist()) <= {LEFT_ROAD, TURNED_AWAY}


def test_a_drive_does_not_depend_on_who_else_drives():
    alone = [drive(World([road], length=80.0), straight_on).steps.item() for road in (500, 501, 502)]
    together = drive(World([500, 501, 502], length=80.0), straight_on)
    assert together.steps.tolist() == alone


def test_the_policy_sees_only_those_who_still_drive_and_its_state_follows_them():
    world = World(list(range(500, 508)), length=150.0)
    seen = []

    def policy(frames, state):
        cars = torch.arange(len(world))[None] if state is None else state
        assert len(frames) == cars.shape[1]
        return torch.zeros(len(frames)), cars

    drive(world, policy, watch=lambda instant: seen.append(instant))
    assert len(seen[-1].cars) < len(seen[0].cars) == 8
    for instant in seen:
        assert instant.state[0].tolist() == instant.cars.tolist()
        assert instant.frames.shape[0] == instant.action.shape[0] == instant.advice.shape[0] == len(instant.cars)
        assert instant.situation.offset.shape == (8,)


def test_steps_are_limited_and_the_rest_counts_as_running():
    ended = drive(World([500, 501], length=500.0), straight_on, steps=3)
    assert ended.steps.tolist() == [3, 3]
    assert ended.status.tolist() == [RUNNING, RUNNING]
    assert not ended.crashed.any()


def test_noise_has_the_variance_it_says_before_it_is_clipped():
    grey = torch.full((8, 48, 160, 3), 128, dtype=torch.uint8)
    found = add_noise(grey, 0.01, torch.Generator().manual_seed(0))
    assert found.var().item() == pytest.approx(0.01, rel=0.02)
    strong = add_noise(grey, 0.2, torch.Generator().manual_seed(0))
    assert strong.min() == 0
    assert strong.max() == 1
    torch.testing.assert_close(found, add_noise(grey, 0.01, torch.Generator().manual_seed(0)))
    assert add_noise(grey, 0.0) is grey
    with pytest.raises(ValueError, match=r"a variance, so it must be at least 0, but is -0\.1"):
        add_noise(grey, -0.1)


def test_left_is_left_on_the_map():
    world = World([500], length=100.0)
    for _ in range(20):
        world.step(world.advice())
    before = world.situation()
    middle = world.centre_line(0)
    assert middle.shape == (101, 2)
    for _ in range(10):
        world.step(world.advice() + 0.02)
    after = world.situation()
    assert after.offset > before.offset
    ahead = torch.stack([before.direction.cos(), before.direction.sin()])[:, 0]
    way = torch.stack([after.x - before.x, after.y - before.y])[:, 0]
    assert way @ ahead > 0
    # The driven path is the middle of the lane shifted by the offset.
    nearest = (middle - torch.stack([after.x, after.y], 1)).norm(dim=1).min()
    assert nearest.item() == pytest.approx(abs(after.offset.item()), abs=0.6)
