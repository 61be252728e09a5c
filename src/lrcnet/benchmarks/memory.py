"""Peak memory that a training step adds to the process: fused kernel against the plain loop."""

import subprocess
import sys

from lrcnet.benchmarks.measure import Measurement

# Each side runs in a fresh process, because the peak of a process never goes down. On Linux, ru_maxrss includes the
# peak of the parent process, so the peak is read from /proc/self/status, which counts the process's own memory only.
PROGRAM = """
import pathlib, resource, sys, torch, lrcnet
status = pathlib.Path("/proc/self/status")
def peak():
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
layer = {layer}
layer(torch.rand(2, 2, {inputs}))[0].sum().backward()
x = torch.rand({shape})
before = peak()
layer(x)[0].sum().backward()
print(peak() - before)
"""


def measure() -> list[Measurement]:
    shape = (64, 784, 1)
    fused, plain = (
        peak_of(f"lrcnet.LRCU(1, 64, batch_first=True, backend={backend!r})", shape) / 2**20
        for backend in ("fused", "reference")
    )
    what = f"LRCU-S 64, psMNIST {shape}, peak of one training step"
    return [Measurement(what, fused, "MiB", "plain loop", plain, fused / plain, 0.03)]


def peak_of(layer: str, shape: tuple[int, int, int]) -> int:
    """Return the bytes that a training step adds to a process at its peak.

    Args:
        layer: the expression that builds the layer, with batch_first.
        shape: that of its input.
    """
    program = PROGRAM.format(layer=layer, inputs=shape[2], shape=shape)
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"the memory benchmark's process failed for {layer}: {process.stderr.strip()[-500:]}")
    return int(process.stdout)
