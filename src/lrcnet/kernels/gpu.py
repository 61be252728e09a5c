"""The backend on Triton's kernels, for NVIDIA's and AMD's GPUs: whole sequences, single steps and derivatives."""

import importlib.metadata
import importlib.util
from typing import Any

import torch
from torch import Tensor

from lrcnet.circuit import Switches
from lrcnet.kernels.operator_backend import OperatorBackend, limits_of_the_operator
from lrcnet.kernels.triton.sizes import MOST_UNITS

_MISSING = "Triton is not installed; run `pip install 'lrcnet[gpu]'`"


class TritonBackend(OperatorBackend):
    """The kernels of triton/.

    Args:
        device: the type of the tensors that it serves; ROCm's is "cuda" too.
    """

    name = "triton"

    def __init__(self, device: str = "cuda") -> None:
        self.device = device

    def reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
        reasons = [] if _triton_found() else [_MISSING]
        if x.device.type != self.device:
            reasons.append(f"it runs on CUDA and ROCm devices, but x is on {x.device}")
        if units > MOST_UNITS:
            reasons.append(f"it has at most {MOST_UNITS} hidden units, but the network has {units}")
        return reasons + limits_of_the_operator(x, switches)


def _triton_found() -> bool:
    return importlib.util.find_spec("triton") is not None


def gpu_info() -> dict[str, Any]:
    """Return the state of the GPU's kernels: whether they can run, and if not the reason; the versions and devices."""
    found = _triton_found()
    reason = None if found else _MISSING
    if not torch.cuda.is_available():
        reason = "torch sees no CUDA or ROCm device" if found else f"torch sees no CUDA or ROCm device, and {_MISSING}"
    return {
        "usable": reason is None,
        "reason": reason,
        "triton": importlib.metadata.version("triton") if found else None,
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }
