"""The laws of a backend on Triton's kernels, in processes of their own: TRITON_INTERPRET is read at import."""

import os
import subprocess
import sys

import pytest

from lrcnet import kernels
from tests.kernels.conftest import ROOT

pytest.importorskip("triton", reason="Triton is not installed (pip install 'lrcnet[gpu]')")

# Tests of tests/kernels that run on Triton's kernels as they are.
SHARED = ["test_backend.py", "test_boundary.py", "test_operator.py", "test_values.py", "test_wired.py"]
# Others have shapes for which an interpreter takes too long; laws.py has the same laws on small ones.
TOO_LARGE = [
    "test_double_precision",
    "test_single_precision",
    "test_any_shape",
    "test_any_wiring",
    "test_gradcheck",
    "test_tiny_and_huge",
    "test_a_step_equals_a_scan",
    "test_a_long_run",
    "test_a_layer_is_one_operator",
]
# And some are about the compiled library: its threads, its arguments, and memory that it reads without torch.
OF_THE_CPU = [
    "threads_agree",
    "after_fork",
    "compiled_library",
    "storage_was_freed",
    "test_a_step_between_devices",
    "test_step_refuses_what_is_not_on_the_cpu",
    "test_reasons_name_everything",
]


def run_interpreted(*arguments: str) -> str:
    """Run tests with interpreted kernels; returns the last line that pytest prints."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", "addopts=", *arguments]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def test_the_equation_and_its_gradients_on_small_networks() -> None:
    models = ("True-symmetric-euler-1", "False-none-hybrid-3")
    laws = [f"tests/kernels/gpu/laws.py::test_double_precision_equals_the_equation[{model}]" for model in models]
    assert "2 passed" in run_interpreted(*laws)


@pytest.mark.slow
def test_laws_on_small_shapes() -> None:
    assert " passed" in run_interpreted("tests/kernels/gpu/laws.py")


@pytest.mark.slow
def test_laws_of_the_diagonal_network() -> None:
    shared = "tests/kernels/test_diagonal.py"
    # Their shapes take an interpreter too long, or they are about the compiled library; diagonal_laws.py has the laws.
    elsewhere = ("float64", "float32", "repeated_runs", "every_length", "on_the_cpu", "do_not_fit")
    assert " passed" in run_interpreted("tests/kernels/gpu/diagonal_laws.py")
    assert " passed" in run_interpreted(shared, "-k", f"not ({' or '.join(elsewhere)})")


def test_the_diagonal_equation_and_its_gradients_on_small_networks() -> None:
    law = "tests/kernels/gpu/diagonal_laws.py::test_double_precision_equals_the_plain_loop"
    assert "2 passed" in run_interpreted(law, "-k", "euler and asymmetric")


@pytest.mark.slow
@pytest.mark.skipif(kernels.unavailable() is not None, reason="the tests of tests/kernels need the compiled kernels")
def test_laws_that_the_cpu_kernels_obey_too() -> None:
    files = [f"tests/kernels/{name}" for name in SHARED]
    last = run_interpreted(*files, "-k", f"not ({' or '.join(TOO_LARGE + OF_THE_CPU)})")
    assert " passed" in last
