"""Checks of numbers in tensors: gaps that cannot be, and states that are not finite.

Reading a number from a GPU waits until the GPU has computed it.
"""

import warnings

from torch import Tensor

from lrcnet.errors import DivergenceWarning, describe_bad_dt, describe_divergence, find_bad_dt
from lrcnet.tracing import values_are_readable


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
