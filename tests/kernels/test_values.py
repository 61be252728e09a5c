"""The fused kernel against the equation in float64: values and every gradient, in both precisions."""

import copy
import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

import lrcnet
from tests.kernels.conftest import INSTRUCTION_SETS, instruction_set, label, scan, values_and_gradients
from tests.kernels.transcription import MODELS, batch_of, network, states

# Agreement in float64, relative to the largest entry: sums over some hundred terms in another order.
DOUBLE = 1e-12
# Flash-attention's law: the kernel's error against float64 truth, over that of the plain float32 transcription. Both
# are root mean squares over several networks, since a single one may be right by luck.
SINGLE = {"states": 2.0, "gradient": 3.0}
# Below this relative error there is nothing to compare: half a unit in the last place.
ROUNDING = 6e-8
# Where the question is which number comes out and not how exactly: far above rounding, far below any mistake.
ROUGH = {torch.float32: 2e-4, torch.float64: 1e-10}

NAMES = ["-".join(map(str, model.values())) for model in MODELS]
SIZES = [(5, 3, 3, 7), (4, 5, 1, 17), (3, 1, 64, 1), (2, 70, 3, 64), (2, 3, 64, 129), (140, 2, 2, 5), (6, 33, 0, 8)]
# Every switch, solver and number of unfoldings at least once.
SOME_MODELS: list[dict[str, Any]] = [
    {"saturated": True, "elastance": "symmetric", "solver": "euler", "unfolds": 1},
    {"saturated": True, "elastance": "asymmetric", "solver": "hybrid", "unfolds": 3},
    {"saturated": True, "elastance": "none", "solver": "exponential", "unfolds": 1},
    {"saturated": False, "elastance": "none", "solver": "hybrid", "unfolds": 3},
    {"saturated": False, "elastance": "symmetric", "solver": "exponential", "unfolds": 3},
]
SOME_NAMES = [NAMES[MODELS.index(model)] for model in SOME_MODELS]

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
    fused = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
    for name, value in truth.items():
        assert relative_error(fused[name], value) < DOUBLE, name


def stable(tensors: dict[str, Tensor | None], model: dict[str, Any]) -> dict[str, Tensor | None]:
    """The same, but with shorter steps where an explicit one of the unsaturated network would diverge."""
    dt = tensors["dt"]
    assert dt is not None
    return {**tensors, "dt": 0.1 * dt} if not model["saturated"] and model["solver"] == "euler" else tensors


Tensors = dict[str, Tensor | None]
Run = Callable[[Tensors, torch.dtype, dict[str, Any]], dict[str, Tensor]]


def run_with(instructions: str) -> Run:
    """Return the run of the kernel with an instruction set of this machine: states and gradients by name."""

    def run(tensors: Tensors, dtype: torch.dtype, model: dict[str, Any]) -> dict[str, Tensor]:
        with instruction_set(instructions):
            return values_and_gradients(scan, tensors, dtype, **model, **FUSED)

    return run


def check_error_law(cases: Iterable[tuple[Tensors, dict[str, Any]]], runs: dict[str, Run] | None = None) -> None:
    """Assert that no run is less exact in single precision than SINGLE allows, over all cases together.

    Args:
        runs: name -> states and gradients; each instruction set of this machine if None.
    """
    runs = {name: run_with(name) for name in INSTRUCTION_SETS} if runs is None else runs
    # Summed over the networks before any quotient: a gradient that nearly cancels in one of them is wrong in its last
    # digits in every implementation, and must not outweigh all the others.
    sums: dict[tuple[str, str], list[float]] = {}
    for tensors, model in cases:
        tensors = {name: None if value is None else value.float().double() for name, value in tensors.items()}
        truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
        plain = values_and_gradients(states, tensors, torch.float32, **model, **PLAIN)
        for instructions, run in runs.items():
            fused = run(tensors, torch.float32, model)
            for name, value in truth.items():
                total = sums.setdefault((instructions, name), [0.0, 0.0, 0.0])
                for i, part in enumerate((fused[name] - value, plain[name] - value, value)):
                    total[i] += float(part.square().sum())
    wrong = {}
    for (instructions, name), squares in sums.items():
        fused_error, plain_error = (math.sqrt(square / (squares[2] or 1.0)) for square in squares[:2])
        allowed = SINGLE["states" if name == "states" else "gradient"]
        if not fused_error <= allowed * plain_error + ROUNDING:
            wrong[instructions, name] = (fused_error, plain_error)
    assert not wrong


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_single_precision_is_about_as_exact_as_the_plain_loop(model: dict[str, Any]) -> None:
    check_error_law((stable(problem(30, 4, 3, 17, model["elastance"], seed), model), model) for seed in range(8))


@pytest.mark.parametrize("model", [SOME_MODELS[i] for i in (0, 1, 3)], ids=label)
def test_single_precision_stays_as_exact_over_a_long_sequence(model: dict[str, Any]) -> None:
    # One unfolding: three would make the plain loop three times as slow and show nothing else.
    model = {**model, "unfolds": 1}
    check_error_law((problem(200, 4, 8, 64, model["elastance"], seed), model) for seed in range(4))


@pytest.mark.parametrize("sizes", [sizes for sizes in SIZES if sizes[0] < 100], ids=str)
def test_single_precision_is_as_exact_at_odd_sizes(sizes: tuple[int, int, int, int]) -> None:
    # A network of one unit has one k_eps: it takes more of them until their error is not a matter of luck.
    seeds = range(max(2, 16 // sizes[3]))
    check_error_law((problem(*sizes, model["elastance"], seed), model) for seed in seeds for model in SOME_MODELS)


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
    fused = values_and_gradients(scan, tensors, torch.float64, **model, batch_first=batch_first, negative_dt="error")
    truth = values_and_gradients(states, tensors, torch.float64, **model, batch_first=batch_first)
    for name, value in truth.items():
        assert fused[name].shape == value.shape, name
        assert relative_error(fused[name], value) < 1e-10, name
    single = values_and_gradients(scan, tensors, torch.float32, **model, batch_first=batch_first, negative_dt="error")
    plain = values_and_gradients(states, tensors, torch.float32, **model, batch_first=batch_first)
    for name, value in truth.items():
        # One network and its largest error say little of exactness, which the error law is for: ten times is luck.
        allowed = 10 * relative_error(plain[name], value) + ROUGH[torch.float32]
        assert relative_error(single[name], value) < allowed, name


@pytest.mark.parametrize("layout", ["transposed", "strided", "expanded"])
def test_strides_of_the_input_do_not_matter(layout: str) -> None:
    lay = {
        "transposed": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
        "strided": lambda t: torch.stack([t, -t], -1).flatten(-2)[..., ::2],
        "expanded": lambda t: t[:1].expand_as(t),
    }[layout]
    model = {**MODELS[0], "elastance": "symmetric"}
    tensors = problem(6, 4, 3, 9, "symmetric")
    tensors |= {name: lay(tensors[name]) for name in ("x", "h0", "dt")}
    assert not any(tensors[name].is_contiguous() for name in ("x", "h0", "dt"))  # type: ignore[union-attr]
    found = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED)
    tensors = {name: None if value is None else value.contiguous() for name, value in tensors.items()}
    plain = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
    for name, value in truth.items():
        assert torch.equal(found[name], plain[name]), name
        assert relative_error(found[name], value) < DOUBLE, name


@pytest.mark.parametrize("scale", [1e-4, 30.0, 1e4])
def test_tiny_and_huge_weights_saturate_as_the_equation_does(scale: float) -> None:
    model = SOME_MODELS[0]
    # Many networks: of huge synapses only the few that happen to be near their threshold have a gradient, so that a
    # single network can have most of the summed error, the kernel's or the plain loop's.
    count = 512 if scale > 1000 else 32
    networks = [problem(8, 3, 3, 9, "symmetric", seed, scale=scale) for seed in range(count)]
    for tensors in networks[:8]:
        fused = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED)
        truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
        assert relative_error(fused["states"], truth["states"]) < DOUBLE
        for name, value in truth.items():
            # What a y + b loses is as large as a, and the slope of a sigmoid feels it.
            assert relative_error(fused[name], value) < DOUBLE * max(1.0, scale), name
    check_error_law((tensors, model) for tensors in networks)


@pytest.mark.parametrize("solver", ["euler", "hybrid", "exponential"])
def test_no_time_passing_leaves_the_state_where_it_was(solver: str) -> None:
    tensors = problem(4, 3, 2, 7, "symmetric")
    tensors["dt"] = torch.zeros_like(tensors["dt"])  # type: ignore[arg-type]
    model = {"saturated": True, "elastance": "symmetric", "solver": solver, "unfolds": 2}
    found = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN)
    assert torch.equal(found["states"], tensors["h0"].expand_as(found["states"]))  # type: ignore[union-attr]
    assert truth["dt"].all()
    for name, value in truth.items():
        assert relative_error(found[name], value) < DOUBLE, name
    rest = {name: value for name, value in tensors.items() if name not in ("x", "h0", "dt")}
    number = scan(tensors["x"], tensors["h0"], 0.0, **rest, **model, **FUSED)  # type: ignore[arg-type]
    assert torch.equal(number, found["states"])


def check_places(
    tensors: dict[str, Tensor | None], model: dict[str, Any], dtype: torch.dtype, *, diverges: bool, infinite: bool
) -> dict[str, Tensor]:
    """Assert that what is not finite, values and gradients, is so just where the equation has it; returns the latter.

    Beside an infinite number a gradient may be infinite where the plain loop has NaN: there a sigmoid has reached 0,
    and its slope of 0 times infinity is NaN; the kernel's sigmoid stops at exp(-kLimit) > 0.
    """
    truth = values_and_gradients(states, tensors, dtype, **model, **PLAIN)
    with pytest.warns(lrcnet.DivergenceWarning) if diverges else nullcontext():
        fused = values_and_gradients(scan, tensors, dtype, **model, **FUSED)
    for name, value in truth.items():
        finite = value.isfinite()
        assert torch.equal(fused[name].isfinite(), finite), name
        assert infinite or torch.equal(fused[name].isnan(), value.isnan()), name
        assert relative_error(fused[name].where(finite, 0), value.where(finite, 0)) < ROUGH[dtype], name
    return truth


PLACES = [
    pytest.param(model, place, id=f"{name}-{place}")
    for model, name in zip(SOME_MODELS, SOME_NAMES, strict=True)
    for place, tensor in problem(1, 1, 1, 1, model["elastance"]).items()
    if tensor is not None and place != "dt"  # A NaN there is refused.
]


@pytest.mark.parametrize(("model", "place"), PLACES)
def test_nan_comes_out_where_the_equation_has_it(model: dict[str, Any], place: str) -> None:
    for dtype in (torch.float32, torch.float64):
        # After one step NaN is in one unit or sample only, after several it has spread.
        for steps in (1, 3):
            tensors = problem(steps, 5, 3, 9, model["elastance"])
            tensor = tensors[place]
            assert tensor is not None
            given = {"x": (steps // 2, 3, 1), "h0": (3, 1)}
            tensor[given.get(place, (4, 2)[-tensor.dim() :])] = torch.nan
            truth = check_places(tensors, model, dtype, diverges=place not in given, infinite=False)
            assert truth["states"].isnan().any()


@pytest.mark.parametrize("model", SOME_MODELS, ids=SOME_NAMES)
@pytest.mark.parametrize("m", [8, 9])
def test_an_infinite_input_saturates_as_the_equation_does(m: int, model: dict[str, Any]) -> None:
    for dtype in (torch.float32, torch.float64):
        for value in (torch.inf, -torch.inf):
            tensors = problem(3, 5, 3, m, model["elastance"])
            tensors["x"][1, 3, 1] = value  # type: ignore[index]
            truth = check_places(tensors, model, dtype, diverges=False, infinite=True)
            assert truth["states"].isfinite().all()
            assert truth["x"][1, 3, 1] == 0
            assert truth["a"][m + 1].isnan().all()


@pytest.mark.parametrize("m", [4, 8, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["a", "b"])
def test_nan_beside_a_huge_weight_leaves_the_other_units_right(name: str, m: int, dtype: torch.dtype) -> None:
    # NaN compares with nothing: a maximum over the row that forgets it forgets the huge weight before it too.
    for instructions in INSTRUCTION_SETS:
        for huge in (1e3, -1e3):
            tensors = problem(1, 1, 1, m, "none", maps=False)
            row = torch.full((m,), 0.01, dtype=torch.float64)
            row[m // 4], row[m // 4 + 1] = huge, torch.nan
            tensors[name][m] = row  # type: ignore[index]
            tensors["x"].fill_(1.0)  # type: ignore[union-attr]
            with instruction_set(instructions):
                truth = check_places(tensors, SOME_MODELS[2], dtype, diverges=True, infinite=False)
            assert truth["states"].isnan().sum() == 1


@pytest.mark.filterwarnings("ignore::lrcnet.DivergenceWarning")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (lrcnet.LRCU, {}),
        (lrcnet.LRC, {"elastance": "asymmetric", "solver": "hybrid", "unfolds": 3}),
        (lrcnet.LTC, {"solver": "exponential"}),
    ],
    ids=label,
)
def test_nan_comes_out_of_a_step_where_the_plain_loop_has_it(kind: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layers = [kind(3, 9, backend=backend, **options) for backend in ("fused", "reference")]
    healthy = {"x": torch.randn(4, 3), "state": torch.randn(1, 4, 9), **copy.deepcopy(layers[0].state_dict())}
    for place in (*healthy, "an infinite x"):
        given = {name: value.clone() for name, value in healthy.items()}
        tensor = given["x" if place == "an infinite x" else place]
        tensor[(0, 2, 1)[-tensor.dim() :]] = torch.inf if place == "an infinite x" else torch.nan
        x, state = given.pop("x"), given.pop("state")
        for layer in layers:
            layer.load_state_dict(given)
        with torch.no_grad():
            found, truth = (layer.step(x, state)[0] for layer in layers)
        assert bool(truth.isnan().any()) == (place != "an infinite x"), place
        assert torch.equal(found.isnan(), truth.isnan()), place
        assert relative_error(found.nan_to_num(), truth.nan_to_num()) < ROUGH[torch.float32], place


@pytest.mark.parametrize(("steps", "batch"), [(0, 3), (4, 0), (0, 0)])
def test_nothing_to_do_is_done(steps: int, batch: int) -> None:
    tensors = problem(steps, batch, 2, 5, "symmetric")
    found = values_and_gradients(scan, tensors, torch.float64, **MODELS[-1], **FUSED)
    assert found["states"].shape == (steps, batch, 5)
    assert all(not value.any() for value in found.values())
