"""Whole sequences by the fused operator, and when it can serve.

Axes: T time, B batch, n inputs, m hidden units.
"""

import torch
from torch import Tensor

from lrcnet.kernels import native
from lrcnet.kernels.arguments import SOLVERS
from lrcnet.kernels.operators import DTYPES, run


def reasons(x: Tensor, *, solver: str) -> list[str]:
    """Why the fused kernel cannot serve this call; empty if it can."""
    missing = native.unavailable()
    found = [] if missing is None else [missing]
    if x.device.type != "cpu":
        found.append(f"it runs on the CPU, but x is on {x.device}")
    if x.dtype not in DTYPES:
        found.append(f"it computes in float32 or float64, but x is {x.dtype}")
    if solver not in SOLVERS:
        found.append(f"it knows the solvers {', '.join(SOLVERS)}, but the solver is {solver}")
    # While torch.compile traces, neither of these can be asked, and the operator is opaque to it anyway.
    if not torch.compiler.is_compiling():
        if torch._C._functorch.peek_interpreter_stack() is not None:
            found.append("torch.func transforms need the plain loop")
        if torch.autograd.forward_ad._current_level >= 0:
            found.append("forward-mode derivatives need the plain loop")
    return found


def scan(
    x: Tensor,
    h0: Tensor | None,
    dt: float | Tensor,
    *,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    k: Tensor,
    g_l: Tensor,
    e_l: Tensor,
    o: Tensor | None,
    p: Tensor | None,
    k_eps: Tensor | None,
    input_scale: Tensor | None,
    input_shift: Tensor | None,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    negative_dt: str,
) -> Tensor:
    """All states of a batch of sequences, as one operator with gradients for every tensor.

    Args:
        x: (T, B, n), or (B, T, n) if batch_first; any strides.
        h0: (B, m); zeros if None.
        dt: a number, or a tensor laid out as x without channels; a 0-dimensional one gets no gradient.
        a, b, g, k, o: (m + n, m), the states' rows first. o may be None without elastance.
        g_l, e_l, p, k_eps: (m). p may be None, k_eps without symmetric elastance.
        input_scale, input_shift: (n), or None.
        saturated: F, U = sigmoid, tanh instead of the identity.
        elastance: "none", "asymmetric" or "symmetric".
        solver: "euler", "hybrid" or "exponential".
        unfolds: K, solver steps per input.
        negative_dt: "error" or "allow".

    Returns:
        The states after every input, (T, B, m) or (B, T, m), contiguous.

    Raises:
        ValueError: for a negative dt, naming the first one; for a wrong shape or dtype.
    """
    step = dt.detach().expand(x.shape[:2]) if isinstance(dt, Tensor) and dt.dim() == 0 else dt
    parameters = (a, b, g, k, g_l, e_l, o, p, k_eps, input_scale, input_shift)
    tensors = (x, h0, step if isinstance(step, Tensor) else None, *parameters)
    keep = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    states, _ = run(
        *tensors,
        1.0 if isinstance(step, Tensor) else float(step),
        saturated,
        elastance,
        solver,
        unfolds,
        batch_first,
        negative_dt == "error",
        keep,
    )
    return states
