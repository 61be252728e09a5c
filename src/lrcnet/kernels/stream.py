"""One step of a stream without gradients, straight into the compiled library: torch's dispatcher would cost more."""

import torch
from torch import Tensor

from lrcnet.kernels import native
from lrcnet.kernels.operators import ELASTANCES, NEGATIVE_ADVICE, SOLVERS

_elastance = {name: index for index, name in enumerate(ELASTANCES)}
_solver = {name: index for index, name in enumerate(SOLVERS)}


def step(
    x: Tensor,
    h: Tensor,
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
    negative_dt: str,
) -> Tensor:
    """The state (B, m) after one input x (B, n) from h (B, m), dt a number or (B,); no gradient is recorded.

    The other arguments are those of `scan`. Meant for few samples; for many, `scan` over one step shares their weights.

    Raises:
        ValueError: for a negative dt, naming the sample; for a wrong shape, dtype or a gap in a parameter's memory.
    """
    batch, inputs = x.shape
    units = g_l.shape[0]
    rows = inputs + units
    dtype = x.dtype
    addresses = []
    for tensor, size in (
        (a, rows * units),
        (b, rows * units),
        (g, rows * units),
        (k, rows * units),
        (g_l, units),
        (e_l, units),
        (o, rows * units),
        (p, units),
        (k_eps, units),
        (input_scale, inputs),
        (input_shift, inputs),
        (h, batch * units),
    ):
        if tensor is None:
            addresses.append(0)
        elif tensor.numel() == size and tensor.dtype is dtype and tensor.is_contiguous():
            addresses.append(tensor.data_ptr())
        else:
            raise ValueError(
                f"every tensor of a step must be contiguous, {dtype} and of the size its letter implies, but one has "
                f"shape {tuple(tensor.shape)} and {tensor.dtype}; use scan for anything else"
            )
    if (o is None) is not (elastance == "none") or (k_eps is None) is not (elastance != "symmetric"):
        raise ValueError(f"o and k_eps must be given as elastance={elastance!r} implies")
    if (dtype is not torch.float32 and dtype is not torch.float64) or not x.is_cpu:
        raise ValueError(f"a fused step computes in float32 or float64 on the CPU, but x is {dtype} on {x.device}")
    step_address, step_stride, step_value = 0, 0, 1.0
    if isinstance(dt, Tensor):
        if dt.dtype is not dtype or dt.shape not in ((), (batch,)):
            raise ValueError(f"dt must be a number or have shape {(batch,)} and {dtype}, but has {tuple(dt.shape)}")
        step_address, step_stride = dt.data_ptr(), dt.stride(0) if dt.dim() else 0
        if negative_dt == "error" and bool((dt < 0).any()):
            sample = int((dt.expand(batch) < 0).nonzero()[0])
            raise ValueError(
                f"dt must be >= 0, but dt[sample={sample}] is {dt.expand(batch)[sample]:g}; {NEGATIVE_ADVICE}"
            )
    else:
        step_value = dt
        if dt < 0 and negative_dt == "error":
            raise ValueError(f"dt must be >= 0, but is {dt:g}; {NEGATIVE_ADVICE}")
    out = torch.empty_like(h)
    stride = x.stride()
    native.call("step")(
        dtype is torch.float64,
        saturated,
        _elastance[elastance],
        _solver[solver],
        unfolds,
        inputs,
        units,
        *addresses[:-1],
        batch,
        x.data_ptr(),
        stride[0],
        stride[1],
        addresses[-1],
        step_address,
        step_stride,
        step_value,
        out.data_ptr(),
    )
    return out
