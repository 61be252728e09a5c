"""States of the saturated models stay within |h_i| <= 2 |e_l_i|, under the conditions stated for each solver."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lrcnet

MODELS = [(lrcnet.STC, {}), (lrcnet.LRC, {"elastance": "symmetric"}), (lrcnet.LRC, {"elastance": "asymmetric"})]


def run_inside_the_box(
    model: int, solver: str, unfolds: int, largest_dt: float, scale: float, seed: int
) -> torch.Tensor:
    """Return |h| / (2 |e_l|) along a run that starts inside the box."""
    torch.manual_seed(seed)
    layer_type, options = MODELS[model]
    layer = layer_type(2, 4, solver=solver, unfolds=unfolds, dtype=torch.float64, backend="reference", **options)
    circuit = layer.circuit()
    for name in ("a", "g", "k", "e_l", "o"):
        if circuit[name] is not None:
            circuit[name] *= scale
    layer.load_circuit(circuit)
    bound = 2 * circuit["e_l"].abs()
    start = bound * (2 * torch.rand(1, 3, 4, dtype=torch.float64) - 1)
    x = torch.randn(12, 3, 2, dtype=torch.float64) * scale
    with torch.no_grad():
        output, _ = layer(x, start, dt=torch.rand(12, 3, dtype=torch.float64) * largest_dt)
    return output.abs() / bound


@pytest.mark.filterwarnings("ignore::lrcnet.errors.InputRangeWarning")
@settings(max_examples=60)
@given(
    st.integers(0, 2), st.sampled_from(["hybrid", "exponential"]), st.integers(1, 3),
    st.floats(0, 1e6), st.floats(0.01, 100), st.integers(0, 10**6),
)  # fmt: skip
def test_semi_linear_steps_keep_the_box_for_every_dt(
    model: int, solver: str, unfolds: int, largest_dt: float, scale: float, seed: int
) -> None:
    assert run_inside_the_box(model, solver, unfolds, largest_dt, scale, seed).max() <= 1 + 1e-12


@pytest.mark.filterwarnings("ignore::lrcnet.errors.InputRangeWarning")
@settings(max_examples=60)
@given(st.integers(0, 2), st.integers(1, 3), st.floats(0, 1), st.floats(0.01, 100), st.integers(0, 10**6))
def test_explicit_euler_keeps_the_box_up_to_steps_of_one(
    model: int, unfolds: int, step: float, scale: float, seed: int
) -> None:
    assert run_inside_the_box(model, "euler", unfolds, step * unfolds, scale, seed).max() <= 1 + 1e-12


@pytest.mark.filterwarnings("ignore::lrcnet.errors.StabilityWarning")  # the step is too large on purpose
def test_a_larger_explicit_step_can_leave_the_box() -> None:
    with pytest.warns(lrcnet.StabilityWarning):
        ratios = run_inside_the_box(0, "euler", 1, 30.0, 1.0, 0)
    assert ratios.max() > 1


@pytest.mark.parametrize("name", ["stc", "lrc", "lrcu"])
def test_saturated_states_stay_finite_for_huge_inputs(name: str) -> None:
    layer = lrcnet.LAYERS[name](2, 4)
    with torch.no_grad():
        for size in (1e-30, 1e4, 1e30):
            output, _ = layer(torch.randn(20, 3, 2) * size)
            assert output.isfinite().all()
