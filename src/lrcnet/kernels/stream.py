"""One step of a stream without gradients, straight into the compiled library: torch's dispatcher would cost more."""

import torch
from torch import Tensor

from lrcnet.kernels import native
from lrcnet.kernels.arguments import ELASTANCES, SOLVERS
from lrcnet.kernels.operators import NEGATIVE_ADVICE

_elastance = {name: index for index, name in enumerate(ELASTANCES)}
_solver = {name: index for index, name in enumerate(SOLVERS)}
_step = None if native.unavailable() else native.call("step")


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
    if _step is None:
        raise RuntimeError(native.unavailable())
    batch, inputs = x.shape
    units = g_l.numel()
    dtype = x.dtype
    size = (inputs + units) * units
    # One by one and without a loop: this is most of what a step of one sample costs.
    sound = (
        (dtype is torch.float32 or dtype is torch.float64)
        and (x.is_cpu and h.is_cpu and a.is_cpu and b.is_cpu and g.is_cpu and k.is_cpu and g_l.is_cpu and e_l.is_cpu)
        and a.numel() == b.numel() == g.numel() == k.numel() == size
        and a.dtype is b.dtype is g.dtype is k.dtype is g_l.dtype is e_l.dtype is h.dtype is dtype
        and (a.is_contiguous() and b.is_contiguous() and g.is_contiguous() and k.is_contiguous())
        and (g_l.is_contiguous() and e_l.is_contiguous() and h.is_contiguous())
        and e_l.numel() == units
        and h.numel() == batch * units
        and _sound(o, size, dtype, elastance != "none")
        and _sound(p, units, dtype, elastance != "none" and p is not None)
        and _sound(k_eps, units, dtype, elastance == "symmetric")
        and _sound(input_scale, inputs, dtype, input_scale is not None)
        and _sound(input_shift, inputs, dtype, input_shift is not None)
    )
    if not sound:
        raise ValueError(
            f"every tensor of a step must be contiguous, on the CPU, {dtype} (float32 or float64) and of the size its "
            f"letter implies, and o, p, k_eps must be there as elastance={elastance!r} says; use scan for anything else"
        )
    step_address, step_stride, step_value = 0, 0, 1.0
    if isinstance(dt, Tensor):
        if dt.dtype is not dtype or dt.shape not in ((), (batch,)) or not dt.is_cpu:
            raise ValueError(
                f"dt must be a number or have shape {(batch,)} and {dtype}, on the CPU, but has {tuple(dt.shape)}, "
                f"{dt.dtype}, on {dt.device}"
            )
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
    _step(
        dtype is torch.float64,
        saturated,
        _elastance[elastance],
        _solver[solver],
        unfolds,
        inputs,
        units,
        a.data_ptr(),
        b.data_ptr(),
        g.data_ptr(),
        k.data_ptr(),
        g_l.data_ptr(),
        e_l.data_ptr(),
        0 if o is None else o.data_ptr(),
        0 if p is None else p.data_ptr(),
        0 if k_eps is None else k_eps.data_ptr(),
        0 if input_scale is None else input_scale.data_ptr(),
        0 if input_shift is None else input_shift.data_ptr(),
        batch,
        x.data_ptr(),
        stride[0],
        stride[1],
        h.data_ptr(),
        step_address,
        step_stride,
        step_value,
        out.data_ptr(),
    )
    return out


def _sound(tensor: Tensor | None, size: int, dtype: torch.dtype, wanted: bool) -> bool:
    """Whether an optional tensor is there just when it is wanted, and as it must be."""
    if tensor is None or not wanted:
        return tensor is None and not wanted
    return tensor.numel() == size and tensor.dtype is dtype and tensor.is_cpu and tensor.is_contiguous()
