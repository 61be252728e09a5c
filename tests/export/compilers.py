"""Compile generated C: for this machine as a library that ctypes calls, and for others as a self-test."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lrcnet.export.network import NetworkData

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
GCC = shutil.which("gcc")
# Each processor with the machine of qemu that has it, and the end of its memory.
CORTEX = {
    "cortex-m0": ("microbit", "0x20004000"),
    "cortex-m3": ("mps2-an385", "0x20200000"),
    "cortex-m4": ("mps2-an386", "0x20200000"),
}
_VECTORS = """\
extern void _start(void);
__attribute__((section(".vectors"), used)) static void *const vectors[] = {{(void *){stack}, (void *)_start}};
"""


def run(*command: str) -> str:
    """Run a command; its error output is part of the failure."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def self_test(source: Path, *flags: str) -> str:
    """Compile the source with its main() for this machine, and run it."""
    program = source.with_suffix("")
    run("gcc", *STRICT, *flags, f"-D{source.stem.upper()}_TEST", str(source), "-o", str(program), "-lm")
    return run(str(program))


def self_test_on_arm(source: Path, cpu: str) -> str:
    """Compile the source with its main() for a Cortex-M without floating-point unit, and run it under qemu."""
    machine, stack = CORTEX[cpu]
    vectors, code, program = (source.with_name(name) for name in ("vectors.c", "code.o", "program.elf"))
    vectors.write_text(_VECTORS.format(stack=stack))
    target = (f"-mcpu={cpu}", "-mthumb")
    run(
        "arm-none-eabi-gcc",
        *STRICT,
        *target,
        "-Os",
        "-c",
        f"-D{source.stem.upper()}_TEST",
        str(source),
        "-o",
        str(code),
    )
    # Interrupt vectors at 0, data in memory: qemu loads each section where it belongs.
    places = ("-Wl,--section-start=.vectors=0x0", "-Wl,-Tdata=0x20000000")
    run(
        "arm-none-eabi-gcc",
        *target,
        "--specs=rdimon.specs",
        *places,
        str(vectors),
        str(code),
        "-lm",
        "-o",
        str(program),
    )
    quiet = ("-nographic", "-monitor", "none", "-serial", "none")
    semihosting = ("-semihosting-config", "enable=on,target=native")
    return run("qemu-system-arm", "-M", machine, *quiet, *semihosting, "-kernel", str(program))


class Library:
    """A compiled network; calling it runs a stream through it."""

    def __init__(self, source: Path, network: NetworkData, flags: Sequence[str] = ("-O2",)) -> None:
        library = source.with_suffix(".so")
        run("gcc", *STRICT, *flags, "-shared", "-fPIC", str(source), "-o", str(library), "-lm")
        self.network = network
        self._code: Any = ctypes.CDLL(str(library))

    def __call__(self, x: np.ndarray, dt: np.ndarray | None) -> np.ndarray:
        """Return the answers (N, outputs) to readings (N, n), or to tokens (N,)."""
        name, pointer = self.network.name, ctypes.POINTER(ctypes.c_float)
        # Larger than any state of the tests.
        state = (ctypes.c_char * (1 << 16))()
        getattr(self._code, f"{name}_reset")(state)
        step, answers = getattr(self._code, f"{name}_step"), np.empty((len(x), self.network.outputs), np.float32)
        for index, reading in enumerate(x if x.ndim == 1 else np.ascontiguousarray(x, np.float32)):
            given = int(reading) if x.ndim == 1 else reading.ctypes.data_as(pointer)
            gap = [] if dt is None else [ctypes.c_float(dt[index])]
            step(state, given, *gap, answers[index].ctypes.data_as(pointer))
        return answers
