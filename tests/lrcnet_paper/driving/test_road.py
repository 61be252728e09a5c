"""Roads are clothoids with straights, bends and S-curves, and each depends on its own seed."""

import pytest
import torch

from lrcnet_paper.driving import roads_from_curvature, sample_roads
from lrcnet_paper.driving.road import SIGHT, SMALLEST_RADIUS, _clothoids


def test_no_bend_is_tighter_than_25_m_and_some_are_nearly_so() -> None:
    bends = sample_roads(range(200)).curvature.abs()
    assert bends.max() <= 1 / SMALLEST_RADIUS + 1e-12
    assert bends.max() > 1 / 27


def test_there_are_straights_bends_both_ways_and_s_curves() -> None:
    bend = sample_roads(range(200)).curvature
    straight, left, right = (bend.abs() < 1e-9), bend > 0.004, bend < -0.004
    for share in (straight, left, right):
        assert 0.1 < share.double().mean() < 0.6
    # Within 60 m from a clear left bend to a clear right one.
    swing = torch.minimum(bend.unfold(1, 60, 20).amax(2), -bend.unfold(1, 60, 20).amin(2))
    assert (swing.amax(1) > 0.006).double().mean() > 0.5


def test_curvature_is_piecewise_linear_and_continuous() -> None:
    knots, values = _clothoids(range(20), 1000.0)
    assert (knots.diff(dim=1) > 0).all()
    assert (values.diff(dim=1).abs() / knots.diff(dim=1)).max() <= 0.0025 + 1e-12


def test_positions_follow_an_arc_exactly() -> None:
    radius, arc = 40.0, torch.arange(400, dtype=torch.float64)
    road = roads_from_curvature(torch.full((1, 400), 1 / radius, dtype=torch.float64))
    torch.testing.assert_close(road.x[0], radius * (arc / radius).sin(), rtol=0, atol=1e-6)
    torch.testing.assert_close(road.y[0], radius * (1 - (arc / radius).cos()), rtol=0, atol=1e-6)


def test_a_pose_between_grid_points_lies_on_the_arc() -> None:
    radius, arc = 25.0, torch.tensor([10.3], dtype=torch.float64)
    x, y, yaw = roads_from_curvature(torch.full((1, 400), 1 / radius)).pose(
        arc, torch.tensor([2.0]), torch.tensor([0.1])
    )
    # 2 m to the left of the lane is 2 m nearer to the centre of the circle.
    turned = arc / radius
    torch.testing.assert_close(x, (radius - 2) * turned.sin(), rtol=0, atol=1e-4)
    torch.testing.assert_close(y, radius - (radius - 2) * turned.cos(), rtol=0, atol=1e-4)
    torch.testing.assert_close(yaw, turned + 0.1, rtol=0, atol=1e-7)


def test_a_road_depends_on_its_seed_alone() -> None:
    together, alone = sample_roads([5, 6, 7]), sample_roads([6])
    for name in ("curvature", "speed", "wear", "snow", "x"):
        assert torch.equal(getattr(together, name)[1], getattr(alone, name)[0])
    assert not torch.equal(together.curvature[0], together.curvature[1])


def test_speed_keeps_sideways_acceleration_and_braking_comfortable() -> None:
    road = sample_roads(range(50))
    assert (road.speed**2 * road.curvature.abs()).max() <= 3.2 + 1e-9
    along = (road.speed**2).diff(dim=1) / 2
    assert along.min() >= -1.8 - 1e-9
    assert along.max() <= 1.2 + 1e-9


def test_some_stretches_are_worn_and_some_snowy_and_most_are_not() -> None:
    road = sample_roads(range(100))
    for quality in (road.wear, road.snow):
        assert quality.min() >= 0
        assert quality.max() <= 1
        assert 0.1 < (quality > 0.3).double().mean() < 0.5


def test_a_short_road_is_the_beginning_of_a_long_one() -> None:
    short, long = sample_roads(range(20), 150.0), sample_roads(range(20), 1000.0)
    for name in ("curvature", "wear", "snow", "x"):
        assert torch.equal(getattr(short, name), getattr(long, name)[:, : short.x.shape[1]])


def test_bad_roads_are_refused() -> None:
    with pytest.raises(ValueError, match="length must be at least 1 m, but is 0"):
        sample_roads([1], 0.0)
    with pytest.raises(ValueError, match="make the road longer"):
        roads_from_curvature(torch.zeros(1, SIGHT))
