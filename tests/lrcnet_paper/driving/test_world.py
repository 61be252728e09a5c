"""A world is a batch of independent episodes; its mirror image drives its mirror image."""

import pytest
import torch

from lrcnet_paper.driving import RUNNING, State, World, expert_drive


def test_a_mirrored_road_gives_the_mirrored_drive() -> None:
    world, mirror = World([1, 2, 3], length=150.0), World([1, 2, 3], length=150.0, mirrored=True)
    pairs = zip(expert_drive(world, world.expert()), expert_drive(mirror, mirror.expert()), strict=True)
    for i, (one, other) in enumerate(pairs):
        assert torch.equal(one.action, -other.action)
        assert torch.equal(one.state.offset, -other.state.offset)
        assert torch.equal(one.state.heading, -other.state.heading)
        assert torch.equal(one.state.arc, other.state.arc)
        if i % 20 == 0:
            assert one.frames is not None
            assert other.frames is not None
            assert torch.equal(one.frames.flip(2), other.frames)


def test_restarting_some_leaves_the_others_alone() -> None:
    world, fresh = World([1, 2, 3]), World([9])
    for _ in range(30):
        world.step(torch.zeros(3))
    before = world.frames()
    world.restart([1], [9])
    after = world.frames()
    assert torch.equal(after[[0, 2]], before[[0, 2]])
    assert torch.equal(after[1], fresh.frames()[0])
    assert world.seeds == [1, 9, 3]
    assert world.state.arc[1] == 0


def test_a_car_does_not_move_after_its_episode_has_ended() -> None:
    world = World([1, 2, 3], length=50.0)
    away = torch.tensor([0.08, -0.08, 0.0])
    for _ in range(400):
        status = world.step(away)
    assert (status[:2] != RUNNING).all()
    before = world.state
    world.step(-away)
    assert torch.equal(world.state.offset[:2], before.offset[:2])
    assert torch.equal(world.state.heading[:2], before.heading[:2])


def test_the_camera_survives_a_car_far_from_any_road() -> None:
    world = World([1, 2, 3, 4])
    far = torch.tensor([1e4, 0.0, -1e3, 500.0]), torch.tensor([0.0, 80.0, -80.0, 0.0]), torch.tensor([0.0, 1, -2, 3.1])
    world.state = State(*(z.double() for z in far), torch.zeros(4, dtype=torch.float64))
    assert world.frames().shape == (4, 48, 160, 3)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="seeds must name at least one episode"):
        World([])
    with pytest.raises(ValueError, match="season must be one of summer, winter, mixed, but is 'autumn'"):
        World([1], season="autumn")
    with pytest.raises(ValueError, match=r"action must have shape \(2,\)"):
        World([1, 2]).step(torch.zeros(3))
