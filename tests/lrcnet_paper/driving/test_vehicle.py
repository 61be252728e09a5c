"""The car is a kinematic bicycle: it drives circles of the desired curvature, within its limits."""

import math

import pytest
import torch

from lrcnet_paper.driving import (
    ARRIVED,
    LEFT_ROAD,
    RUNNING,
    STEP,
    TURNED_AWAY,
    State,
    advance,
    roads_from_curvature,
    sample_roads,
)
from lrcnet_paper.driving.vehicle import STEERING_RATE, WHEELBASE, road_status, start


def test_road_coordinates_agree_with_the_bicycle_on_the_map() -> None:
    road = sample_roads([3, 4, 5])
    state = start(3)
    x, y, yaw = road.pose(state.arc, state.offset, state.heading)
    steering = state.steering
    finer = 200
    for i in range(90):
        action = 0.012 * torch.sin(torch.tensor([0.05, 0.08, 0.11], dtype=torch.float64) * i)
        speed = road.at(road.speed, state.arc)
        after = advance(road, state, action)
        # The same step in Cartesian coordinates, in 200 pieces.
        for _ in range(finer):
            steering = steering + (after.steering - state.steering) / finer
            yaw = yaw + speed * steering.tan() / WHEELBASE * STEP / finer
            x, y = x + speed * yaw.cos() * STEP / finer, y + speed * yaw.sin() * STEP / finer
        state = after
    poses = road.pose(state.arc, state.offset, state.heading)
    for ours, cartesian in zip(poses, (x, y, yaw), strict=True):
        torch.testing.assert_close(ours, cartesian, rtol=0, atol=5e-3)


def test_steering_turns_no_faster_than_its_limit() -> None:
    road, state = roads_from_curvature(torch.zeros(1, 400)), start(1)
    before = state.steering
    for _ in range(5):
        state = advance(road, state, torch.tensor([1.0]))
        assert (state.steering - before).item() == pytest.approx(STEERING_RATE * STEP)
        before = state.steering


def test_the_desired_curvature_is_driven() -> None:
    road, state = roads_from_curvature(torch.full((1, 400), 0.02)), start(1)
    state = State(state.arc, state.offset, state.heading, torch.tensor([math.atan(0.02 * WHEELBASE)]).double())
    for _ in range(150):
        state = advance(road, state, torch.tensor([0.02]))
    assert abs(state.offset.item()) < 1e-3
    assert state.curvature.item() == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("arc", "offset", "heading", "outcome"),
    [
        (10.0, 1.99, 0.31, RUNNING),
        (10.0, -2.01, 0.0, LEFT_ROAD),
        (10.0, 0.0, -math.pi / 10 - 0.01, TURNED_AWAY),
        (239.0, 0.0, 0.0, ARRIVED),
    ],
)
def test_an_episode_ends_as_in_vista(arc: float, offset: float, heading: float, outcome: int) -> None:
    road = roads_from_curvature(torch.zeros(1, 400))
    place = torch.tensor([[arc], [offset], [heading], [0.0]], dtype=torch.float64)
    assert road_status(road, State(*place)).item() == outcome
