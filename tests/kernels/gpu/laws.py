"""The laws of a backend on Triton's kernels, interpreted: shapes of every size class, as small as they can be.

Run by test_laws.py in a process with TRITON_INTERPRET=1, beside those tests of tests/kernels that run as they are.
"""

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from torch import Tensor

import lrcnet
from lrcnet.benchmarks import gpu
from lrcnet.circuit import Switches
from lrcnet.kernels.triton import sizes
from tests.kernels.conftest import CPU, label, scan, step, values_and_gradients
from tests.kernels.gpu.interpreted import INTERPRETED
from tests.kernels.test_operator import arguments
from tests.kernels.test_values import (
    DOUBLE,
    FUSED,
    PLAIN,
    SOME_MODELS,
    check_error_law,
    problem,
    relative_error,
    stable,
)
from tests.kernels.test_wired import draw_mask
from tests.kernels.transcription import MODELS, states

# T, B, n, m: weights on chip and streamed; batches, inputs and units that fill no tile; no inputs; more than one chunk.
SIZES = [(3, 1, 5, 17), (2, 3, 0, 33), (2, 3, 6, 70), (1, 2, 2, 130), (40, 2, 3, 5)]


def check_double(tensors: dict[str, Tensor | None], model: dict[str, Any], **more: Any) -> None:
    fused = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED, **more)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN, **more)
    for name, value in truth.items():
        assert fused[name].shape == value.shape, name
        assert relative_error(fused[name], value) < DOUBLE, name


def test_the_kernels_are_interpreted() -> None:
    assert INTERPRETED
    assert CPU.name == "triton"
    assert type(lrcnet.kernels.find(torch.zeros(1, 1, 1), Switches(), 5)) is type(CPU)


@pytest.mark.parametrize("model", MODELS, ids=label)
def test_double_precision_equals_the_equation(model: dict[str, Any]) -> None:
    check_double(problem(3, 5, 3, 7, model["elastance"]), model)


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("model", [SOME_MODELS[0], SOME_MODELS[1], SOME_MODELS[3]], ids=label)
def test_every_size_class_equals_the_equation(shape: tuple[int, int, int, int], model: dict[str, Any]) -> None:
    # Several unfoldings of a large network would take long, and have been seen above.
    model = {**model, "unfolds": 1} if shape[3] > 64 else model
    check_double(problem(*shape, model["elastance"]), model)


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
@pytest.mark.parametrize("shape", [(3, 5, 3, 9), (2, 3, 2, 66)], ids=str)
def test_a_wiring_equals_the_equation(shape: tuple[int, int, int, int], model: dict[str, Any]) -> None:
    model = {**model, "unfolds": 1} if shape[3] > 64 else model
    check_double(problem(*shape, model["elastance"]), model, mask=draw_mask(*shape[2:]))


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
def test_single_precision_is_about_as_exact_as_the_plain_loop(model: dict[str, Any]) -> None:
    check_error_law((stable(problem(12, 8, 3, 15, model["elastance"], seed), model), model) for seed in range(4))


@pytest.mark.parametrize("shape", [(4, 2, 3, 64), (3, 4, 3, 129)], ids=str)
def test_single_precision_is_as_exact_in_large_networks(shape: tuple[int, int, int, int]) -> None:
    check_error_law((problem(*shape, model["elastance"]), {**model, "unfolds": 1}) for model in SOME_MODELS[:4])


@pytest.mark.parametrize("scale", [1e-4, 30.0])
def test_tiny_and_huge_weights_are_as_exact(scale: float) -> None:
    check_error_law((problem(4, 4, 3, 9, "symmetric", seed, scale=scale), SOME_MODELS[0]) for seed in range(12))


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
def test_finite_differences_agree_for_every_tensor(model: dict[str, Any]) -> None:
    (x, h0, dt), rest = arguments(2, 2, 1, 3, **model)
    names = [name for name, value in rest.items() if isinstance(value, Tensor)]
    leaves = [tensor.clone().requires_grad_() for tensor in (x, h0, dt, *(rest[name] for name in names))]

    def call(x: Tensor, h0: Tensor, dt: Tensor, *letters: Tensor) -> Tensor:
        return scan(x, h0, dt, **{**rest, **dict(zip(names, letters, strict=True))})

    assert torch.autograd.gradcheck(call, leaves, fast_mode=True)


# Its own deadline would be that of a GPU, and the interpreter is slow by design.
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    steps=some.integers(1, 3),
    batch=some.integers(1, 6),
    n=some.integers(0, 9),
    m=some.integers(1, 34),
    model=some.sampled_from(MODELS),
    batch_first=some.booleans(),
    maps=some.booleans(),
    bias=some.booleans(),
)
def test_any_shape_equals_the_equation(
    steps: int, batch: int, n: int, m: int, model: dict[str, Any], batch_first: bool, maps: bool, bias: bool
) -> None:
    tensors = problem(steps, batch, n, m, model["elastance"], batch_first=batch_first, maps=maps, bias=bias)
    fused = values_and_gradients(scan, tensors, torch.float64, **model, batch_first=batch_first, negative_dt="error")
    truth = values_and_gradients(states, tensors, torch.float64, **model, batch_first=batch_first)
    for name, value in truth.items():
        assert relative_error(fused[name], value) < 1e-10, name


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
@pytest.mark.parametrize("dt", [0.3, 0.0, torch.tensor(0.7, dtype=torch.float64)], ids=str)
def test_one_gap_for_all_steps_equals_the_equation(dt: float | Tensor, model: dict[str, Any]) -> None:
    (x, h0, _), rest = arguments(3, 2, 2, 5, **model)
    expected = states(x, h0, dt, **rest)
    assert torch.allclose(scan(x, h0, dt, **rest), expected, rtol=DOUBLE, atol=DOUBLE)
    zero = states(x, None, dt, **rest)
    assert torch.allclose(scan(x, None, dt, **rest), zero, rtol=DOUBLE, atol=DOUBLE)


def test_an_infinite_gap_spoils_no_other_unit() -> None:
    (x, h0, dt), rest = arguments(2, 2, 2, 5, solver="hybrid")
    dt[0, 1] = torch.inf
    tensors = {"x": x, "h0": h0, "dt": dt, **{name: v for name, v in rest.items() if isinstance(v, Tensor)}}
    model = {name: value for name, value in rest.items() if name not in tensors}
    plain = values_and_gradients(states, tensors, torch.float64, **model)
    fused = values_and_gradients(scan, tensors, torch.float64, **model)
    for name, value in plain.items():
        assert torch.equal(fused[name].isfinite(), value.isfinite()), name


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_step_equals_a_scan_of_one_step(model: dict[str, Any], dtype: torch.dtype) -> None:
    (x, h0, dt), rest = arguments(1, 3, 2, 17, **model)
    rest = {name: v.to(dtype) if isinstance(v, Tensor) else v for name, v in rest.items()}
    whole = scan(x.to(dtype), h0.to(dtype), dt.to(dtype), **rest)[0]
    del rest["batch_first"]
    assert torch.equal(step(x[0].to(dtype), h0.to(dtype), dt[0].to(dtype), **rest), whole)


@pytest.mark.parametrize("m", [5, 66])
def test_runs_are_identical_to_the_bit(m: int) -> None:
    # More points than one chunk has.
    tensors = problem(9, 3, 2, m, "symmetric")
    first, second = (values_and_gradients(scan, tensors, torch.float32, **MODELS[-3], **FUSED) for _ in range(2))
    for name, value in first.items():
        assert torch.equal(second[name], value), name


def test_more_units_than_a_kernel_has_are_refused_with_the_number() -> None:
    most = sizes.MOST_UNITS
    assert not CPU.reasons(torch.zeros(1, 1, 1), Switches(), most)
    (reason,) = CPU.reasons(torch.zeros(1, 1, 1), Switches(), most + 1)
    assert reason == f"it has at most {most} hidden units, but the network has {most + 1}"
    with pytest.raises(RuntimeError, match=f"at most {most} hidden units"):
        lrcnet.LRCU(1, most + 1, backend="fused")(torch.zeros(1, 1, 1))
    (x, h0, dt), rest = arguments(1, 1, 1, most + 1)
    with pytest.raises(ValueError, match=f"at most {most} units, but the network has {most + 1}"):
        scan(x, h0, dt, **rest)


def test_the_benchmark_runs_and_its_errors_keep_the_law() -> None:
    times = gpu.measure_times("cpu", [("tiny", 2, 3, 2, 5, 4)])
    assert [one.against for one in times] == ["LSTM 4", "plain loop"]
    errors = gpu.measure_errors("cpu", 5, 4)
    assert all(one.value < 1e-5 for one in errors)
    assert all(one.holds for one in errors)
