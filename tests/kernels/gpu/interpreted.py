"""A process whose fused kernels are Triton's, interpreted on CPU tensors: for TRITON_INTERPRET=1, read at import."""

import os
from typing import Any

import numpy as np

from lrcnet import kernels
from lrcnet.kernels import Backend, diagonal, operators
from lrcnet.kernels.gpu import TritonBackend

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def use_interpreted_kernels() -> Backend:
    """Let every fused call of this process run Triton's kernels; returns their backend."""
    _patch_the_language_once()
    # A GPU does not warn where an exponential overflows, as it is meant to; NumPy would.
    np.seterr(all="ignore")
    operators.IMPLEMENTATIONS["cpu"] = operators.IMPLEMENTATIONS["cuda"]
    diagonal.IMPLEMENTATIONS["cpu"] = diagonal.IMPLEMENTATIONS["cuda"]
    kernels.BACKENDS[:] = [TritonBackend("cpu")]
    return kernels.BACKENDS[0]


class _Kept:
    def restore(self) -> None:
        """Leave the language as it is."""


def _patch_the_language_once() -> None:
    """Make Triton's interpreter about ten times as fast, and able to count with NumPy 2.4.

    It replaces the functions of the language before every call of a function on the GPU and puts them back after each
    kernel. And it takes int() of an array of one number for the bound of a loop, which NumPy 2.4 refuses.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    patch: Any = interpreter._patch_lang
    patched: set[int] = set()

    def patch_once(function: Any) -> _Kept:
        if id(function.__globals__) not in patched:
            patched.add(id(function.__globals__))
            patch(function)
            tl.core.tensor.__index__ = lambda tensor: tensor.handle.data.item()
        return _Kept()

    interpreter._patch_lang = patch_once
