"""The baseline kernels on an emulated ARM processor: NEON through the compiler's vector extensions."""

import shutil
import struct
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from lrcnet.circuit import LETTERS, STEP_LETTERS
from lrcnet.kernels.problem import ELASTANCE_CODES, SOLVER_CODES
from tests.kernels.conftest import ROOT, label, values_and_gradients
from tests.kernels.test_values import (
    DOUBLE,
    NAMES,
    PLAIN,
    SIZES,
    SOME_MODELS,
    Run,
    Tensors,
    check_error_law,
    problem,
    relative_error,
    stable,
)
from tests.kernels.test_wired import draw_mask
from tests.kernels.transcription import MODELS, states

COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
SOURCES = ROOT / "src/lrcnet/kernels/csrc"
# As setup.py compiles the baseline.
FLAGS = "-std=c++17 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi -static"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason="g++-aarch64-linux-gnu is not installed"),
    pytest.mark.skipif(shutil.which(EMULATOR) is None, reason="qemu-user is not installed"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernels with their driver; return the run of one problem on them."""
    folder = tmp_path_factory.mktemp("aarch64")
    table = ["-DLRCNET_TABLE=lrcnet_baseline", '-DLRCNET_NAME="baseline"']
    sources = [str(SOURCES / "kernels.cpp"), str(ROOT / "tests/kernels/driver.cpp")]
    command = [COMPILER, *FLAGS.split(), f"-I{SOURCES}", *table, *sources, "-o", str(folder / "driver")]
    subprocess.run(command, check=True)

    def run_driver(tensors: Tensors, dtype: torch.dtype, model: dict[str, Any]) -> dict[str, Tensor]:
        (folder / "input").write_bytes(b"".join(pack(tensors, dtype, **model)))
        subprocess.run([EMULATOR, "driver", "input", "output"], cwd=folder, check=True)
        return unpack((folder / "output").read_bytes(), tensors, dtype, scaled=model.get("scaled", False))

    return run_driver


def pack(
    tensors: Tensors,
    dtype: torch.dtype,
    *,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    scaled: bool = False,
    mask: Tensor | None = None,
) -> Iterator[bytes]:
    """Write a problem as driver.cpp reads it; the states' gradient is that of `values_and_gradients`."""
    x, h0 = tensors["x"], tensors["h0"]
    assert x is not None
    assert h0 is not None
    (steps, batch, inputs), units = x.shape, h0.shape[1]
    codes = (saturated, ELASTANCE_CODES[elastance], SOLVER_CODES[solver], 2)
    yield struct.pack("10q", dtype is torch.float64, steps, batch, inputs, units, unfolds, *codes)
    yield struct.pack(f"{len(STEP_LETTERS)}d", *(LETTERS[name].unit if scaled else 1.0 for name in STEP_LETTERS))
    make = torch.Generator().manual_seed(5)
    direction = torch.randn((steps, batch, units), generator=make, dtype=torch.float64)
    letters = [tensors[name] for name in STEP_LETTERS]
    if scaled:
        letters = [v if v is None else v / LETTERS[n].unit for n, v in zip(STEP_LETTERS, letters, strict=True)]
    for tensor in (x, h0, tensors["dt"], direction, *letters):
        yield struct.pack("q", 0 if tensor is None else tensor.numel())
        yield b"" if tensor is None else tensor.to(dtype).numpy().tobytes()
    yield struct.pack("q", 0 if mask is None else mask.numel())
    yield b"" if mask is None else mask.numpy().tobytes()


def unpack(output: bytes, tensors: Tensors, dtype: torch.dtype, *, scaled: bool) -> dict[str, Tensor]:
    """Read the answers of driver.cpp; "first" are the states after one step."""
    x, h0 = tensors["x"], tensors["h0"]
    assert x is not None
    assert h0 is not None
    shapes = {"states": (*x.shape[:2], h0.shape[1]), "first": tuple(h0.shape)}
    shapes |= {name: () if value is None else tuple(value.shape) for name, value in tensors.items()}
    answers, at = {}, 0
    for name in ("states", "first", "x", "h0", "dt", *STEP_LETTERS):
        (count,) = struct.unpack_from("q", output, at)
        size = count * dtype.itemsize
        if name not in tensors or tensors[name] is not None:
            numbers = torch.frombuffer(bytearray(output[at + 8 : at + 8 + size] or b"\0" * 8), dtype=dtype)
            answers[name] = numbers[:count].reshape(shapes[name])
        if scaled and name in answers and name in STEP_LETTERS:
            answers[name] /= LETTERS[name].unit
        at += 8 + size
    assert at == len(output)
    return answers


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_double_precision_equals_the_equation(model: dict[str, Any], run: Run) -> None:
    # Emulation is slow: every size for some models, one with remainders of vectors for the others.
    for sizes in SIZES if model in SOME_MODELS else SIZES[1:2]:
        for share in (None, 0.25):
            tensors = problem(*sizes, model["elastance"])
            mask = None if share is None else draw_mask(*sizes[2:], share)
            wired = model if mask is None else {**model, "mask": mask}
            truth = values_and_gradients(states, tensors, torch.float64, **wired, **PLAIN)
            answers = run(tensors, torch.float64, wired)
            assert relative_error(answers["first"], truth["states"][0]) < DOUBLE
            for name, value in truth.items():
                assert relative_error(answers[name], value) < DOUBLE, (sizes, share, name)


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
def test_single_precision_is_about_as_exact_as_the_plain_loop(model: dict[str, Any], run: Run) -> None:
    cases = ((stable(problem(30, 4, 3, 17, model["elastance"], seed), model), model) for seed in range(8))
    check_error_law(cases, {"aarch64": run})


@pytest.mark.parametrize("model", SOME_MODELS, ids=label)
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_stays_in_its_place(value: float, model: dict[str, Any], run: Run) -> None:
    for dtype in (torch.float32, torch.float64):
        tensors = problem(3, 5, 3, 9, model["elastance"])
        tensors["x"][1, 3, 1] = value  # type: ignore[index]
        truth = values_and_gradients(states, tensors, dtype, **model, **PLAIN)
        answers = run(tensors, dtype, model)
        for name, expected in truth.items():
            assert torch.equal(answers[name].isfinite(), expected.isfinite()), name
