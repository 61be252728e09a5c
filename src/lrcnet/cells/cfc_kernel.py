"""The loops over time of a CfC in the compiled library, for the networks that it serves.

Axes: T time, B batch, m hidden units.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lrcnet.cells.cfc_equation import Form
from lrcnet.circuit import describe_mismatch
from lrcnet.kernels import native
from lrcnet.tracing import resolve
from lrcnet.value_checks import refuse_freed

# The widest vector of float32; every width has to be a multiple of it.
_VECTOR = 16
_MOST_LAYERS = 8
# A thread with fewer samples than this would load each weight too often.
_FEWEST_SAMPLES = 4


def serves(form: Form, sums: Sequence[Tensor], h: Tensor) -> bool:
    """Return whether `run_forward` and `run_backward` can be called for layers with these sums, and states h (B, m)."""
    widths = [h.shape[1], *(values.shape[2] for values in sums)]
    return (
        native.unavailable() is None
        and form.mode != "pure"
        and (len(sums) == 1 or form.activation.function is torch.tanh)
        and len(sums) <= _MOST_LAYERS
        and h.is_cpu
        and h.dtype in (torch.float32, torch.float64)
        and len(h) > 0
        and all(width % _VECTOR == 0 for width in widths)
    )


def run_forward(
    form: Form,
    weights: Sequence[Tensor],
    offsets: Sequence[Tensor | None],
    sums: Sequence[Tensor],
    half_states: Tensor,
    dt: Tensor | None,
) -> None:
    """Fill half the states (T + 1, B, m) after the first, and the sums (T, B, width) of all layers.

    Args:
        weights: from the state to the first layer, then from each layer to the next, (outputs, inputs).
        offsets: of every layer; that of the first one is ignored, because its sums contain it.
        sums: those of the first layer have the contribution of the inputs.
        dt: (T, B), or None if the weights contain it.
    """
    h = half_states[0]
    turned = [_in_memory("a weight", weight.t(), h) for weight in weights]
    biases = [None if offset is None else _in_memory("a bias", offset, h) for offset in offsets]
    _call(form, turned, biases, sums, half_states, dt, None, [], h)


def run_backward(
    form: Form,
    weights: Sequence[Tensor],
    sums: Sequence[Tensor],
    dt: Tensor | None,
    grad: Tensor,
    of_sums: Sequence[Tensor],
    g: Tensor,
) -> None:
    """Fill the gradients of all sums (T, B, width), and take g (B, m) from the state after the steps to that before.

    Args:
        weights: as of `run_forward`, but those that gradients belong to.
        grad: gradient of the states (T, B, m).
    """
    nothing: list[Tensor | None] = [None] * len(sums)
    kept = [_in_memory("a weight", weight, g) for weight in weights]
    # A hook on saved tensors may return equal numbers with other strides.
    sums = [_in_memory("the kept sums", values, g) for values in sums]
    _call(form, kept, nothing, sums, None, dt, _in_memory("the gradient", grad, g), of_sums, g)


def _call(
    form: Form,
    weights: Sequence[Tensor],
    offsets: Sequence[Tensor | None],
    sums: Sequence[Tensor],
    half_states: Tensor | None,
    dt: Tensor | None,
    of_states: Tensor | None,
    of_sums: Sequence[Tensor],
    start: Tensor,
) -> None:
    """Call the compiled loops, those of the backward pass if there is a gradient of the states."""
    steps, (batch, m) = len(sums[0]), start.shape
    # Kept by a name until the call returns: the library only gets addresses.
    gaps = None if dt is None else _in_memory("dt", dt, start)
    layers: list[int] = []
    for i, (values, weight, offset) in enumerate(zip(sums, weights, offsets, strict=True)):
        to = of_sums[i] if of_sums else None
        layers += [values.shape[2], weight.data_ptr(), _address(offset), values.data_ptr(), _address(to)]
    native.call("cfc")(
        start.dtype is torch.float64,
        max(1, min(torch.get_num_threads(), batch // _FEWEST_SAMPLES)),
        form.mode == "default",
        *(steps, batch, m, _address(half_states), _address(gaps), _address(of_states)),
        *((0, 0) if of_states is None else of_states.stride()[:2]),
        *(start.data_ptr(), len(sums), *layers),
    )


def _in_memory(name: str, tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor as contiguous memory that holds its numbers.

    Raises:
        ValueError: if it has another dtype or device than `like`, or no memory.
    """
    if tensor.dtype is not like.dtype or tensor.device != like.device:
        raise ValueError(describe_mismatch(name, tensor, tuple(tensor.shape), like))
    tensor = resolve(tensor).contiguous()
    refuse_freed(name, tensor)
    return tensor


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
