"""The loops over time of MGU and of the paper's GRU in the compiled library.

Axes: T time, B batch, m hidden units, G gates.
"""

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet.kernels import native
from lrcnet.kernels.native_diagonal import fill_up
from lrcnet.tracing import resolve

# A thread with fewer samples than this would load each weight too often.
_FEWEST_SAMPLES = 4


def serves(h: Tensor) -> bool:
    """Return whether `run_forward` and `run_backward` can be called for states h (B, m)."""
    ordinary = h.is_cpu and h.dtype in (torch.float32, torch.float64)
    return ordinary and h.numel() > 0 and native.unavailable() is None


def run_forward(gates: Tensor, candidates: Tensor, h: Tensor, weight_hh: Tensor, states: Tensor) -> None:
    """Fill the states (T, B, m) after h (B, m), and turn sums of the inputs into the values of gates and candidates.

    Args:
        gates, candidates: (T, B, G m) and (T, B, m), contiguous.
        weight_hh: ((G + 1) m, m), the gates' rows first.
        states: with units side by side in memory.
    """
    planes = _planes(weight_hh)
    turned = functional.pad(planes.transpose(1, 2), (0, _padding(h))).transpose(0, 1).contiguous()
    start = resolve(h).contiguous()
    _call(gates, candidates, turned, start, states, None, None, None, None)


def run_backward(
    gates: Tensor, candidates: Tensor, weight_hh: Tensor, before: Tensor, grad: Tensor, of_arguments: Tensor, g: Tensor
) -> None:
    """Fill the gradients of all arguments, and take g (B, m) from the state after the steps to that before them.

    Args:
        gates, candidates, weight_hh: as of `run_forward`, and after it.
        before: (T, B, m), the states before each step.
        grad: (T, B, m), the gradient of the states.
        of_arguments: (planes, T, B, m) of contiguous planes: of the candidate, then of the gates.
    """
    planes = _planes(weight_hh)
    # The candidate's rows first, as the planes of the gradients.
    turned = functional.pad(torch.cat([planes[-1:], planes[:-1]]), (0, _padding(g))).contiguous()
    # A hook on saved tensors may return equal numbers with other strides.
    kept = [resolve(values).contiguous() for values in (gates, candidates)]
    _call(kept[0], kept[1], turned, None, None, before, grad, of_arguments, g)


def _planes(weight_hh: Tensor) -> Tensor:
    m = weight_hh.shape[1]
    return resolve(weight_hh.detach()).reshape(-1, m, m)


def _padding(h: Tensor) -> int:
    return fill_up(h.shape[1]) - h.shape[1]


def _call(
    gates: Tensor,
    candidates: Tensor,
    weights: Tensor,
    start: Tensor | None,
    states: Tensor | None,
    before: Tensor | None,
    grad: Tensor | None,
    of_arguments: Tensor | None,
    g: Tensor | None,
) -> None:
    """Call the compiled loops, those of the backward pass if there is a gradient of the states."""
    steps, batch, m = candidates.shape
    count, width = gates.shape[2] // m, fill_up(m)
    scratch = candidates.new_empty(batch, count + 3, width)
    # Kept by names until the call returns: the library only gets addresses.
    before, grad = (None if values is None else _side_by_side(values) for values in (before, grad))
    native.call("gated")(
        candidates.dtype is torch.float64,
        max(1, min(torch.get_num_threads(), batch // _FEWEST_SAMPLES)),
        *(count, steps, batch, m, width),
        *(weights.data_ptr(), gates.data_ptr(), candidates.data_ptr(), scratch.data_ptr()),
        _address(start),
        *(number for values in (states, before, grad) for number in (_address(values), *_strides(values))),
        *(_address(of_arguments), 0 if of_arguments is None else of_arguments.stride(0), _address(g)),
    )


def _side_by_side(values: Tensor) -> Tensor:
    """Return a tensor whose units lie side by side in memory."""
    values = resolve(values)
    return values if values.stride(2) == 1 or values.shape[2] == 1 else values.contiguous()


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _strides(tensor: Tensor | None) -> tuple[int, int]:
    return (0, 0) if tensor is None else (tensor.stride(0), tensor.stride(1))
