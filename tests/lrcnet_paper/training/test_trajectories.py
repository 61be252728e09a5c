"""The windows of a trajectory that a training iteration of the Neural-ODE task draws."""

import pytest
import torch

from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.neural_ode import trajectory
from lrcnet_paper.training.problems import ProblemSettings, ProcessShare
from lrcnet_paper.training.problems.trajectories import TrajectoryProblem


def problem(system="spiral", seed=3, batch_size=16):
    settings = ProblemSettings(100, batch_size, seed)
    return TrajectoryProblem(find("neural-ode", system), settings, ProcessShare(0, 1, torch.device("cpu")))


def draw(source, iteration=0):
    (batch,) = source.batches(iteration, iteration + 1)
    first, _, target = batch.samples
    return first, target


def starts(first, system="spiral"):
    states = trajectory(system)[1].float()
    return [int((states == point).all(1).nonzero()[0]) for point in first]


def test_a_batch_is_sixteen_distinct_pieces_of_the_trajectory():
    first, target = draw(problem())
    assert (first.shape, target.shape) == ((16, 2), (16, 16, 2))
    states, begin = trajectory("spiral")[1].float(), starts(first)
    assert len(set(begin)) == 16
    for start, window in zip(begin, target, strict=True):
        assert torch.equal(window, states[start : start + 16])


@pytest.mark.parametrize("system", ["sinusoid", "spiral"])
def test_windows_are_integrated_over_the_first_times_of_the_grid(system):
    times = trajectory(system)[0]
    assert torch.equal(problem(system).window_times, times[:16].float())


def test_windows_follow_the_seed_and_the_iteration_only():
    torch.manual_seed(0)
    a = draw(problem())[1]
    torch.manual_seed(1)
    assert torch.equal(a, draw(problem())[1])
    assert not torch.equal(a, draw(problem(seed=4))[1])
    assert not torch.equal(a, draw(problem(), iteration=1)[1])


def test_every_window_can_be_drawn():
    first, _ = draw(problem(batch_size=985))
    assert sorted(starts(first)) == list(range(985))
