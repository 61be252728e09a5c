"""The gymnasium environment obeys gymnasium's contract, single and vectorised."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'lrcnet[driving]'")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from lrcnet_paper.driving.environment import ID, OUTCOMES, LaneKeeping, LaneKeepingVector  # noqa: E402


def test_gymnasiums_own_check_passes() -> None:
    check_env(gymnasium.make(ID, render_mode="rgb_array", length=60.0).unwrapped)


def test_a_seed_repeats_an_episode() -> None:
    def episode() -> list[np.ndarray]:
        environment = LaneKeeping(length=60.0)
        frames = [environment.reset(seed=5)[0]]
        frames += [environment.step(np.array([0.002], np.float32))[0] for _ in range(10)]
        return frames

    for one, other in zip(episode(), episode(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_steering_away_leaves_the_road_and_following_it_arrives() -> None:
    environment = LaneKeeping(length=80.0)
    for follow, outcomes in ((False, {"left the road", "turned away"}), (True, {"arrived"})):
        _, info = environment.reset(seed=1, options={"road": 12})
        assert info["outcome"] == "running"
        assert info["road"] == 12
        done, rewards = False, []
        while not done:
            wanted = info["road_curvature"] - 0.03 * info["offset"] - 0.25 * info["heading"] if follow else 0.05
            _, reward, done, truncated, info = environment.step(np.array([wanted], np.float32))
            rewards.append(reward)
            assert not truncated
        assert info["outcome"] in outcomes
        assert all(0 <= reward <= 1 for reward in rewards)
        assert (rewards[-1] == 0) is not follow


def test_the_vectorised_environment_equals_single_ones() -> None:
    many = gymnasium.make_vec(ID, num_envs=3, length=40.0)
    assert isinstance(many.unwrapped, LaneKeepingVector)
    singles = [LaneKeeping(length=40.0) for _ in range(3)]
    frames, _ = many.reset(seed=20)
    assert many.observation_space.contains(frames)
    for i, single in enumerate(singles):
        np.testing.assert_array_equal(single.reset(seed=20 + i)[0], frames[i])
    over = [False] * 3
    ended = 0
    for t in range(160):
        actions = np.array([[0.0], [0.004], [0.03 if t < 60 else 0.0]], np.float32)
        frames, rewards, terminated, truncated, info = many.step(actions)
        for i, single in enumerate(singles):
            if over[i]:
                # An ended episode restarts at the next step, which ignores its action.
                frame, over[i] = single.reset()[0], False
                assert rewards[i] == 0
            else:
                frame, reward, over[i], _, single_info = single.step(actions[i])
                assert rewards[i] == reward
                assert info["offset"][i] == single_info["offset"]
                assert info["outcome"][i] == single_info["outcome"]
            np.testing.assert_array_equal(frame, frames[i])
            assert terminated[i] == over[i]
            ended += over[i]
        assert not truncated.any()
    assert ended >= 3
    assert set(info["outcome"]) <= set(OUTCOMES)


def test_a_step_before_reset_is_refused() -> None:
    for environment in (LaneKeeping(), LaneKeepingVector(2)):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
            environment.step(np.zeros((environment.action_space.shape), np.float32))
    with pytest.raises(ValueError, match="num_envs must be at least 1, but is 0"):
        LaneKeepingVector(0)
