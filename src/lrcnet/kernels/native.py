"""The compiled library: whether it is there, and which instruction set it uses."""

import importlib
import os
from collections.abc import Callable
from typing import Any

import torch

library: Any
_error: str | None = None
try:
    # Not `from lrcnet.kernels import _native`: where there is none, that speaks of a circular import.
    library = importlib.import_module("lrcnet.kernels._native")
except ImportError as error:  # A package built without a compiler has no such module; anything else is told as it is.
    library = None
    _error = (
        "the compiled kernels are not part of this installation (no C++ compiler when it was installed); install g++ "
        "or clang++ and run `pip install --force-reinstall --no-deps lrcnet`"
        if isinstance(error, ModuleNotFoundError)
        else f"the compiled kernels cannot be loaded: {error}"
    )


def _choose() -> None:
    """Follow LRCNET_ISA, where it is set."""
    wanted = os.environ.get("LRCNET_ISA")
    if library is None or not wanted:
        return
    _, available, _, _ = library.describe()
    if not library.use(wanted):
        raise ValueError(
            f"LRCNET_ISA must be one of {', '.join(available)} on this machine, but is {wanted!r}; unset it to take "
            f"the best, {available[0]}"
        )


_choose()


def unavailable() -> str | None:
    """None if the compiled library is there, else the reason in one sentence."""
    return _error


def call(name: str) -> Callable[..., Any]:
    """A function of the compiled library.

    Raises:
        RuntimeError: where the library is missing, with the reason.
    """
    if library is None:
        raise RuntimeError(_error)
    function: Callable[..., Any] = getattr(library, name)
    return function


def info() -> dict[str, Any]:
    """The state of the fused kernels.

    Returns:
        compiled, and if not the reason; the instruction sets built, available on this machine and in use; the number of
        threads and whose they are.
    """
    if library is None:
        return {"compiled": False, "reason": _error}
    built, available, used, threads = library.describe()
    return {
        "compiled": True,
        "reason": None,
        "built": built,
        "available": available,
        "in_use": used,
        "threads": torch.get_num_threads(),
        "thread_source": threads,
    }
