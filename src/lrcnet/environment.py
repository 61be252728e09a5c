"""What this installation can do here, and why not more."""

import platform
from typing import Any

import torch

from lrcnet import kernels
from lrcnet.version import __version__


def info() -> dict[str, Any]:
    """Versions, threads, and the state of the fused kernels: what is compiled, what is used, and why not.

    >>> sorted(lrcnet.info())
    ['kernels', 'lrcnet', 'machine', 'python', 'threads', 'torch']
    """
    return {
        "lrcnet": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "kernels": kernels.info(),
    }
