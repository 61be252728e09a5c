"""CarRacing through our camera: signs, geometry, the expert on the track, seeds, and recordings in our format."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lrcnet_paper.driving import ARRIVED, LEFT_ROAD, RUNNING, TURNED_AWAY
from lrcnet_paper.driving.car_racing import CarRacingWorld, record_car_racing
from lrcnet_paper.driving.windows import Windows
from tests.lrcnet_paper.driving.guided_policy import drive_with_guided_policy
from tests.lrcnet_paper.driving.needs import needs_world


@pytest.fixture(autouse=True)
def _simulator() -> None:
    needs_world("carracing")


def grass_mask(frame: torch.Tensor) -> torch.Tensor:
    """Return where a frame shows grass, (48, 160): the only ground that is much greener than red."""
    colours = frame.int()
    return (colours[..., 1] - colours[..., 0] > 60) & (colours[..., 1] > colours[..., 2])


def test_a_car_begins_on_the_track_at_speed_and_sees_it() -> None:
    world = CarRacingWorld([1, 2, 1000])
    now = world.situation()
    assert now.offset.abs().max() < 1e-5
    assert now.heading.abs().max() < 1e-5
    assert now.speed.min() > 7
    for frame in world.frames():
        # Asphalt before the car, grass on both sides further away, sky above.
        assert not grass_mask(frame)[44:, 70:90].any()
        assert grass_mask(frame)[20, :20].all()
        assert grass_mask(frame)[20, -20:].all()
        assert (frame[:13, :, 2] >= frame[:13, :, 1]).all()


def test_edges_lie_where_a_pinhole_puts_them() -> None:
    world = CarRacingWorld([1])
    x, y, direction = world.viewpoint()[0].tolist()
    frame = world.render(world.viewpoint())[0]
    row = 24
    distance = 120 * 1.5 / (row + 0.5 - 14)
    # The centre line is smoothed, so it may lie a little beside the track's own.
    half = 40 / 6
    ahead = torch.tensor([1.5 + distance], dtype=torch.float64)
    road = world.road
    there = [road.at(table, world.state.arc + ahead).item() for table in (road.x, road.y)]
    left = (there[1] - y) * math.cos(direction) - (there[0] - x) * math.sin(direction)
    for side in (1, -1):
        column = 79.5 - 120 * (left + side * half) / distance
        edges = torch.nonzero(grass_mask(frame)[row].int().diff())[:, 0] + 0.5
        assert (edges - column).abs().min() < 4


@pytest.mark.parametrize("side", [1, -1])
def test_steering_to_a_side_moves_the_car_there_and_the_frame_to_the_other(side: int) -> None:
    world = CarRacingWorld([1])
    before = world.frames()[0]
    for _ in range(12):
        world.step(torch.tensor([side * 0.02]))
    assert side * world.state.offset[0] > 0.05
    assert side * world.state.heading[0] > 0.05
    after = world.frames()[0]
    # Far down the road, the asphalt moves to the side opposite to the steering.
    where = [torch.nonzero(~grass_mask(frame)[18])[:, 0].double().mean() for frame in (before, after)]
    assert side * (where[1] - where[0]) > 3


@pytest.mark.slow
def test_the_expert_keeps_to_the_track_for_a_whole_lap() -> None:
    world = CarRacingWorld([3, 14], length=1200.0)
    worst = torch.zeros(2, dtype=torch.float64)
    while bool((world.status() == RUNNING).any()):
        world.step(world.advice())
        worst = torch.maximum(worst, world.state.offset.abs())
    assert world.status().tolist() == [ARRIVED, ARRIVED]
    assert worst.max() < 0.3


def test_the_steered_curvature_is_the_driven_curvature() -> None:
    for wanted in (-0.05, 0.02, 0.08):
        world = CarRacingWorld([5], length=1000.0)
        for _ in range(15):
            world._cars[0].step(wanted, 6.0)
        start, way = world._cars[0].pose(), 0.0
        for _ in range(15):
            last = world._cars[0].pose()
            world._cars[0].step(wanted, 6.0)
            way += math.dist(last[:2], world._cars[0].pose()[:2])
        assert (world._cars[0].pose()[2] - start[2]) / way == pytest.approx(wanted, rel=0.06)


def test_a_seed_gives_the_same_drive_in_every_batch() -> None:
    one, many = CarRacingWorld([7]), CarRacingWorld([4, 7])
    for _ in range(40):
        one.step(torch.tensor([0.004]))
        many.step(torch.tensor([0.0, 0.004]))
    assert torch.equal(one.frames()[0], many.frames()[1])
    assert torch.equal(one.viewpoint()[0], many.viewpoint()[1])
    assert not torch.equal(many.frames()[0], many.frames()[1])


def test_a_car_that_left_the_track_does_not_move() -> None:
    world = CarRacingWorld([1, 2], length=300.0)
    for _ in range(200):
        world.step(torch.tensor([0.08, world.advice()[1].item()]))
    assert world.status()[0] in (LEFT_ROAD, TURNED_AWAY)
    assert world.status()[1] == RUNNING
    before = world.viewpoint()
    world.step(torch.tensor([-0.08, 0.0]))
    assert torch.equal(world.viewpoint()[0], before[0])
    assert not torch.equal(world.viewpoint()[1], before[1])


def test_a_policy_drives_three_hundred_steps() -> None:
    outcomes, actions = drive_with_guided_policy(CarRacingWorld([1, 2]), 310)
    assert outcomes.steps.tolist() == [310, 310]
    assert not outcomes.crashed.any()
    assert actions.isfinite().all()


def test_a_recording_is_made_by_its_seeds_and_trains_like_ours(tmp_path: Path) -> None:
    recording = record_car_racing(tmp_path / "one", [1, 2, 3], length=15.0, batch=2)
    again = record_car_racing(tmp_path / "two", [1, 2, 3], length=15.0, batch=3)
    for name in ("frames", "curvature", "offset", "heading", "speed", "road_curvature", "season", "road", "starts"):
        assert np.array_equal(getattr(recording, name), getattr(again, name)), name
    assert sorted(set(recording.road.tolist())) == [1, 2, 3]
    assert (recording.season == 255).all()
    assert np.abs(recording.offset).max() < 2
    frames, _, curvature = Windows(recording, length=32)[[0, 5]]
    assert frames.shape == (2, 32, 48, 160, 3)
    assert curvature.shape == (2, 32)
    world = CarRacingWorld([1], length=15.0)
    assert np.array_equal(recording.frames[0], world.frames()[0].numpy())
    opened = record_car_racing(tmp_path / "one", [1, 2, 3], length=15.0)
    assert len(opened) == len(recording)
    with pytest.raises(ValueError, match="holds a recording of other roads or settings"):
        record_car_racing(tmp_path / "one", [1, 2], length=15.0)


def test_bad_input_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seeds must name at least one track"):
        CarRacingWorld([])
    with pytest.raises(ValueError, match="length must be at least 1 m, but is 0"):
        CarRacingWorld([1], length=0.0)
    with pytest.raises(ValueError, match=r"action must have shape \(1,\)"):
        CarRacingWorld([1]).step(torch.zeros(2))
    with pytest.raises(ValueError, match="seeds must name at least one track"):
        record_car_racing(tmp_path, [])


@pytest.mark.parametrize("hidden", ["Box2D", "pygame", "gymnasium.envs.box2d"])
def test_without_the_extra_the_error_says_how_to_install_it(hidden: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, hidden, None)
    with pytest.raises(ImportError, match=r"CarRacing needs .*; run: pip install 'lrcnet\[carracing\]'$"):
        CarRacingWorld([1])
