"""Training steps on a GPU: the Triton kernels beside torch's LSTM (cuDNN, on AMD MIOpen) and the plain loop."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

import lrcnet
from lrcnet.benchmarks.kernels import SHAPES
from lrcnet.benchmarks.measure import Measurement, medians_in_turn, training_step
from lrcnet.kernels import gpu_info

# The law of tests/kernels: error against float64 over that of the plain float32 loop.
MOST_ERROR = {"states": 2.0, "gradients": 3.0}
Shape = tuple[str, int, int, int, int, int]
# Name, batch, time, inputs, units, units of the LSTM: those of the CPU's benchmark, and one whose weights are streamed.
GPU_SHAPES: list[Shape] = [*((*shape[:6],) for shape in SHAPES), ("128 units", 64, 256, 64, 128, 128)]


def measure() -> list[Measurement]:
    """Measure on the first GPU.

    Raises:
        RuntimeError: if there is none that the kernels run on.
    """
    state = gpu_info()
    if not state["usable"]:
        raise RuntimeError(f"the GPU benchmark needs a GPU that the kernels run on, but {state['reason']}")
    properties: Any = torch.cuda.get_device_properties(0)
    runtime = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    print(
        f"{properties.name}, {properties.multi_processor_count} multiprocessors, {runtime}, Triton {state['triton']}\n"
        "report: these lines and the table, or the file of --json, in an issue; every number is welcome"
    )
    return [*measure_times("cuda", GPU_SHAPES), *measure_errors("cuda", 64, 50)]


def measure_times(device: str, shapes: Sequence[Shape]) -> list[Measurement]:
    """Compare forward and backward pass of an LRCU with an LSTM's and the plain loop's, at several shapes."""
    measurements = []
    for name, batch, steps, inputs, units, lstm_units in shapes:
        what = f"LRCU-S {units}, {name} ({batch}, {steps}, {inputs}), forward + backward"
        x = torch.rand(batch, steps, inputs, device=device)
        fused, plain = (
            lrcnet.LRCU(inputs, units, batch_first=True, device=device, backend=backend)
            for backend in ("fused", "reference")
        )
        lstm = torch.nn.LSTM(inputs, lstm_units, batch_first=True, device=device)
        calls = [_wait_after(training_step(layer, x), device) for layer in (fused, lstm)]
        ours, theirs = (time * 1e3 for time in medians_in_turn(*calls))
        # The plain loop takes so long that few repetitions must do.
        (loop,) = (time * 1e3 for time in medians_in_turn(_wait_after(training_step(plain, x), device), repeats=3))
        measurements += [
            Measurement(what, ours, "ms", f"LSTM {lstm_units}", theirs, ours / theirs),
            Measurement(what, ours, "ms", "plain loop", loop, loop / ours),
        ]
    return measurements


def _wait_after(call: Callable[[], None], device: str) -> Callable[[], None]:
    """Return the call with a wait for the GPU at its end: without it, only the launches would be timed."""

    def run() -> None:
        call()
        if device == "cuda":
            torch.cuda.synchronize()

    return run


def measure_errors(device: str, units: int, steps: int) -> list[Measurement]:
    """Compare the float32 errors of kernel and plain loop, states and gradients, against the float64 loop."""
    torch.manual_seed(0)
    x = torch.randn(16, steps, 8, device=device)
    truth_layer = lrcnet.LRCU(8, units, batch_first=True, device=device, dtype=torch.float64, backend="reference")
    layers = [lrcnet.LRCU(8, units, batch_first=True, device=device, backend=name) for name in ("fused", "reference")]
    for layer in (truth_layer, layers[1]):
        layer.load_state_dict(layers[0].state_dict())
    truth = _states_and_gradients(truth_layer, x.double())
    errors = []
    for layer in layers:
        found = _states_and_gradients(layer, x)
        errors.append([float((one - other).norm() / other.norm()) for one, other in zip(found, truth, strict=True)])
    return [
        Measurement(f"LRCU-S {units}, {what}, error", ours, "", "plain loop", plain, ours / plain, MOST_ERROR[what])
        for what, ours, plain in zip(MOST_ERROR, *errors, strict=True)
    ]


def _states_and_gradients(layer: torch.nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states and all gradients of the parameters in one tensor, in float64."""
    states = layer(x)[0]
    gradients = torch.autograd.grad(states.square().sum(), list(layer.parameters()))
    return states.detach().double(), torch.cat([gradient.flatten().double() for gradient in gradients])
