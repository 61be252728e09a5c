"""Every world obeys the same laws: shapes, signs, limits, determinism, and an expert that arrives."""

from __future__ import annotations

import pytest
import torch

from lrcnet_paper.driving import ARRIVED, LEFT_ROAD, RUNNING, TURNED_AWAY, Drivable, drive, make_world
from tests.lrcnet_paper.driving.needs import needs_world

WORLDS = ["own", "carracing", pytest.param("vista", marks=pytest.mark.slow)]


@pytest.fixture(params=WORLDS)
def name(request: pytest.FixtureRequest) -> str:
    needs_world(request.param)
    return request.param


def straight(name: str, length: float = 120.0) -> Drivable:
    """Make a world of two cars; the road of the first one begins straight in every world."""
    return make_world(name, [1, 2], length=length)


def test_everything_has_its_shape_and_type(name: str) -> None:
    world = straight(name, 20.0)
    assert len(world) == 2
    frames = world.frames()
    assert frames.shape == (2, 48, 160, 3)
    assert frames.dtype == torch.uint8
    assert world.status().tolist() == [RUNNING, RUNNING]
    assert world.advice().shape == (2,)
    for value in vars(world.situation()).values():
        assert value.shape == (2,)
        assert value.dtype == torch.float64
        assert value.isfinite().all()
    assert world.step(torch.zeros(2)).tolist() == [RUNNING, RUNNING]
    line = world.centre_line(1)
    assert line.ndim == 2
    assert line.shape[1] == 2
    assert 18 < (line.diff(dim=0) ** 2).sum(1).sqrt().sum() < 30
    with pytest.raises(ValueError, match=r"action must have shape \(2,\)"):
        world.step(torch.zeros(3))


@pytest.mark.parametrize("side", [1, -1])
def test_steering_left_moves_the_car_left_and_the_frame_right(name: str, side: int) -> None:
    world = straight(name)
    before, start = world.frames()[0].float(), world.situation()
    for _ in range(12):
        world.step(torch.tensor([side * 0.02, 0.0]))
    now = world.situation()
    assert side * now.offset[0] > 0.05
    assert side * now.heading[0] > 0.03
    assert side * (now.direction[0] - start.direction[0]) > 0.03
    moved = torch.stack([now.x[0] - start.x[0], now.y[0] - start.y[0]])
    left = torch.stack([-start.direction[0].sin(), start.direction[0].cos()])
    assert side * (moved @ left) > 0.05
    # Around the horizon, where the driven distance hardly matters, the frame fits best when it is shifted back.
    after = world.frames()[0].float()
    rows, middle = slice(10, 17), slice(40, 120)
    gaps = {
        shift: (after[rows, 40 + shift : 120 + shift] - before[rows, middle]).abs().mean().item()
        for shift in range(-30, 31)
    }
    best = min(gaps, key=gaps.__getitem__)
    assert 3 < side * best < 28


def test_the_position_on_the_map_agrees_with_the_offset(name: str) -> None:
    world = straight(name)
    for _ in range(25):
        world.step(world.advice() + torch.tensor([0.01, -0.01]))
    now = world.situation()
    for car in range(2):
        gap = world.centre_line(car) - torch.stack([now.x[car], now.y[car]])
        assert (gap**2).sum(1).min().sqrt() == pytest.approx(now.offset[car].abs().item(), abs=0.35)


def test_the_expert_drives_for_three_hundred_steps_and_arrives(name: str) -> None:
    world = make_world(name, [5, 6], length=200.0)
    outcomes = drive(world, lambda frames, state: (world.advice()[world.status() == RUNNING], state), steps=1500)
    assert not outcomes.crashed.any()
    assert outcomes.status.tolist() == [ARRIVED, ARRIVED]
    assert outcomes.steps.min() > 300


def test_cars_whose_drive_has_ended_do_not_move(name: str) -> None:
    world = straight(name)
    for _ in range(60):
        status = world.step(torch.stack([torch.tensor(0.08, dtype=torch.float64), world.advice()[1].double()]))
    assert status[0] in (LEFT_ROAD, TURNED_AWAY)
    assert status[1] == RUNNING
    before, seen = world.situation(), world.frames()
    world.step(torch.tensor([-0.08, 0.0]))
    after = world.situation()
    assert after.x[0] == before.x[0]
    assert after.heading[0] == before.heading[0]
    assert after.x[1] != before.x[1] or after.y[1] != before.y[1]
    assert torch.equal(world.frames()[0], seen[0])


def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    one, again = make_world(name, [3], length=60.0), make_world(name, [4, 3], length=60.0)
    for _ in range(20):
        one.step(torch.tensor([0.006]))
        again.step(torch.tensor([0.0, 0.006]))
    assert torch.equal(one.frames()[0], again.frames()[1])
    assert not torch.equal(again.frames()[0], again.frames()[1])
    assert one.situation().x[0] == again.situation().x[1]


def test_names_seasons_and_traces_are_checked() -> None:
    with pytest.raises(ValueError, match="name must be one of own, vista, carracing, but is 'mars'"):
        make_world("mars", [1])
    with pytest.raises(ValueError, match="CarRacing has no winter"):
        make_world("carracing", [1], season="winter")
    with pytest.raises(ValueError, match="only VISTA takes traces, but name is 'own'"):
        make_world("own", [1], traces=["somewhere"])
    with pytest.raises(ValueError, match="one trace per seed, but there are 1 traces and 2 seeds"):
        make_world("vista", [1, 2], traces=["somewhere"])


@pytest.mark.parametrize("name", ["own", "carracing"])
def test_no_seeds_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="seeds must name at least one"):
        make_world(name, [])
