"""A replay holds the arrays of its drive, and describes how the drive ended."""

import numpy as np
import pytest
import torch
from synthetic_drives import synthetic_replay

from lrcnet.errors import DivergenceError
from lrcnet_paper.driving import ARRIVED, LEFT_ROAD, RUNNING, TURNED_AWAY, World, drive
from lrcnet_paper.interpret import attention, smooth
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.report.replay import MOST_FRAMES, record_drive


@pytest.fixture(scope="module")
def policy():
    torch.manual_seed(0)
    return Policy("lrcu-s")


def test_recording_a_drive_does_not_change_it(policy):
    replay = record_drive(policy, World([3], season="winter", length=8.0), noise=0.1, seed=4, with_attention=False)
    world, clean, steered = World([3], season="winter", length=8.0), [], []

    def watch(now):
        clean.append(world.frames()[0].numpy())
        steered.append(float(now.action[0]))

    ended = drive(world, policy.step, noise=0.1, seed=4, watch=watch)
    assert replay.steps == int(ended.steps[0])
    assert replay.status == int(ended.status[0])
    np.testing.assert_array_equal(replay.action, steered)
    assert replay.frames.shape == (-(-replay.steps // 2), 48, 160, 3)
    np.testing.assert_array_equal(replay.frames[1], clean[2])
    assert replay.activity.shape == (replay.steps, 19)


def test_it_ends_where_the_car_ended(policy):
    world = World([3], length=8.0)
    replay = record_drive(policy, world, with_attention=False)
    where = world.situation()
    assert len(replay.x) == replay.steps + 1
    assert (replay.x[-1], replay.y[-1], replay.offset[-1]) == (where.x[0], where.y[0], where.offset[0])
    assert replay.distance[-1] == pytest.approx(8.0, abs=0.6)


def test_attention_belongs_to_the_kept_frames(policy):
    replay = record_drive(policy, World([3], length=3.0), with_attention=True)
    wanted = smooth(attention(policy, torch.from_numpy(replay.frames))).mul(255).round().byte().numpy()
    np.testing.assert_array_equal(replay.attention, wanted)


def test_an_lstm_shows_h_and_not_its_cells():
    replay = record_drive(Policy("lstm"), World([3], length=3.0), with_attention=False)
    assert replay.activity.shape[1] == 23
    assert np.abs(replay.activity).max() < 1


def test_a_long_drive_has_fewer_pictures_per_second(policy, monkeypatch):
    monkeypatch.setattr("lrcnet_paper.report.replay.MOST_FRAMES", 3)
    replay = record_drive(policy, World([3], length=300.0), steps=14, with_attention=False)
    assert MOST_FRAMES > 900
    assert (replay.frame_interval, len(replay.frames)) == (6, 3)
    assert replay.ending.startswith("still on the road after ")


@pytest.mark.parametrize(
    ("status", "words", "crashed"),
    [
        (ARRIVED, "arrived after", False),
        (LEFT_ROAD, "left the road after", True),
        (TURNED_AWAY, "turned away from the road after", True),
        (RUNNING, "still on the road after", False),
    ],
)
def test_the_ending_is_described_in_words(status, words, crashed):
    replay = synthetic_replay(status=status)
    assert replay.ending == f"{words} {replay.distance[-1]:.0f} m"
    assert replay.crashed is crashed


def test_a_policy_that_steers_nan_is_reported():
    broken = Policy("lrcu-s")
    with torch.no_grad():
        broken.head.bias.fill_(torch.nan)
    with pytest.raises(DivergenceError, match="steered nan at step 1"):
        record_drive(broken, World([1]))


def test_more_than_one_car_is_refused(policy):
    with pytest.raises(ValueError, match="one car, but the world has 2"):
        record_drive(policy, World([1, 2]))
