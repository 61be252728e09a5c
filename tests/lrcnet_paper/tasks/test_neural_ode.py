"""The six systems against SciPy's integrator, closed forms and the protocol's numbers."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from lrcnet_paper.tasks.neural_ode import ALTERNATIVES, SYSTEMS, System, find_system, trajectory

EVERY = [*SYSTEMS.values(), *ALTERNATIVES.values()]
by_name = pytest.mark.parametrize("system", EVERY, ids=lambda s: s.name)


@by_name
def test_trajectory_agrees_with_dop853(system: System):
    t, y = trajectory(system)
    truth = solve_ivp(
        lambda _, s: system.field(*s), (0, system.end), system.y0, "DOP853", t.numpy(), rtol=1e-12, atol=1e-13
    )
    assert t.dtype == y.dtype == torch.float64
    np.testing.assert_allclose(y.numpy(), truth.y.T, rtol=0, atol=1e-10)


@by_name
def test_derivative_is_the_slope_of_the_trajectory(system: System):
    t, y = trajectory(system, 4001)
    slope = (y[2:] - y[:-2]) / (t[2:] - t[:-2])[:, None]
    torch.testing.assert_close(system.derivative(y)[1:-1], slope, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "y0", "end"),
    [
        ("sinusoid", (1, 1), 10),
        ("spiral", (0.5, 0.01), 25),
        ("duffing", (-1, 1), 25),
        ("lotka-volterra-periodic", (1, 1), 10),
        ("lotka-volterra-asymptotic", (1, 1), 20),
        ("lotka-volterra-nonlinear", (2, 1), 20),
    ],
)
def test_grid_and_start_are_the_protocols(name, y0, end):
    t, y = trajectory(name)
    assert tuple(y[0].tolist()) == y0
    assert t.shape == (1000,)
    assert y.shape == (1000, 2)
    np.testing.assert_allclose(t.numpy(), np.linspace(0, end, 1000), rtol=1e-15)


def test_spiral_has_its_closed_form_and_the_mirror_turns_the_other_way():
    t, y = trajectory("spiral")
    z0 = complex(*SYSTEMS["spiral"].y0)
    for name, turn in (("spiral", 3), ("spiral-mirror", -3)):
        t, y = trajectory(name)
        z = z0 * torch.exp((-0.1 + turn * 1j) * t)
        torch.testing.assert_close(torch.view_as_complex(y), z, rtol=0, atol=1e-10)


def test_duffing_and_periodic_lotka_volterra_keep_their_invariants():
    _, y = trajectory("duffing")
    energy = y[:, 1] ** 2 / 2 - y[:, 0] ** 2 / 2 + y[:, 0] ** 4 / 4
    assert (energy - energy[0]).abs().max() < 1e-10
    _, y = trajectory("lotka-volterra-periodic")
    level = y[:, 0] - 3 * y[:, 0].log() + y[:, 1] - 1.5 * y[:, 1].log()
    assert (level - level[0]).abs().max() < 1e-10


def test_other_sign_of_the_nonlinear_system_ends_elsewhere():
    minus = trajectory("lotka-volterra-nonlinear")[1][-1]
    plus = trajectory("lotka-volterra-nonlinear-plus")[1][-1]
    # Fixed points: y = 1 + x, x (1 - x ∓ 0.33 (1 + x)) = 0.
    assert minus[0] == pytest.approx(0.67 / 1.33, abs=1e-6)
    assert plus[0] == pytest.approx(1.33 / 0.67, abs=1e-6)
    assert math.isclose(minus[1], 1 + minus[0], abs_tol=1e-6)


def test_changing_a_trajectory_does_not_change_the_next_one():
    trajectory("duffing")[1].zero_()
    assert trajectory("duffing")[1].abs().max() > 1


def test_errors_name_the_violated_condition():
    with pytest.raises(ValueError, match=r"must be one of \['sinusoid'.*got 'lorenz'"):
        find_system("lorenz")
    with pytest.raises(ValueError, match="at least 2; got 1"):
        trajectory("spiral", 1)
    with pytest.raises(ValueError, match=r"\(\.\.\., 2\); got \(3,\)"):
        SYSTEMS["spiral"].derivative(torch.zeros(3))
