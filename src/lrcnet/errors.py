"""Errors and warnings of the library, and the argument checks that its public functions share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Commands import this file, and `lrcnet --help` does not wait for torch.
    from torch import Tensor


class DivergenceError(RuntimeError):
    """A state, a loss or a trajectory became infinite or NaN."""


class DivergenceWarning(RuntimeWarning):
    """A finite input led to a state that is infinite or NaN."""


class TimeWarning(UserWarning):
    """The gaps between readings are legal, but probably not as they were meant; `time_warnings=False` is silent."""


class StabilityWarning(TimeWarning):
    """A gap is so long that one step of an explicit solver may overshoot, so that states grow instead of decaying."""


class FirstGapWarning(TimeWarning):
    """The first gap of every sequence is 0, so that no time passes and the first reading is ignored."""


class DeadLayerWarning(UserWarning):
    """The state of a liquid layer cannot leave zero, and none of its gradients differs from zero."""


class InputRangeWarning(UserWarning):
    """The inputs of a liquid layer are so far outside the range of its synapses that nearly all are saturated."""


class UnreachableNeuronWarning(UserWarning):
    """A motor neuron of a wiring is not connected with any input, so that its output never depends on one."""


def one_of(what: str, given: str, valid: Iterable[str]) -> str:
    """Return `given` if it is one of the valid names.

    Raises:
        ValueError: if it is not; the message lists the valid names.
    """
    names = tuple(valid)
    if not isinstance(given, str) or given not in names:
        raise ValueError(f"{what} must be one of {', '.join(names)}, but is {given!r}; {suggest(given, names)}")
    return given


def suggest(given: object, valid: Iterable[str]) -> str:
    """Return the advice to take the valid name that is nearest to a wrong one, or any of them if none is near.

    Example:
        >>> suggest("lrcus", ["lstm", "lrcu-s"]), suggest("tree", ["lstm"])
        ('did you mean lrcu-s?', 'choose one of these')
    """
    import difflib

    nearest = difflib.get_close_matches(given, list(valid), n=1) if isinstance(given, str) else []
    return f"did you mean {nearest[0]}?" if nearest else "choose one of these"


def positive_size(what: str, given: int, least: int = 1) -> int:
    """Return `given` if it is a whole number of at least `least`.

    Raises:
        TypeError: if it is not an int (a bool is not one).
        ValueError: if it is too small.
    """
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"{what} must be an int, but is {given!r} of type {type(given).__name__}; pass a whole number")
    if given < least:
        raise ValueError(f"{what} must be at least {least}, but is {given}; pass a larger one")
    return given


def check_flag(what: str, given: object) -> bool:
    """Return `given` if it is True or False.

    Raises:
        TypeError: if it is anything else, such as a tensor or a number.
    """
    if not isinstance(given, bool):
        raise TypeError(f"{what} must be True or False, but is {describe_kind(given)}; pass one of them")
    return given


def check_kind(what: str, given: object, kind: type | tuple[type, ...], name: str) -> None:
    """Raise a TypeError unless an argument is of a type, which the message calls `name`."""
    if not isinstance(given, kind):
        raise TypeError(f"{what} must be {name}, but is {describe_kind(given)}; pass one")


def check_number(what: str, given: object, least: float = -math.inf, below: float = math.inf) -> float:
    """Return `given` as a float if it is a finite number from `least` to below `below`.

    Raises:
        ValueError: if it is not; the message names the limits.
    """
    number = float(given) if isinstance(given, Real) and not isinstance(given, bool) else math.nan
    if not (least <= number < below and math.isfinite(number)):
        limits = [f"at least {least:g}"] if least > -math.inf else []
        limits += [f"below {below:g}"] if below < math.inf else []
        allowed = " ".join(["a finite number", " and ".join(limits)]).strip()
        raise ValueError(f"{what} must be {allowed}, but is {describe_kind(given)}; pass one")
    return number


def check_seed(what: str, given: object) -> int:
    """Return a random seed if it is a whole number that NumPy takes, from 0 to 2**32 - 1.

    Raises:
        ValueError: if it is not.
    """
    if isinstance(given, bool) or not isinstance(given, Integral) or not 0 <= int(given) < 2**32:
        raise ValueError(f"{what} must be a whole number from 0 to 2**32 - 1, but is {describe_kind(given)}; pass one")
    return int(given)


def check_placement(device: object, dtype: object) -> None:
    """Raise unless a device and a dtype are None or what torch takes as such.

    Raises:
        TypeError: for anything else.
        ValueError: for a device that this machine does not have, or a dtype that no network computes in.
    """
    import torch

    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"dtype must be None or a torch.dtype, but is {describe_kind(dtype)}; pass e.g. torch.float32")
    if dtype is not None and not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating-point type, but is {dtype}; pass torch.float32 or torch.float64")
    if device is None or isinstance(device, torch.device):
        return
    if isinstance(device, bool) or not isinstance(device, str | int):
        raise TypeError(f"device must be None or a device, but is {describe_kind(device)}; pass e.g. 'cpu'")
    try:
        torch.device(device)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device must be one that torch knows here, but is {device!r} ({reason}); pass e.g. 'cpu'"
        ) from error


def describe_kind(given: object) -> str:
    """Return a short description of a value for a message: numbers and texts as they are, others by their type."""
    if given is None or isinstance(given, bool | int | float | str):
        return repr(given)
    return f"a {type(given).__name__}"


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that is to be written, before the work that fills it begins.

    Raises:
        ValueError: if it is a folder, or a part of it is a file.
        PermissionError: if it cannot be written.
    """
    check_kind("the file to write", path, (str, os.PathLike), "a path")
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"the file to write must not be a folder, but {target} is one; add a file name")
    nearest = target if target.exists() else next(folder for folder in target.absolute().parents if folder.exists())
    if nearest != target and not nearest.is_dir():
        raise ValueError(f"the file to write must lie in a folder, but {nearest} is a file; choose another place")
    if not os.access(nearest, os.W_OK):
        raise PermissionError(f"the file to write must be writable, but {nearest} is not; choose another place")
    return target


def is_bad_dt(value: float, check_sign: bool) -> bool:
    """Return whether a number cannot be a dt: because it is NaN, or below 0 if the sign is checked."""
    return not value >= 0 and (check_sign or math.isnan(value))


def find_bad_dt(dt: Tensor, check_sign: bool) -> Tensor:
    """Return where a tensor dt is NaN, or below 0 if the sign is checked."""
    return ~(dt >= 0) if check_sign else dt.isnan()


def describe_bad_dt(place: str, value: float) -> str:
    """Return the sentence for a dt that is NaN or below 0.

    `place` is its index, such as "[t=2, sample=1]", or "" for a number.
    """
    given = f"dt{place} is" if place else "is"
    if math.isnan(value):
        return (
            f"dt must not be NaN, but {given}; fill in the missing time (the first gap is often one: use the median "
            "gap), or drop the reading"
        )
    return (
        f"dt must be >= 0, but {given} {value:g}; sort the readings by time, or pass negative_dt='clamp' or 'allow' to "
        "the layer"
    )


def describe_divergence(t: int, sample: int) -> str:
    """Return the sentence for a state that stopped being finite."""
    return (
        f"the state stopped being finite at step {t} of sample {sample} although the input is finite; use a stable "
        "solver ('hybrid' or 'exponential'), more unfolds or a smaller dt"
    )
