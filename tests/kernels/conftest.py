"""What the kernel tests share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lrcnet import kernels
from lrcnet.circuit import LETTERS, STEP_LETTERS, Circuit, Switches
from lrcnet.kernels import native
from lrcnet.kernels.cpu import CPUBackend
from tests.kernels.gpu.interpreted import INTERPRETED, use_interpreted_kernels

if kernels.unavailable() is not None:
    collect_ignore_glob = ["test_*.py"]

Call = Callable[..., Tensor]
ROOT = Path(__file__).parents[2]


# The backend for CPU tensors: in a process of their own, the laws run on Triton's kernels too (tests/kernels/gpu).
CPU = use_interpreted_kernels() if INTERPRETED else CPUBackend()
INSTRUCTION_SETS: list[str] = ["triton"] if INTERPRETED else kernels.info().get("available", [])


def circuit_and_switches(
    *, batch_first: bool = False, negative_dt: str = "error", **rest: Any
) -> tuple[Circuit, Switches]:
    """The letters, in their units if scaled, and the switches of a model given by name."""
    letters = {name: rest.pop(name) for name in STEP_LETTERS}
    if rest.get("scaled"):
        letters |= {name: value / LETTERS[name].unit for name, value in letters.items() if value is not None}
    circuit = Circuit(**letters, mask=rest.pop("mask", None))
    return circuit, Switches(batch_first=batch_first, check_dt=negative_dt == "error", **rest)


def scan(x: Tensor, h0: Tensor | None, dt: float | Tensor, **rest: Any) -> Tensor:
    """The CPU backend's states, laid out as x, for letters and switches given by name."""
    circuit, switches = circuit_and_switches(**rest)
    if not switches.batch_first:
        return CPU.scan(circuit, switches, x, h0, dt)[0]
    dt = dt.transpose(0, 1) if isinstance(dt, Tensor) and dt.dim() else dt
    return CPU.scan(circuit, switches, x.transpose(0, 1), h0, dt)[0].transpose(0, 1)


def step(x: Tensor, h: Tensor, dt: float | Tensor, **rest: Any) -> Tensor:
    """One step of the CPU backend, for letters and switches given by name."""
    return CPU.step(*circuit_and_switches(**rest), x, h, dt)


def values_and_gradients(
    call: Call, tensors: dict[str, Tensor | None], dtype: torch.dtype, **switches: Any
) -> dict[str, Tensor]:
    """The states, and the gradient of every tensor for a fixed random direction."""
    leaves = {
        name: None if tensor is None else tensor.detach().to(dtype).requires_grad_() for name, tensor in tensors.items()
    }
    x, h0, dt = (leaves.pop(name) for name in ("x", "h0", "dt"))
    out = call(x, h0, dt, **leaves, **switches)
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(dtype)
    present = {name: leaf for name, leaf in {"x": x, "h0": h0, "dt": dt, **leaves}.items() if leaf is not None}
    gradients = torch.autograd.grad((out * direction).sum(), list(present.values()))
    return {"states": out.detach(), **dict(zip(present, gradients, strict=True))}


def label(value: Any) -> str:
    """A layer or its options, short enough for the name of a test."""
    return value.__name__ if isinstance(value, type) else "-".join(map(str, value.values())) or "default"


@contextmanager
def instruction_set(name: str) -> Iterator[None]:
    """Run the kernels of one of `INSTRUCTION_SETS`."""
    if INTERPRETED:
        yield
        return
    before = kernels.info()["in_use"]
    assert native.call("use")(name)
    try:
        yield
    finally:
        native.call("use")(before)


def run_program(program: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Python source in a process of its own, which sees this project."""
    path = os.pathsep.join([str(ROOT), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def check_repeats_and_threads(gradient: Callable[[], Tensor]) -> None:
    """Assert that a gradient is the same to the bit in every run, and to rounding with any number of threads."""
    first = gradient()
    assert all(torch.equal(gradient(), first) for _ in range(5))
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            assert torch.allclose(gradient(), first, rtol=1e-12, atol=1e-12)
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def one_thread() -> Any:
    """Back to the number of threads there was."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
