"""The closed loop: good steering arrives, bad steering crashes, the noise has its variance, other cars drive on."""

import pytest
import torch

from lrcnet_paper.driving import LEFT_ROAD, RUNNING, TURNED_AWAY, World, add_noise, drive


def straight_on(frames, state):
    return torch.zeros(len(frames)), state


def expert_policy(world):
    """Make a policy that asks the world's expert; its state holds the numbers of the cars that still drive."""

    def policy(frames, state):
        cars = torch.arange(len(world))[None] if state is None else state
        return world.advice()[cars[0]], cars

    return policy


def test_the_expert_arrives_everywhere_and_straight_on_does_not():
    roads = list(range(500, 516))
    good = World(roads, length=150.0)
    assert not drive(good, expert_policy(good)).crashed.any()
    bad = drive(World(roads, length=150.0), straight_on)
    assert bad.crashed.float().mean() > 0.5
    assert set(bad.status[bad.crashed].tolist()) <= {LEFT_ROAD, TURNED_AWAY}


def test_a_drive_does_not_depend_on_the_other_cars():
    alone = [drive(World([road], length=80.0), straight_on).steps.item() for road in (500, 501, 502)]
    together = drive(World([500, 501, 502], length=80.0), straight_on)
    assert together.steps.tolist() == alone


def test_the_policy_gets_only_cars_that_still_drive_and_its_state_follows_them():
    world = World(list(range(500, 508)), length=150.0)
    steps = []

    def policy(frames, state):
        cars = torch.arange(len(world))[None] if state is None else state
        assert len(frames) == cars.shape[1]
        return torch.zeros(len(frames)), cars

    drive(world, policy, watch=steps.append)
    assert len(steps[-1].cars) < len(steps[0].cars) == 8
    for step in steps:
        assert step.state[0].tolist() == step.cars.tolist()
        assert step.frames.shape[0] == step.action.shape[0] == step.advice.shape[0] == len(step.cars)
        assert step.situation.offset.shape == (8,)


def test_drives_that_reach_the_last_step_count_as_running():
    outcomes = drive(World([500, 501], length=500.0), straight_on, steps=3)
    assert outcomes.steps.tolist() == [3, 3]
    assert outcomes.status.tolist() == [RUNNING, RUNNING]
    assert not outcomes.crashed.any()


def test_noise_has_its_variance_before_it_is_clipped():
    grey = torch.full((8, 48, 160, 3), 128, dtype=torch.uint8)
    weak = add_noise(grey, 0.01, torch.Generator().manual_seed(0))
    assert weak.var().item() == pytest.approx(0.01, rel=0.02)
    strong = add_noise(grey, 0.2, torch.Generator().manual_seed(0))
    assert strong.min() == 0
    assert strong.max() == 1
    torch.testing.assert_close(weak, add_noise(grey, 0.01, torch.Generator().manual_seed(0)))
    assert add_noise(grey, 0.0) is grey
    with pytest.raises(ValueError, match=r"a variance, so it must be at least 0, but is -0\.1"):
        add_noise(grey, -0.1)


def test_left_is_left_on_the_map():
    world = World([500], length=100.0)
    for _ in range(20):
        world.step(world.advice())
    before = world.situation()
    line = world.centre_line(0)
    assert line.shape == (101, 2)
    for _ in range(10):
        world.step(world.advice() + 0.02)
    after = world.situation()
    assert after.offset > before.offset
    ahead = torch.stack([before.direction.cos(), before.direction.sin()])[:, 0]
    way = torch.stack([after.x - before.x, after.y - before.y])[:, 0]
    assert way @ ahead > 0
    # The driven path is the centre line shifted by the offset.
    nearest = (line - torch.stack([after.x, after.y], 1)).norm(dim=1).min()
    assert nearest.item() == pytest.approx(abs(after.offset.item()), abs=0.6)


def test_noise_on_the_normalised_frame_is_a_share_of_its_own_variance() -> None:
    frames = torch.randint(90, 130, (3, 48, 160, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    clean = frames.float() / 255
    noisy = add_noise(frames, 0.1, torch.Generator().manual_seed(0), reading="normalised")
    share = (noisy - clean).var((1, 2, 3)) / clean.var((1, 2, 3))
    # The relative error of a variance of 23,040 numbers is about sqrt(2 / 23,040); five times that.
    assert ((share - 0.1).abs() < 0.1 * 5 * (2 / 23_040) ** 0.5).all()
    assert (add_noise(frames, 0.1, torch.Generator().manual_seed(0)) - clean).var() > 5 * (noisy - clean).var()
    with pytest.raises(ValueError, match="pixels, normalised"):
        add_noise(frames, 0.1, reading="loud")  # type: ignore[arg-type]
