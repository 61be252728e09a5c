"""A description of this installation: versions, threads, and whether the fused kernels can run."""

import platform
from typing import Any

import torch

from lrcnet import kernels
from lrcnet.version import __version__


def info() -> dict[str, Any]:
    """Return versions, threads and the state of the fused kernels, with the reason if they cannot run.

    >>> sorted(lrcnet.info())
    ['gpu', 'kernels', 'lrcnet', 'machine', 'python', 'threads', 'torch']
    """
    return {
        "lrcnet": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
        "kernels": kernels.info(),
        "gpu": kernels.gpu_info(),
    }
