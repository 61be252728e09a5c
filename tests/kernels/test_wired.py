"""The fused kernel with a wiring: values and gradients, and the missing synapses that it must not see."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor

import lrcnet
from lrcnet.circuit import STEP_LETTERS, SYNAPTIC_LETTERS
from lrcnet.wirings import AutoNCP, Random
from tests.kernels.conftest import (
    INSTRUCTION_SETS,
    check_repeats_and_threads,
    instruction_set,
    label,
    scan,
    step,
    values_and_gradients,
)
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
from tests.kernels.transcription import MODELS, states

# Time, batch, inputs, units: a list of all synapses, one of the inputs alone (few samples, many inputs), a mask of rows
# (one sample, or nearly all synapses), and vectors with all kinds of remainders.
SIZES = [(5, 3, 3, 7), (4, 5, 1, 17), (2, 70, 3, 64), (3, 33, 64, 33), (20, 1, 2, 5), (6, 33, 0, 8), (3, 2, 0, 1)]
LISTED_INPUTS = [(20, 1, 64, 17), (9, 2, 40, 33), (150, 1, 20, 9)]


def draw_mask(n: int, m: int, share: float = 0.25, seed: int = 0) -> Tensor:
    return torch.rand(n + m, m, generator=torch.Generator().manual_seed(seed)) < share


@pytest.mark.parametrize("model", MODELS, ids=label)
@pytest.mark.parametrize("share", [0.0, 0.25, 0.95])
def test_double_precision_equals_the_equation(model: dict[str, Any], share: float) -> None:
    for sizes in SIZES + LISTED_INPUTS:
        tensors, mask = problem(*sizes, str(model["elastance"])), draw_mask(*sizes[2:], share)
        # A state that grows over many steps would multiply the rounding.
        tensors = stable(tensors, model) if sizes in LISTED_INPUTS else tensors
        fused = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED, mask=mask)
        truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN, mask=mask)
        for name, value in truth.items():
            assert relative_error(fused[name], value) < DOUBLE, (name, sizes)


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
def test_single_precision_is_about_as_exact_as_the_plain_loop(model: dict[str, Any]) -> None:
    check_error_law(
        (stable(problem(30, batch, n, 17, model["elastance"], seed), model), {**model, "mask": draw_mask(n, 17, 0.3)})
        for batch, n in ((2, 3), (20, 3), (1, 64))
        for seed in range(4)
    )


@settings(max_examples=30, deadline=None)
@given(
    steps=some.integers(1, 20),
    batch=some.integers(1, 40),
    n=some.integers(0, 20),
    m=some.integers(1, 40),
    share=some.floats(0, 1),
    model=some.sampled_from(MODELS),
    seed=some.integers(0, 1000),
)
def test_any_wiring_equals_the_equation(
    steps: int, batch: int, n: int, m: int, share: float, model: dict[str, Any], seed: int
) -> None:
    tensors, mask = problem(steps, batch, n, m, model["elastance"], seed), draw_mask(n, m, share, seed)
    truth = values_and_gradients(states, tensors, torch.float64, **model, **PLAIN, mask=mask)
    for instructions in INSTRUCTION_SETS:
        with instruction_set(instructions):
            fused = values_and_gradients(scan, tensors, torch.float64, **model, **FUSED, mask=mask)
        for name, value in truth.items():
            assert relative_error(fused[name], value) < DOUBLE, (instructions, name)


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
@pytest.mark.parametrize("sizes", [(2, 1, 1, 3), (2, 18, 1, 3), (6, 1, 40, 3)])
def test_gradcheck_through_every_tensor(model: dict[str, Any], sizes: tuple[int, int, int, int]) -> None:
    (x, h0, dt), rest = arguments(*sizes, **model)
    mask = draw_mask(*sizes[2:], 0.4)
    names = [name for name, value in rest.items() if isinstance(value, Tensor)]
    leaves = [tensor.clone().requires_grad_() for tensor in (x, h0, dt, *(rest[name] for name in names))]

    def call(x: Tensor, h0: Tensor, dt: Tensor, *letters: Tensor) -> Tensor:
        return scan(x, h0, dt, **{**rest, **dict(zip(names, letters, strict=True))}, mask=mask)

    assert torch.autograd.gradcheck(call, leaves, fast_mode=True)


@pytest.mark.parametrize("sizes", [(3, 1, 3, 9), (3, 18, 3, 9), (9, 1, 40, 17)])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_values_of_missing_synapses_have_no_effect(value: float, sizes: tuple[int, int, int, int]) -> None:
    (x, h0, dt), rest = arguments(*sizes)
    mask = draw_mask(*sizes[2:])
    spoilt = {name: torch.where(mask, rest[name], value) for name in SYNAPTIC_LETTERS}
    tensors = {"x": x, "h0": h0, "dt": dt, **{name: rest[name] for name in STEP_LETTERS}}
    switches = {name: v for name, v in rest.items() if name not in tensors}
    clean = values_and_gradients(scan, tensors, torch.float64, **switches, mask=mask)
    other = values_and_gradients(scan, {**tensors, **spoilt}, torch.float64, **switches, mask=mask)
    for name, expected in clean.items():
        assert torch.equal(other[name], expected), name
    assert not any(clean[name][~mask].any() for name in SYNAPTIC_LETTERS)
    del switches["batch_first"]
    letters = {name: rest[name] for name in STEP_LETTERS}
    one = step(x[0], h0, dt[0], **{**letters, **spoilt}, **switches, mask=mask)
    torch.testing.assert_close(one, clean["states"][0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=label)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_step_equals_a_scan_of_one_step(model: dict[str, Any], dtype: torch.dtype) -> None:
    for batch, n, m in ((1, 64, 64), (3, 2, 7), (2, 0, 17)):
        (x, h0, dt), rest = arguments(1, batch, n, m, **model)
        rest = {name: v.to(dtype) if isinstance(v, Tensor) else v for name, v in rest.items()}
        rest["mask"] = draw_mask(n, m)
        whole = scan(x.to(dtype), h0.to(dtype), dt.to(dtype), **rest)[0]
        del rest["batch_first"]
        one = step(x[0].to(dtype), h0.to(dtype), dt[0].to(dtype), **rest)
        assert torch.allclose(one, whole, rtol=1e-5 if dtype is torch.float32 else 1e-12, atol=1e-6)


def test_a_mask_of_all_synapses_is_no_mask() -> None:
    (x, h0, dt), rest = arguments(4, 5, 3, 9)
    assert torch.equal(scan(x, h0, dt, **rest, mask=torch.ones(12, 9, dtype=torch.bool)), scan(x, h0, dt, **rest))


def test_opcheck() -> None:
    (x, h0, dt), rest = arguments(3, 18, 2, 5, unfolds=2)
    mask = draw_mask(2, 5)
    tensors = [t.requires_grad_() for t in (x, h0, dt, *(rest[name] for name in STEP_LETTERS))]
    switches = (1.0, True, "symmetric", "hybrid", 2, False, True, True)
    torch.library.opcheck(torch.ops.lrcnet.scan.default, (*tensors, *switches, True, mask))
    plain = [t.detach() for t in tensors]
    out, saved = torch.ops.lrcnet.scan(*plain, *switches, True, mask)
    torch.library.opcheck(
        torch.ops.lrcnet.scan_backward.default,
        (torch.ones_like(out), *plain, *switches, out, saved, True, True, mask),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_compiles_and_exports_as_one_operator() -> None:
    torch.manual_seed(0)
    layer = lrcnet.LRCU(3, wiring=AutoNCP(12, 2), backend="fused")
    x = torch.randn(6, 20, 3)
    compiled = torch.compile(lambda x: layer(x)[0], fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), layer(x)[0])
    compiled(x).sum().backward()
    gradient = layer.cells[0].a.grad.clone()
    layer.zero_grad()
    layer(x)[0].sum().backward()
    assert torch.allclose(gradient, layer.cells[0].a.grad)
    program = torch.export.export(layer.eval(), (x,))
    assert sum("lrcnet.scan" in str(node.target) for node in program.graph.nodes) == 1
    assert torch.equal(program.module()(x)[0], layer(x)[0])


def test_runs_are_identical_and_threads_agree() -> None:
    torch.manual_seed(0)
    layer = lrcnet.LRCU(3, wiring=Random(64, sparsity_level=0.75), dtype=torch.float64, backend="fused")
    x = torch.randn(20, 37, 3, dtype=torch.float64)

    def gradient() -> Tensor:
        return torch.autograd.grad(layer(x)[0].sum(), layer.cells[0].a)[0]

    check_repeats_and_threads(gradient)


@pytest.mark.parametrize("wrong", ["shape", "dtype", "device"])
def test_a_wrong_mask_is_refused(wrong: str) -> None:
    (x, h0, dt), rest = arguments(4, 5, 3, 9)
    mask = draw_mask(3, 9)
    given, message = {
        "shape": (mask[:-1], r"mask must have shape \(12, 9\), but has \(11, 9\)"),
        "dtype": (mask.double(), "mask must be torch.bool, True where a synapse exists, but is torch.float64"),
        "device": (mask.to("meta"), "mask must be .* on the CPU"),
    }[wrong]
    switches = {name: value for name, value in rest.items() if name != "batch_first"}
    with pytest.raises(ValueError, match=message):
        step(x[0], h0, dt[0], **switches, mask=given)
    with pytest.raises(ValueError, match=message):
        scan(x, h0, dt, **rest, mask=given)


def test_a_mask_with_gaps_is_copied() -> None:
    (x, h0, dt), rest = arguments(4, 5, 3, 9)
    mask = draw_mask(3, 9)
    given = mask.t().contiguous().t()
    switches = {name: value for name, value in rest.items() if name != "batch_first"}
    assert torch.equal(scan(x, h0, dt, **rest, mask=given), scan(x, h0, dt, **rest, mask=mask))
    assert torch.equal(step(x[0], h0, dt[0], **switches, mask=given), step(x[0], h0, dt[0], **switches, mask=mask))
