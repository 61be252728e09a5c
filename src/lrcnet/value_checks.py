"""Checks of tensors: gaps that cannot be, states that are not finite, memory that is gone, and changed saved tensors.

Reading a number from a GPU waits until the GPU has computed it.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lrcnet.errors import DivergenceWarning, describe_bad_dt, describe_divergence, describe_kind, find_bad_dt
from lrcnet.tracing import is_freed, values_are_readable


def refuse_bad_gaps(dt: Tensor, *, check_sign: bool) -> None:
    """Raise a ValueError for a dt, (T, B) or (B,), that is NaN, or negative if the sign is checked.

    The message names the first one.
    """
    if not values_are_readable(dt) or bool((dt >= 0).all()):
        return
    for index in find_bad_dt(dt, check_sign).nonzero().tolist():
        names = ("t", "sample") if len(index) == 2 else ("sample",) * len(index)
        place = ", ".join(f"{name}={i}" for name, i in zip(names, index, strict=True))
        raise ValueError(describe_bad_dt(f"[{place}]" if place else "", dt[tuple(index)].item()))


def warn_if_diverged(x: Tensor, start: Tensor, dt: float | Tensor, states: Tensor) -> None:
    """Warn, naming step and sample, if finite inputs led to a state (T, B, m) that is not finite."""
    # A state that has left the finite numbers does not come back, so the last one is checked first.
    if not values_are_readable(states) or bool(states[-1].isfinite().all()):
        return
    given = [x, start, dt] if isinstance(dt, Tensor) else [x, start]
    if all(bool(tensor.isfinite().all()) for tensor in given):
        t, sample, _ = (int(i) for i in (~states.isfinite()).nonzero()[0])
        warnings.warn(describe_divergence(t, sample), DivergenceWarning, stacklevel=2)


def to_real_tensor(name: str, value: Any, like: Tensor) -> Tensor:
    """Return a number, list, array or tensor as a dense tensor of the dtype and device of `like`, without gradient.

    Raises:
        TypeError: for complex numbers, sparse tensors and anything that is no tensor.
    """
    try:
        # NumPy keeps all digits of a list; a cast of torch would drop an imaginary part.
        tensor = torch.as_tensor(value if isinstance(value, Tensor) else np.asarray(value)).detach()
        if tensor.is_complex():
            raise TypeError("complex numbers")
        tensor = tensor.to(device=like.device, dtype=like.dtype)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise TypeError(f"{name} must be a real tensor, but is {describe_kind(value)}; pass its values") from error
    if tensor.is_sparse:
        raise TypeError(f"{name} must be a dense tensor, but is sparse; call to_dense() on it")
    return tensor


def refuse_freed(name: str, tensor: Tensor) -> None:
    """Raise a ValueError if the storage of a tensor was freed: torch's own operators would read it, and crash."""
    if is_freed(tensor):
        raise ValueError(f"{name} must have its numbers in memory, but has no memory; was its storage freed?")


Form = tuple[torch.Size, torch.dtype] | None


def forms_of(tensors: Sequence[Tensor | None]) -> tuple[Form, ...]:
    """Return the shape and dtype of each tensor, for `refuse_changed`."""
    return tuple(None if tensor is None else (tensor.shape, tensor.dtype) for tensor in tensors)


def refuse_changed(saved: Sequence[Tensor | None], forms: Sequence[Form]) -> None:
    """Raise a ValueError unless saved tensors came back from hooks in the shapes and dtypes that they had."""
    for tensor, form in zip(saved, forms, strict=True):
        if tensor is None or form is None:
            continue
        if (tensor.shape, tensor.dtype) != form:
            raise ValueError(
                f"a saved tensor must be {form[1]} of shape {tuple(form[0])}, as it was, but hooks returned "
                f"{tensor.dtype} of shape {tuple(tensor.shape)}; return tensors as they were saved"
            )
        refuse_freed("a saved tensor", tensor)
