"""The fused loops of the diagonal LRC against the plain loop: values, gradients, precision, layouts, tracers."""

import itertools

import pytest
import torch

import lrcnet
from lrcnet.cells.diagonal import DiagonalLRCCell
from lrcnet.kernels import unavailable
from tests.tolerances import REARRANGED

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=f"no kernels: {unavailable()}")

FORMS = list(
    itertools.product(
        ("symmetric", "asymmetric"), ("mixed", "per-channel"), (("euler", 1), ("hybrid", 2), ("exponential", 3))
    )
)


def run(cell: DiagonalLRCCell, backend: str, tensors: list[torch.Tensor], batch_major: bool) -> list[torch.Tensor]:
    """Return the states and the gradients of everything, for a fixed random weighting of the states."""
    cell.backend = backend
    x, h, dt = tensors
    states = cell.scan(x, h, dt, batch_major=batch_major)
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(x.dtype)
    gradients = torch.autograd.grad((states * weights).sum(), [*tensors, *cell.parameters()])
    return [states.detach(), *gradients]


def draw(steps: int, batch: int, inputs: int, units: int, dtype: torch.dtype) -> list[torch.Tensor]:
    x, h, dt = torch.randn(steps, batch, inputs), 0.5 * torch.randn(batch, units), 1.5 * torch.rand(steps, batch)
    return [tensor.to(dtype).requires_grad_() for tensor in (x, h, dt)]


@pytest.mark.parametrize(("elastance", "synapses", "solver"), FORMS)
def test_fused_equals_the_plain_loop_in_float64(elastance: str, synapses: str, solver: tuple[str, int]) -> None:
    for steps, batch, inputs, units, batch_major in ((70, 3, 4, 5, False), (33, 1, 1, 33, True), (1, 5, 0, 16, False)):
        cell = DiagonalLRCCell(
            *(inputs, units), elastance=elastance, synapses=synapses, solver=solver[0], unfolds=solver[1],
            dtype=torch.float64,
        )  # fmt: skip
        tensors = draw(steps, batch, inputs, units, torch.float64)
        for fused, plain in zip(*(run(cell, b, tensors, batch_major) for b in ("fused", "reference")), strict=True):
            torch.testing.assert_close(fused, plain, rtol=1e-9, atol=REARRANGED)


@pytest.mark.parametrize(("elastance", "synapses", "solver"), FORMS)
def test_float32_errs_at_most_as_the_law_allows(elastance: str, synapses: str, solver: tuple[str, int]) -> None:
    torch.manual_seed(0)
    errors: dict[str, list[torch.Tensor]] = {"fused": [], "reference": []}
    for _ in range(8):
        cell = DiagonalLRCCell(
            6, 24, elastance=elastance, synapses=synapses, solver=solver[0], unfolds=solver[1]
        )  # fmt: skip
        tensors = draw(200, 4, 6, 24, torch.float32)
        single = {backend: run(cell, backend, tensors, False) for backend in errors}
        double = run(cell.double(), "reference", [t.detach().double().requires_grad_() for t in tensors], False)
        for backend, results in single.items():
            pairs = zip(results, double, strict=True)
            squares = [((a - b) / b.abs().max().clamp(min=1e-9)).square().mean() for a, b in pairs]
            errors[backend].append(torch.stack(squares))
    fused, plain = (torch.stack(rows).mean(0).sqrt() for rows in errors.values())
    assert fused[0] <= 2 * plain[0]
    assert bool((fused[1:] <= 3 * plain[1:]).all()), (fused / plain).tolist()


def test_repeated_runs_are_equal_to_the_bit() -> None:
    cell, tensors = DiagonalLRCCell(3, 40), draw(500, 6, 3, 40, torch.float32)
    for first, second in zip(*(run(cell, "fused", tensors, False) for _ in range(2)), strict=True):
        assert torch.equal(first, second)


def test_a_nan_stays_in_its_sample_and_unit_order() -> None:
    cell, (x, h, dt) = DiagonalLRCCell(3, 5), draw(9, 4, 3, 5, torch.float32)
    with torch.no_grad():
        x[4, 2, 0] = torch.nan
        fused = cell.scan(x, h, dt)
    cell.backend = "reference"
    assert torch.equal(fused.isnan(), cell.scan(x, h, dt).isnan())
    assert bool(fused[:, [0, 1, 3]].isfinite().all())


def test_negated_views_and_strange_strides_are_read_as_they_are() -> None:
    cell = DiagonalLRCCell(3, 5)
    wide = torch.randn(7, 2, 6)
    lazy = torch.complex(torch.randn(7, 2, 3), torch.randn(7, 2, 3)).conj().imag
    for x in (wide[..., ::2], wide.flip(0)[..., :3], lazy, wide.transpose(0, 1)[:, :, 3:].transpose(0, 1)):
        whole = cell.scan(x, torch.zeros(2, 5), 1.0)
        assert torch.equal(whole, cell.scan(x.clone().contiguous(), torch.zeros(2, 5), 1.0))


def test_torch_compile_and_export_see_one_operator() -> None:
    layer, x = lrcnet.DiagonalLRC(3, 5, batch_first=True), torch.randn(2, 40, 3)
    program = torch.export.export(layer, (x,))
    names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert sum("diagonal_scan" in name for name in names) == 1
    torch.testing.assert_close(program.module()(x)[0], layer(x)[0])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method.*:DeprecationWarning")  # of torch's own scan operator
def test_an_exported_program_works_for_every_length() -> None:
    layer, x = lrcnet.DiagonalLRC(3, 5, batch_first=True), torch.randn(2, 40, 3)
    time = torch.export.Dim("time", min=2, max=4096)
    program = torch.export.export(layer, (x,), dynamic_shapes={"input": {1: time}})
    longer = torch.randn(2, 90, 3)
    torch.testing.assert_close(program.module()(longer)[0], layer(longer)[0], rtol=1e-5, atol=1e-6)


def test_a_second_derivative_names_the_alternative() -> None:
    cell, (x, h, dt) = DiagonalLRCCell(3, 5), draw(4, 2, 3, 5, torch.float32)
    (gradient,) = torch.autograd.grad(cell.scan(x, h, dt).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match='backend="reference"'):
        gradient.sum().backward()


def test_more_unfoldings_than_the_kernel_takes_run_in_the_plain_loop() -> None:
    with pytest.raises(RuntimeError, match="at most 64 unfoldings, but there are 65"):
        lrcnet.DiagonalLRC(3, 5, unfolds=65, backend="fused")(torch.randn(4, 2, 3))


def test_the_operator_refuses_tensors_that_do_not_fit() -> None:
    scan, terms, h = torch.ops.lrcnet.diagonal_scan, torch.randn(4, 2, 10), torch.zeros(2, 5)
    letters, rest = torch.zeros(11, 5), (1.0, True, "symmetric", "euler", 1, False)
    with pytest.raises(ValueError, match=r"letters must have shape \(11, 5\), but has \(10, 5\)"):
        scan(terms, h, None, letters[:10], *rest)
    with pytest.raises(ValueError, match=r"h must be torch\.float32 on the CPU, as x is, but is torch\.float64"):
        scan(terms, h.double(), None, letters, *rest)
    with pytest.raises(ValueError, match="the terms must have 3 dimensions and be float32 or float64"):
        scan(terms.half(), h.half(), None, letters.half(), *rest)
