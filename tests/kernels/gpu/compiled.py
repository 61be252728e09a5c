"""The GPU's kernels compiled for real targets without a device: registers, shared memory and spills.

    python -m tests.kernels.gpu.compiled    # prints the table of docs/performance.md

Axes: see `lrcnet.kernels.triton`.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lrcnet.kernels.problem import ELASTANCE_CODES, SOLVER_CODES
from lrcnet.kernels.triton import diagonal, sizes
from lrcnet.kernels.triton.backward import scan_backward
from lrcnet.kernels.triton.forward import scan_forward
from lrcnet.kernels.triton.inputs import input_currents, input_gradients
from lrcnet.kernels.triton.weights import weight_gradients

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
SHARED_MEMORY = {"sm_80": 163 * 1024, "sm_90": 227 * 1024, "gfx942": 64 * 1024}
"""Bytes that one program may have at most."""
FORWARD = ("scan_forward", "input_currents", "diagonal_forward")
TYPES = {torch.float32: "fp32", torch.float64: "fp64"}
# (saturated, elastance, solver): the heaviest equation, the LRCU and the LTC.
MODELS = [(True, "symmetric", "exponential"), (True, "symmetric", "euler"), (False, "none", "hybrid")]

# Parameters that are numbers; the others are addresses, unless they are known when a kernel is compiled.
_STRIDES = {"gap_t", "gap_b", "state_t", "state_b", "grad_t", "grad_b", "grad_u", "before_point", "y_point"}
_STRIDES |= {"terms_t", "terms_b", "before_t", "before_b", "of_terms_t", "of_terms_b"}
_NUMBERS = _STRIDES | {"steps", "batch", "m", "n", "unfolds", "points", "chunk", "rows"}


class Kernel(NamedTuple):
    """One kernel with the numbers that it is compiled for."""

    function: Any
    dtype: torch.dtype
    constants: dict[str, Any]
    warps: int
    equation: str = ""

    @property
    def name(self) -> str:
        return str(self.function.__name__)

    def __str__(self) -> str:
        units = self.constants.get("UNITS")
        return f"{self.name} {TYPES[self.dtype]}" + (f" m <= {units}, {self.equation}" if units else "")


class Compiled(NamedTuple):
    """The outcome: registers per thread, bytes of shared memory, and what did not fit into registers.

    `spilled` is in bytes for NVIDIA, in registers for AMD.
    """

    registers: int
    shared: int
    spilled: int


def list_kernels(dtype: torch.dtype) -> Iterator[Kernel]:
    """Yield each kernel of each size class for the heaviest equation, and those of 64 units for the other ones."""
    for model in MODELS:
        for size in (sizes.scan_size(units, dtype) for units in (16, 32, 64, 128, sizes.MOST_UNITS)):
            if model == MODELS[0] or size.units == 64:
                yield from _scan_kernels(dtype, size, *model)
    for function, tile, more in (
        (input_currents, sizes.CURRENTS, {"BIAS": True}),
        (input_gradients, sizes.INPUTS, {}),
        (weight_gradients, sizes.WEIGHTS, {}),
    ):
        constants = {"ELASTIC": True, "POINTS": tile.points, "ROWS": tile.rows, "COLUMNS": tile.columns, **more}
        yield Kernel(function, dtype, constants, tile.warps)
    yield from _diagonal_kernels(dtype)


def _diagonal_kernels(dtype: torch.dtype) -> Iterator[Kernel]:
    """Yield the kernels of the diagonal LRC in both forms, with the heaviest solver and elastance."""
    for mixed in (True, False):
        codes = {"ELASTANCE": ELASTANCE_CODES["symmetric"], "SOLVER": SOLVER_CODES["exponential"]}
        constants = {"MIXED": mixed, **codes, "UNITS": diagonal.UNITS}
        name = "mixed" if mixed else "per channel"
        yield Kernel(diagonal.diagonal_forward, dtype, constants, diagonal.WARPS, name)
        backward = {**constants, "BLOCK": diagonal.BLOCK}
        yield Kernel(diagonal.diagonal_backward, dtype, backward, diagonal.WARPS, name)


def _scan_kernels(dtype: torch.dtype, size: sizes.Scan, saturated: bool, elastance: str, solver: str) -> list[Kernel]:
    constants = {
        "SATURATED": saturated,
        "ELASTANCE": ELASTANCE_CODES[elastance],
        "SOLVER": SOLVER_CODES[solver],
        "SEVERAL": solver != "euler",
        "SAMPLES": size.samples,
        "UNITS": size.units,
        "RESIDENT": size.resident,
    }
    name = f"{'saturated' if saturated else 'unsaturated'}, elastance {elastance}, {solver}"
    return [
        Kernel(scan_forward, dtype, {**constants, "KEEP": True, "ROWS": size.tile}, size.warps, name),
        Kernel(scan_backward, dtype, {**constants, "COLUMNS": size.tile}, size.warps_back, name),
    ]


def compile_for(kernel: Kernel, target: str) -> Compiled:
    """Compile a kernel as a launch with aligned tensors would."""
    signature, attributes = {}, {}
    for parameter in kernel.function.params:
        name = parameter.name
        kind = "constexpr" if parameter.is_constexpr else "i32" if name in _NUMBERS else f"*{TYPES[kernel.dtype]}"
        signature[name] = kind
        if kind.startswith("*") or name == "m":
            attributes[(parameter.num,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel.function, signature, kernel.constants, attributes)
    binary = triton.compile(source, target=TARGETS[target], options={"num_warps": kernel.warps})
    read = _read_amd if target.startswith("gfx") else _read_nvidia
    registers, spilled = read(binary.asm)
    return Compiled(registers, binary.metadata.shared, spilled)


def _read_nvidia(texts: dict[str, Any]) -> tuple[int, int]:
    """Assemble the PTX again with the ptxas of Triton, which then says what it used."""
    ptxas = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    target = _find(r"^\.target (\w+)", texts["ptx"])
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(texts["ptx"])
        command = [str(ptxas), "-v", f"--gpu-name={target}", str(source), "-o", str(Path(folder, "kernel.cubin"))]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    spilled = int(_find(r"(\d+) bytes spill stores", said)) + int(_find(r"(\d+) bytes spill loads", said))
    return int(_find(r"Used (\d+) registers", said)), spilled


def _read_amd(texts: dict[str, Any]) -> tuple[int, int]:
    text = texts["amdgcn"]
    spilled = sum(int(_find(rf"\.{kind}_spill_count:\s*(\d+)", text)) for kind in ("vgpr", "sgpr"))
    return int(_find(r"\.vgpr_count:\s*(\d+)", text)), spilled


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, f"no {pattern} in the compiler's answer"
    return found.group(1)


def print_table() -> None:
    """Print one row for each kernel and target."""
    print("| kernel | target | warps | registers | shared memory | spilled |\n|---|---|---|---|---|---|")
    for dtype in TYPES:
        for kernel in list_kernels(dtype):
            for target in TARGETS:
                done = compile_for(kernel, target)
                unit = "registers" if target.startswith("gfx") else "bytes"
                numbers = f"{kernel.warps} | {done.registers} | {done.shared} | {done.spilled} {unit}"
                print(f"| {kernel} | {target} | {numbers} |", flush=True)


if __name__ == "__main__":
    print_table()
