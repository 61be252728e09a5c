"""Activity of neurons along a drive, and the rules that classify neurons."""

import numpy as np
import pytest
import torch

from lrcnet_paper.driving import RUNNING, World, drive
from lrcnet_paper.interpret import correlation, drive_and_watch, scenes, side, swings, turning_cells
from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT, Policy


@pytest.mark.parametrize("model", ["lrcu-s", "lstm"])
def test_watching_a_drive_does_not_change_it(model: str) -> None:
    policy = Policy(model).eval()
    drives = drive_and_watch(policy, World([3, 4], season="summer", length=30.0), steps=12)
    assert len(drives) == 2
    assert all(one.activity.shape == (12, policy.head.in_features) for one in drives)
    alone = World([4], season="summer", length=30.0)
    steered = []
    drive(alone, policy.step, steps=12, watch=lambda now: steered.append(float(now.action[0])))
    np.testing.assert_allclose(drives[1].curvature.numpy(), steered, rtol=1e-3, atol=1e-6)
    with torch.no_grad():
        read = policy.head(
            drives[1].activity if model == "lstm" else policy.layer.cells[0].read_out(drives[1].activity)
        )
    torch.testing.assert_close(read[:, 0] * CURVATURE_PER_OUTPUT, drives[1].curvature, rtol=1e-4, atol=1e-6)
    assert 3 < drives[0].metres < 12
    assert not drives[0].arrived


def test_correlation_is_pearsons() -> None:
    activity, signal = torch.randn(50, 3), torch.randn(50)
    expected = [np.corrcoef(activity[:, i], signal)[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlation(activity, signal).numpy(), expected, rtol=1e-5)


def test_a_constant_neuron_correlates_with_nothing() -> None:
    still = torch.cat([torch.full((9, 1), 0.3), torch.arange(9.0).unsqueeze(1)], 1)
    assert correlation(still, torch.arange(9.0)).tolist() == [0.0, 1.0]
    assert correlation(still, torch.ones(9)).tolist() == [0.0, 0.0]
    assert swings(still, 100.0).tolist() == [0.0, 10.0]
    with pytest.raises(ValueError, match="the same number of time steps, at least two, but have 1 and 1"):
        correlation(still[:1], torch.ones(1))


def test_swings_count_rises_and_falls_per_kilometre() -> None:
    wave = torch.sin(torch.linspace(0, 2 * torch.pi * 5, 1001)).unsqueeze(1)
    assert swings(wave, 1000.0).item() == pytest.approx(10, abs=0.1)
    assert swings(7 * wave, 500.0).item() == pytest.approx(20, abs=0.2)


def test_the_rule_of_sides() -> None:
    assert [side(r) for r in (0.5, 0.49, -0.49, -0.5)] == ["left", "neither", "neither", "right"]
    assert turning_cells(torch.tensor([-0.9, 0.2, 0.3])) == (2, 0)


def test_scenes_are_the_same_in_every_call_and_differ_by_season() -> None:
    first, again, winter = (
        scenes("summer", 5, length=30.0),
        scenes("summer", 5, length=30.0),
        scenes("winter", 5, length=30.0),
    )
    assert first.dtype is torch.uint8
    assert torch.equal(first, again)
    assert not torch.equal(first, winter)
    assert len(scenes("summer", 20, length=30.0)) == 20
    assert RUNNING == 0
