"""The fused kernel against the equation in float64: values and every gradient, in both precisions."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

from lrcnet import kernels
from tests.kernels.conftest import values_and_gradients
from tests.kernels.transcription import MODELS, batch_of, network, states

# Agreement in float64, relative to the largest entry: sums over some hundred terms in another order.
DOUBLE = 1e-12
# Flash-attention's law: the kernel's error against float64 truth, over that of the plain float32 transcription. Both
# are root mean squares over several networks, since a single one may be right by luck.
SINGLE = {"states": 2.0, "gradient": 3.0}
# Below this relative error there is nothing to compare: half a unit in the last place.
ROUNDING = 6e-8

NAMES = [f"{m['saturated']}-{m['elastance']}-{m['solver']}-{m['unfolds']}" for m in MODELS]
SIZES = [(5, 3, 3, 7), (4, 5, 1, 17), (3, 1, 64, 1), (2, 70, 3, 64), (2, 3, 64, 129), (140, 2, 2, 5), (6, 33, 0, 8)]


FUSED = {"batch_first": False, "negative_dt": "error"}
PLAIN = {"batch_first": False}


def problem(
    steps: int, batch: int, n: int, m: int, elastance: str, seed: int = 0, **options: object
) -> dict[str, Tensor | None]:
    batch_first = bool(options.pop("batch_first", False))
    x, h0, dt = batch_of(steps, batch, n, m, batch_first=batch_first, seed=seed + 1)
    return {"x": x, "h0": h0, "dt": dt, **network(n, m, elastance, seed=seed, **options)}  # type: ignore[arg-type]


def relative_error(found: Tensor, truth: Tensor) -> float:
    size = float(truth.abs().max()) if truth.numel() else 0.0
    return float((found - truth).abs().max()) / (size or 1.0) if truth.numel() else 0.0


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_double_precision_equals_the_equation(model: dict[str, object], sizes: tuple[int, int, int, int]) -> None:
    tensors = problem(*sizes, str(model["elastance"]))
    fused = values_and_gradients(kernels.scan, tensors, torch.float64, **model, **FUSED)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
    for name, value in truth.items():
        assert relative_error(fused[name], value) < DOUBLE, name


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_single_precision_is_about_as_exact_as_the_plain_loop(model: dict[str, object]) -> None:
    if not model["saturated"] and model["solver"] == "euler":
        pytest.skip("an explicit step of the unsaturated network diverges, and any rounding with it")
    # Summed over the networks before any quotient: a gradient that nearly cancels in one of them is wrong in its last
    # digits whoever computes it, and must not outweigh all the others.
    sums: dict[str, list[float]] = {}
    for seed in range(8):
        tensors = problem(30, 4, 3, 17, str(model["elastance"]), seed)
        tensors = {name: None if value is None else value.float().double() for name, value in tensors.items()}
        truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
        plain = values_and_gradients(states, tensors, torch.float32, **model, **PLAIN)
        fused = values_and_gradients(
            kernels.scan, tensors, torch.float32, **model, batch_first=False, negative_dt="error"
        )
        for name, value in truth.items():
            total = sums.setdefault(name, [0.0, 0.0, 0.0])
            for i, part in enumerate((fused[name] - value, plain[name] - value, value)):
                total[i] += float(part.square().sum())
    for name, (fused_error, plain_error, size) in sums.items():
        fused_error, plain_error = fused_error / (size or 1.0), plain_error / (size or 1.0)
        allowed = SINGLE["states" if name == "states" else "gradient"]
        assert math.sqrt(fused_error) <= allowed * math.sqrt(plain_error) + ROUNDING, name


@settings(max_examples=40, deadline=None)
@given(
    steps=some.integers(1, 9),
    batch=some.integers(1, 40),
    n=some.integers(0, 20),
    m=some.integers(1, 40),
    model=some.sampled_from(MODELS),
    batch_first=some.booleans(),
    maps=some.booleans(),
    bias=some.booleans(),
    seed=some.integers(0, 1000),
)
def test_any_shape_equals_the_equation(
    steps: int,
    batch: int,
    n: int,
    m: int,
    model: dict[str, object],
    batch_first: bool,
    maps: bool,
    bias: bool,
    seed: int,
) -> None:
    elastance = str(model["elastance"])
    tensors = problem(steps, batch, n, m, elastance, seed, batch_first=batch_first, maps=maps, bias=bias)
    fused = values_and_gradients(
        kernels.scan, tensors, torch.float64, **model, batch_first=batch_first, negative_dt="error"
    )
    truth = values_and_gradients(states, tensors, torch.float64, **model, batch_first=batch_first)
    for name, value in truth.items():
        assert fused[name].shape == value.shape, name
        assert relative_error(fused[name], value) < 1e-10, name


@pytest.mark.parametrize("layout", ["transposed", "strided channels", "expanded"])
def test_strides_of_the_input_do_not_matter(layout: str) -> None:
    tensors = problem(6, 4, 3, 9, "symmetric")
    x = tensors["x"]
    assert x is not None
    if layout == "transposed":
        x = x.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    elif layout == "strided channels":
        x = torch.stack([x, -x], -1).flatten(-2)[..., ::2]
    else:
        x = x[:1].expand(6, 4, 3)
    switches = {**MODELS[0], "elastance": "symmetric", "batch_first": False, "negative_dt": "error"}
    rest = {name: value for name, value in tensors.items() if name not in ("x", "h0", "dt")}
    assert not x.is_contiguous()
    plain = kernels.scan(x.contiguous(), tensors["h0"], 0.5, **rest, **switches)  # type: ignore[arg-type]
    assert torch.equal(kernels.scan(x, tensors["h0"], 0.5, **rest, **switches), plain)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [1e-4, 30.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_tiny_and_huge_weights_saturate_as_the_equation_does(scale: float, dtype: torch.dtype) -> None:
    tensors = problem(8, 3, 3, 9, "symmetric", scale=scale)
    tensors = {name: None if value is None else value.float().double() for name, value in tensors.items()}
    switches = {"saturated": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1, "batch_first": False}
    fused = values_and_gradients(kernels.scan, tensors, dtype, **switches, negative_dt="error")
    truth = values_and_gradients(states, tensors, torch.float64, **switches)
    assert relative_error(fused["states"], truth["states"]) < (1e-12 if dtype is torch.float64 else 2e-4)
    assert all(bool(value.isfinite().all()) for value in fused.values())


@pytest.mark.parametrize("solver", ["euler", "hybrid", "exponential"])
def test_no_time_passing_leaves_the_state_where_it_was(solver: str) -> None:
    tensors = problem(4, 3, 2, 7, "symmetric")
    rest = {name: value for name, value in tensors.items() if name not in ("x", "h0", "dt")}
    switches = {"saturated": True, "elastance": "symmetric", "solver": solver, "unfolds": 2, "batch_first": False}
    out = kernels.scan(tensors["x"], tensors["h0"], 0.0, **rest, **switches, negative_dt="error")  # type: ignore[arg-type]
    assert torch.equal(out, tensors["h0"].expand_as(out))  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("place", ["x", "h0", "dt", "weight"])
def test_nan_comes_out_where_the_equation_has_it(place: str, dtype: torch.dtype) -> None:
    tensors = problem(6, 5, 3, 9, "symmetric")
    if place == "weight":
        tensors["a"][2, 4] = torch.nan  # type: ignore[index]
    elif place == "h0":
        tensors["h0"][3, 1] = torch.nan  # type: ignore[index]
    else:
        tensors[place][2, 3] = torch.nan  # type: ignore[index]
    cast = {name: None if value is None else value.to(dtype) for name, value in tensors.items()}
    x, h0, dt = (cast.pop(name) for name in ("x", "h0", "dt"))
    switches = {"saturated": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1, "batch_first": False}
    truth = states(x, h0, dt, **cast, **switches)  # type: ignore[arg-type]
    context = pytest.warns(RuntimeWarning) if place == "weight" else torch.no_grad()
    with context:
        fused = kernels.scan(x, h0, dt, **cast, **switches, negative_dt="error")  # type: ignore[arg-type]
    assert truth.isnan().any()
    assert torch.equal(fused.isnan(), truth.isnan())
    assert torch.allclose(fused.nan_to_num(), truth.nan_to_num(), atol=1e-5)


@pytest.mark.parametrize(("steps", "batch"), [(0, 3), (4, 0), (0, 0)])
def test_nothing_to_do_is_done(steps: int, batch: int) -> None:
    tensors = problem(steps, batch, 2, 5, "symmetric")
    found = values_and_gradients(kernels.scan, tensors, torch.float64, **MODELS[-1], **FUSED)
    assert found["states"].shape == (steps, batch, 5)
    assert all(not value.any() for value in found.values())
