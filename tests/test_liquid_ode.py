"""LiquidODE learns the equation behind trajectories; NeuralODE takes times per trajectory and substeps."""

from typing import Any

import numpy as np
import pytest
import torch

import lrcnet
from lrcnet.trajectories import cut_windows, read_trajectories

rng = np.random.default_rng(0)
# The error of a second-order method is about the square of its step, 0.2 here.
SQUARE_STEP = 0.04


def rotation(start: Any, times: Any) -> Any:
    """Return the states of dy/dt = (y1, -y0) / 10, around (100, 5) with amplitudes (20, 1)."""
    angle = np.asarray(times)[:, None] / 10
    cosine, sine = np.cos(angle), np.sin(angle)
    unit = (np.asarray(start) - [100, 5]) / [20, 1]
    return np.array([100, 5]) + np.array([20, 1]) * (cosine * unit + sine * unit[::-1] * np.array([1, -1]))


def trajectories() -> tuple[list[Any], list[Any]]:
    starts = [[120, 5], [100, 5.5], [90, 4.5]]
    times = [np.sort(rng.uniform(0, 60, size)) for size in (30, 40, 25)]
    values = []
    for start, clock in zip(starts, times, strict=True):
        clock[0] = 0
        states = rotation(start, clock)
        states[rng.random(states.shape) < 0.1] = np.nan
        states[0] = start
        values.append(states)
    return times, values


@pytest.mark.parametrize("field", ["mlp", pytest.param("lrc", marks=pytest.mark.slow)])
def test_an_unscaled_system_is_learned_from_irregular_trajectories_with_missing_readings(
    field: Any, tmp_path: Any
) -> None:
    times, values = trajectories()
    ode = lrcnet.LiquidODE(field=field, iterations=120, random_state=0).fit(times, values)
    assert np.mean(ode.history_[-10:]) < 0.1 * ode.history_[0]
    clock = np.linspace(0, 30, 50)
    error = np.abs(ode.simulate([110, 5], clock) - rotation([110, 5], clock)) / [20, 1]
    assert error.mean() < 0.2
    assert ode.simulate([[110, 5], [100, 5.9]], clock).shape == (2, 50, 2)
    later = np.array([61.0, 64.0])
    assert (np.abs(ode.extrapolate(later, 1) - rotation([100, 5.5], later)) / [20, 1]).max() < 0.5
    assert ode.derivative(np.array([120, 5]))[1] == pytest.approx(-0.1, abs=0.05)
    assert ode.phase_portrait(tmp_path / "portrait.png").stat().st_size > 10_000


def test_the_same_seed_gives_the_same_equation() -> None:
    times, values = trajectories()
    first, second = (lrcnet.LiquidODE(iterations=3, field="mlp").fit(times, values) for _ in range(2))
    assert first.history_ == second.history_


def test_windows_start_at_complete_readings_and_share_their_ends() -> None:
    values = np.arange(14.0).reshape(7, 2)
    values[0, 1] = values[3, 0] = np.nan
    windows = cut_windows(read_trajectories(np.arange(7.0), values), 3)
    # From reading 1 on: readings 1 to 3; 3 is not complete, so the next one starts at 4.
    assert windows.times.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert windows.starts.tolist() == [[2, 3], [8, 9]]


@pytest.mark.parametrize(
    ("times", "values", "message"),
    [
        (
            [0, 1, 1],
            np.ones((3, 2)),
            "the times of trajectory 0 must increase .* reading 3 repeats .* reading 2",
        ),
        ([0, 2, 1], np.ones((3, 2)), "reading 3 is earlier than reading 2"),
        ([0, 1], np.ones((3, 2)), r"trajectory 0 has shape \(3, 2\) and times \(2,\)"),
        ([[0, 1]], [np.ones((2, 2))] * 2, "times for each of 2 trajectories, but for 1"),
        ([0, 1], np.ones(2), r"values must be \(times, state\)"),
        ([0, 1], np.full((2, 1), np.nan), "a reading without missing values"),
        ([0, 1], np.array([[1.0], [np.inf]]), "trajectory 0 has an infinite one"),
    ],
)
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:Degrees of freedom")
def test_bad_trajectories_are_one_sentence(times: Any, values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lrcnet.LiquidODE(iterations=1).fit(times, values)


@pytest.mark.parametrize("solver", ["euler", "heun", "rk4", "dopri5"])
def test_times_per_trajectory_equal_one_call_each(solver: Any) -> None:
    model = lrcnet.NeuralODE(lrcnet.LRCField(2), solver=solver).double()
    t = torch.rand(6, 3, dtype=torch.float64).cumsum(0)
    y0 = torch.randn(3, 2, dtype=torch.float64)
    together = model(y0, t)
    for i in range(3):
        # The adaptive solver chooses its steps for all trajectories of a call, within its tolerances.
        torch.testing.assert_close(together[:, i], model(y0[i : i + 1], t[:, i])[:, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("solver", ["heun", "rk4", "dopri5"])
@pytest.mark.parametrize("each", [False, True])
def test_a_field_of_time_is_given_tensors(solver: Any, each: bool) -> None:
    def field(t: Any, y: torch.Tensor) -> torch.Tensor:
        assert isinstance(t, torch.Tensor)
        return torch.cos(t) * torch.ones_like(y)

    t = torch.linspace(0, 2, 21, dtype=torch.float64)
    t = torch.stack([t, 2 * t], 1) if each else t
    y0 = torch.zeros(2, 1, dtype=torch.float64)
    states = lrcnet.NeuralODE(field, solver=solver)(y0, t)[..., 0]
    truth = torch.sin(t if each else t.unsqueeze(-1).expand(-1, 2))
    torch.testing.assert_close(states, truth, rtol=0, atol=SQUARE_STEP if solver == "heun" else 1e-4)


@pytest.mark.parametrize("each", [False, True])
def test_substeps_are_steps_in_between(each: bool) -> None:
    field = lrcnet.MLPField(2).double()
    y0, t = torch.randn(3, 2, dtype=torch.float64), torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
    fine = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0], dtype=torch.float64)
    t, fine = (one.unsqueeze(-1).expand(-1, 3) if each else one for one in (t, fine))
    expected = lrcnet.NeuralODE(field, solver="euler")(y0, fine)[::2]
    torch.testing.assert_close(lrcnet.NeuralODE(field, solver="euler", substeps=2)(y0, t), expected)


@pytest.mark.parametrize("solver", ["rk4", "dopri5"])
@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([0.0, 1.0, 1.0], r"t must not repeat a time, but t\[2\] equals t\[1\] = 1; drop one of the readings"),
        ([0.0, 2.0, 1.0], r"turns at t\[1\]; sort the readings by time"),
        ([0.0, float("nan"), 1.0], r"t must be finite, but t\[1\] is nan"),
        ([[0.0, 0.0], [1.0, 0.0]], r"t\[1, 1\] equals t\[0, 1\] = 0"),
        ([[0.0], [1.0]], "one column per trajectory"),
        ([], "at least one time"),
    ],
)
def test_bad_time_axes_are_named_as_what_they_are(solver: Any, t: Any, message: str) -> None:
    model = lrcnet.NeuralODE(lrcnet.MLPField(2), solver=solver)
    with pytest.raises(ValueError, match=message):
        model(torch.zeros(2, 2), torch.tensor(t))
    with pytest.raises(ValueError, match=r"t must be floating point, but is torch\.int64"):
        model(torch.zeros(2, 2), torch.arange(3))


def test_an_adaptive_failure_names_a_remedy_that_a_field_has() -> None:
    with pytest.raises(lrcnet.DivergenceError, match="'rk4' with substeps"):
        lrcnet.NeuralODE(lambda t, y: y**2)(torch.ones(1, 1), torch.tensor([0.0, 2.0]))


def test_a_field_plugs_into_torchdiffeq() -> None:
    from torchdiffeq import odeint

    field = lrcnet.LRCField(2).double()
    y0, t = torch.randn(3, 2, dtype=torch.float64), torch.linspace(0, 1, 5, dtype=torch.float64)
    ours = lrcnet.NeuralODE(field)(y0, t)
    torch.testing.assert_close(odeint(field, y0, t, rtol=1e-7, atol=1e-9), ours)


@pytest.mark.slow
# torchode passes strided times to torch.searchsorted, which only costs it a copy.
@pytest.mark.filterwarnings("ignore:torch.searchsorted:UserWarning")
def test_a_field_plugs_into_torchode() -> None:
    import torchode

    field = lrcnet.LRCField(2).double()
    y0, t = torch.randn(3, 2, dtype=torch.float64), torch.rand(5, 3, dtype=torch.float64).cumsum(0)
    term = torchode.ODETerm(field)
    stepper = torchode.Dopri5(term=term)
    control = torchode.IntegralController(atol=1e-9, rtol=1e-7, term=term)
    solution = torchode.AutoDiffAdjoint(stepper, control).solve(torchode.InitialValueProblem(y0=y0, t_eval=t.T))
    torch.testing.assert_close(solution.ys.transpose(0, 1), lrcnet.NeuralODE(field)(y0, t), rtol=1e-5, atol=1e-6)
