"""Fused kernels of the liquid equation, behind one contract: see `lrcnet.kernels.backend`.

The plain loop of `lrcnet.cells` is the reference that every backend is measured by.
"""

import logging

import torch
from torch import Tensor

from lrcnet.circuit import Switches
from lrcnet.kernels.backend import Backend, KeptGates, Network
from lrcnet.kernels.cpu import CPUBackend
from lrcnet.kernels.gpu import TritonBackend, gpu_info
from lrcnet.kernels.native import info, unavailable
from lrcnet.tracing import compiling, forward_mode_active, transform_active

BACKENDS: list[Backend] = [CPUBackend(), TritonBackend()]
"""Every backend, the preferred one first."""

CHOICES = ("auto", "fused", "reference")
"""The values of the option `backend` of cells and layers."""

__all__ = [
    "BACKENDS",
    "CHOICES",
    "Backend",
    "KeptGates",
    "Network",
    "find",
    "find_for_step",
    "gpu_info",
    "info",
    "reasons",
    "select",
    "unavailable",
]

_log = logging.getLogger("lrcnet")
_logged: set[str] = set()


def find(x: Tensor, switches: Switches, units: int, *, diagonal: bool = False) -> Backend | None:
    """Return the first backend that serves a call, or None if none does."""
    for backend in BACKENDS:
        if not (backend.diagonal_reasons if diagonal else backend.reasons)(x, switches, units):
            return backend
    return None


def find_for_step(network: Network, x: Tensor, units: int) -> Backend | None:
    """Return the backend for a step of a stream as `find` does, from the network's memory if it has served before."""
    memory = network.memory
    if memory is None or not x.is_cpu or compiling() or transform_active() or forward_mode_active():
        return find(x, network.switches, units)
    known: tuple[torch.dtype, Switches, Backend | None] | None = memory.get("backend")
    if known is None or known[0] is not x.dtype or known[1] is not network.switches:
        known = memory["backend"] = x.dtype, network.switches, find(x, network.switches, units)
    return known[2]


def select(
    choice: str, x: Tensor, switches: Switches, units: int, owner: str, *, diagonal: bool = False
) -> Backend | None:
    """Return the backend for a call of a model, or None for the plain loop.

    Args:
        choice: "auto", "fused" or "reference".
        x: the input of the call.
        units: m.
        owner: the name of the model, for the message.
        diagonal: whether the call is for `scan_diagonal`.

    Raises:
        RuntimeError: if choice is "fused" and no backend serves, with every reason of every backend.
    """
    if choice == "reference":
        return None
    backend = find(x, switches, units, diagonal=diagonal)
    if backend is not None:
        return backend
    why = "; ".join(reasons(x, switches, units, diagonal=diagonal))
    if choice == "fused":
        raise RuntimeError(f"backend='fused' cannot serve this call: {why}; use backend='auto' or 'reference'")
    # A backend is never switched in silence, and each reason is logged once.
    if why not in _logged:
        _logged.add(why)
        _log.warning("no fused kernel can serve %s, so the plain loop runs: %s", owner, why)
    return None


def reasons(x: Tensor, switches: Switches, units: int, *, diagonal: bool = False) -> list[str]:
    """Return why each backend cannot serve a call, with its name; empty if one can."""
    refusals = {
        backend.name: (backend.diagonal_reasons if diagonal else backend.reasons)(x, switches, units)
        for backend in BACKENDS
    }
    if not all(refusals.values()):
        return []
    return [f"{name}: {reason}" for name, found in refusals.items() for reason in found]
