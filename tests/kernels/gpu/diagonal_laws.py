"""The laws of the diagonal LRC on Triton's kernels, interpreted on small shapes; run by test_laws.py.

Those tests of tests/kernels/test_diagonal.py that fit an interpreter run as they are; these are for fewer steps.
"""

import pytest
import torch

import lrcnet
from lrcnet.cells.diagonal import DiagonalLRCCell
from lrcnet.kernels import BACKENDS, diagonal
from lrcnet.kernels.gpu import TritonBackend
from tests.kernels.gpu.interpreted import INTERPRETED
from tests.kernels.test_diagonal import FORMS, draw, run
from tests.tolerances import REARRANGED


def build(inputs: int, units: int, form: tuple[str, str, tuple[str, int]], dtype: torch.dtype) -> DiagonalLRCCell:
    elastance, synapses, (solver, unfolds) = form
    return DiagonalLRCCell(
        inputs, units, elastance=elastance, synapses=synapses, solver=solver, unfolds=unfolds, dtype=dtype
    )


def test_the_kernels_are_interpreted() -> None:
    assert INTERPRETED
    assert [type(one) for one in BACKENDS] == [TritonBackend]
    assert diagonal.IMPLEMENTATIONS["cpu"] == diagonal.IMPLEMENTATIONS["cuda"]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_double_precision_equals_the_plain_loop(form: tuple[str, str, tuple[str, int]]) -> None:
    # More than one block of units, of steps, and samples.
    for steps, batch, inputs, units, batch_major in ((35, 2, 3, 5, False), (3, 1, 2, 70, True), (1, 3, 0, 16, False)):
        cell, tensors = build(inputs, units, form, torch.float64), draw(steps, batch, inputs, units, torch.float64)
        for fused, plain in zip(*(run(cell, b, tensors, batch_major) for b in ("fused", "reference")), strict=True):
            torch.testing.assert_close(fused, plain, rtol=1e-9, atol=REARRANGED)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_float32_errs_at_most_as_the_law_allows(form: tuple[str, str, tuple[str, int]]) -> None:
    torch.manual_seed(0)
    errors: dict[str, list[torch.Tensor]] = {"fused": [], "reference": []}
    for _ in range(4):
        cell, tensors = build(6, 24, form, torch.float32), draw(40, 2, 6, 24, torch.float32)
        single = {backend: run(cell, backend, tensors, False) for backend in errors}
        double = run(cell.double(), "reference", [t.detach().double().requires_grad_() for t in tensors], False)
        for backend, results in single.items():
            pairs = zip(results, double, strict=True)
            squares = [((a - b) / b.abs().max().clamp(min=1e-9)).square().mean() for a, b in pairs]
            errors[backend].append(torch.stack(squares))
    fused, plain = (torch.stack(rows).mean(0).sqrt() for rows in errors.values())
    assert fused[0] <= 2 * plain[0]
    assert bool((fused[1:] <= 3 * plain[1:]).all()), (fused / plain).tolist()


def test_runs_are_identical_to_the_bit() -> None:
    cell, tensors = DiagonalLRCCell(3, 70), draw(34, 2, 3, 70, torch.float32)
    for first, second in zip(*(run(cell, "fused", tensors, False) for _ in range(2)), strict=True):
        assert torch.equal(first, second)


def test_a_stack_and_both_directions_run_on_the_kernels() -> None:
    layer, x = lrcnet.DiagonalLRC(3, 5, num_layers=2, bidirectional=True, backend="fused"), torch.randn(4, 2, 3)
    output, _ = layer(x)
    for cell in layer.cells:
        cell.backend = "reference"
    torch.testing.assert_close(output, layer(x)[0])
