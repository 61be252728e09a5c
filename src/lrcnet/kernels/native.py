"""The compiled library: whether it is installed, and which instruction set it uses."""

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

# Written by setup.py where it builds no module.
_NOTE = Path(__file__).with_name("_native_missing.txt")


def _missing() -> str:
    """Return the reason that the build left for a missing module."""
    if _NOTE.is_file():
        return _NOTE.read_text(encoding="utf-8")
    return "the compiled kernels are not part of this installation (its sources were not built); run `pip install .`"


library: Any
_error: str | None = None
try:
    # Not `from lrcnet.kernels import _native`: without the module, that error speaks of a circular import.
    library = importlib.import_module("lrcnet.kernels._native")
except ImportError as error:  # Only a missing module has a note; any other ImportError is reported verbatim.
    library = None
    _error = _missing() if isinstance(error, ModuleNotFoundError) else f"the compiled kernels cannot be loaded: {error}"


def _choose_instruction_set() -> None:
    """Use the instruction set that LRCNET_ISA names, if it is set."""
    wanted = os.environ.get("LRCNET_ISA")
    if library is None or not wanted:
        return
    _, available, _, _ = library.describe()
    if not library.use(wanted):
        raise ValueError(
            f"LRCNET_ISA must be one of {', '.join(available)} on this machine, but is {wanted!r}; unset it to take "
            f"the best, {available[0]}"
        )


_choose_instruction_set()


def unavailable() -> str | None:
    """Return None if the compiled library is installed, else the reason why not in one sentence."""
    return _error


def call(name: str) -> Callable[..., Any]:
    """Return a function of the compiled library.

    Raises:
        RuntimeError: if the library is missing, with the reason.
    """
    if library is None:
        raise RuntimeError(_error)
    function: Callable[..., Any] = getattr(library, name)
    return function


def info() -> dict[str, Any]:
    """Return the state of the fused kernels.

    Returns:
        Whether the kernels are compiled, and if not the reason; the instruction sets that are built, available on this
        machine and in use; the number of threads and where they come from.
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
