"""Each instruction set this machine has, forced in turn; and what happens where there is none."""

import shutil
from pathlib import Path

import pytest

import lrcnet
from lrcnet import kernels
from lrcnet.benchmarks.kernels import LANES, MULTIPLY_ADDS
from tests.kernels.conftest import run_program

PROGRAM = """
import torch
from tests.kernels.conftest import scan, values_and_gradients
from tests.kernels.transcription import MODELS, batch_of, network, states
from lrcnet import kernels
print(kernels.info()["in_use"])
for model in MODELS:
    for steps, batch, n, m in ((3, 5, 3, 17), (2, 9, 5, 64), (2, 2, 1, 1)):
        for dtype, most in ((torch.float64, 1e-12), (torch.float32, 2e-4)):
            x, h0, dt = batch_of(steps, batch, n, m)
            tensors = {"x": x, "h0": h0, "dt": dt, **network(n, m, model["elastance"])}
            tensors = {k: None if v is None else v.float().double() for k, v in tensors.items()}
            fused = values_and_gradients(scan, tensors, dtype, **model, batch_first=False, negative_dt="error")
            truth = values_and_gradients(states, tensors, torch.float64, **model, batch_first=False)
            for name, value in truth.items():
                error = float((fused[name] - value).abs().max() / value.abs().max())
                assert error < most, (model, steps, batch, n, m, name, error)
"""


@pytest.mark.parametrize("name", kernels.info().get("available", []))
def test_every_instruction_set_is_right(name: str) -> None:
    # One thread: two that wait for each other beside other tests take ten times as long.
    done = run_program(PROGRAM, LRCNET_ISA=name, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == name


def test_the_benchmark_knows_the_arithmetic_of_every_wide_instruction_set() -> None:
    built = kernels.info().get("built", ["baseline"])
    # The baseline may have no fused multiply-adds, in which the bound is counted.
    assert set(built) - {"baseline"} <= set(MULTIPLY_ADDS)
    assert set(MULTIPLY_ADDS) == set(LANES)


def test_an_unknown_instruction_set_lists_the_known_ones() -> None:
    done = run_program("import lrcnet.kernels", LRCNET_ISA="mmx")
    assert done.returncode != 0
    assert f"LRCNET_ISA must be one of {', '.join(kernels.info()['available'])}" in done.stderr


def test_without_the_library_the_package_works_and_says_why(tmp_path: Path) -> None:
    # The package as a machine without a compiler installs it: a note in place of the compiled module.
    source = Path(lrcnet.__file__).parent
    shutil.copytree(source, tmp_path / "lrcnet", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (tmp_path / "lrcnet/kernels/_native_missing.txt").write_text("no C++ compiler when it was installed")
    program = """
import torch, lrcnet
x = torch.zeros(2, 1, 3)
lrcnet.LRCU(3, 5)(x)
print(lrcnet.info()["kernels"]["reason"])
try:
    lrcnet.LRCU(3, 5, backend="fused")(x)
except RuntimeError as error:
    print(error)
"""
    done = run_program(program, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no C++ compiler") == 1, "said once"
    first, second = done.stdout.strip().splitlines()
    assert "no C++ compiler" in first
    assert first in second


def test_a_source_tree_that_was_never_built_says_so(tmp_path: Path) -> None:
    source = Path(lrcnet.__file__).parent
    shutil.copytree(source, tmp_path / "lrcnet", ignore=shutil.ignore_patterns("*.so", "*.txt", "__pycache__"))
    done = run_program("import lrcnet; print(lrcnet.kernels.unavailable())", PYTHONPATH=str(tmp_path))
    assert "its sources were not built" in done.stdout, done.stderr
