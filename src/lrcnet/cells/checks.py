"""Checks of the arguments of a cell: states and gaps between readings."""

import math
from numbers import Real

import numpy as np
from torch import Tensor

from lrcnet.errors import describe_bad_dt, describe_kind
from lrcnet.value_checks import refuse_bad_gaps, refuse_freed


def describe_state(what: str, shape: tuple[int, ...], given: object) -> str:
    """Return the sentence for a state that is no tensor, such as an LSTM's pair (h, c)."""
    pair = "; there is no cell state c, pass h alone" if isinstance(given, tuple | list) else ""
    return f"{what} must be a tensor of shape {shape}, but is a {type(given).__name__}{pair}"


def check_like(owner: str, what: str, given: Tensor, like: Tensor) -> None:
    """Raise unless a tensor has the dtype and device that a module computes in, and its numbers in memory."""
    if given.dtype != like.dtype:
        raise ValueError(
            f"{owner} computes in {like.dtype}, but {what} is {given.dtype}; convert one of them, e.g. "
            f"{what}.to({like.dtype})"
        )
    if given.device != like.device:
        raise ValueError(f"{owner} is on {like.device}, but {what} is on {given.device}; move one of them")
    refuse_freed(what, given)


def read_number(given: object) -> float | None:
    """Return a number of Python or NumPy, a 0-dimensional array too, as a float; None for anything else."""
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given.item()
    # NumPy registers its scalars as Real.
    return float(given) if isinstance(given, Real) and not isinstance(given, bool) else None


def check_number(what: str, given: object, negative: str) -> float:
    """Return a dt given as one number, with the rule for negative values applied."""
    number = read_number(given)
    if number is None:
        raise TypeError(f"{what} must be None, a number or a tensor, but is {describe_kind(given)}; pass one of these")
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, but is {given}; pass the elapsed time before the input")
    if number < 0 and negative == "error":
        raise ValueError(describe_bad_dt("", number))
    return max(number, 0.0) if negative == "clamp" else number


def check_gaps(dt: Tensor, negative: str) -> Tensor:
    """Return a dt tensor, (T, B) or (B,), with the rule for negative values applied.

    Raises:
        ValueError: for a NaN, or for a negative value if that is the rule; the message names the first one.
    """
    refuse_bad_gaps(dt, check_sign=negative == "error")
    return dt.clamp(min=0) if negative == "clamp" else dt
