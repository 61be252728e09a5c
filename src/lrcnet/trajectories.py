"""Trajectories of a user, cut into windows that a Neural ODE can be trained on all at once.

A long roll-out of an untrained field soon has nothing to do with the data, and its gradients explode. Short windows
that each start at a reading do not have this problem.

Axes: N times, B windows, d state dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lrcnet.data import Array, Floats, as_times, increasing, real_numbers
from lrcnet.errors import check_kind, describe_kind, positive_size


@dataclass(frozen=True)
class Trajectories:
    """Trajectories of one system: times[i] (N_i,), increasing, and values[i] (N_i, d), NaN where missing."""

    times: list[Floats]
    values: list[Floats]

    @property
    def size(self) -> int:
        """The number d of state dimensions."""
        return int(self.values[0].shape[1])


@dataclass(frozen=True)
class Windows:
    """Pieces of trajectories: times (N, B), values (N, B, d) with NaN where missing or beyond the end."""

    times: Tensor
    values: Tensor

    @property
    def starts(self) -> Tensor:
        """The first state (B, d) of each window."""
        return self.values[0]


def read_trajectories(times: Any, values: Any) -> Trajectories:
    """Read one trajectory or several.

    Args:
        times: (N,) for all trajectories, or one array per trajectory; numbers or dates.
        values: (N, d), (trajectories, N, d), or a list of arrays (N_i, d); NaN stands for a missing reading.

    Raises:
        ValueError: for wrong shapes, infinite values, or times that repeat or run backwards.
    """
    if not isinstance(values, list | tuple):
        whole = _as_numbers("values", values)
        if whole.ndim not in (2, 3):
            raise ValueError(
                f"values must be (times, state) or (trajectories, times, state), but have shape {whole.shape}; reshape "
                "them"
            )
        values = [whole] if whole.ndim == 2 else list(whole)
    parts = [_as_numbers("values", one) for one in values]
    try:
        several = not isinstance(times, str | Mapping) and np.ndim(np.asarray(times, dtype=object)) > 0
    except (TypeError, ValueError, RuntimeError):
        several = False
    if not several:
        raise TypeError(f"times must be an array, or one per trajectory, but are {describe_kind(times)}; pass one")
    shared = len(times) == 0 or np.ndim(times[0]) == 0
    moments = [times] * len(parts) if shared else list(times)
    if not parts or len(moments) != len(parts):
        raise ValueError(f"there must be times for each of {len(parts)} trajectories, but for {len(moments)}; pass all")
    read = []
    for i, (one, moment) in enumerate(zip(parts, moments, strict=True)):
        clock = as_times(np.asarray(moment), f"times of trajectory {i}")
        if one.ndim != 2 or parts[0].ndim != 2 or clock.shape != one.shape[:1] or one.shape[1] != parts[0].shape[1]:
            width = parts[0].shape[-1] if parts[0].ndim else "state"
            raise ValueError(
                f"a trajectory must be (times, {width}) with as many times, but trajectory {i} has shape "
                f"{one.shape} and times {clock.shape}; make them alike"
            )
        if np.isinf(one).any():
            raise ValueError(f"values must be finite, or NaN where missing, but trajectory {i} has an infinite one")
        increasing(clock, np.arange(len(clock)), f"the times of trajectory {i}", table=False)
        read.append(clock)
    return Trajectories(read, parts)


def _as_numbers(what: str, given: Any) -> Floats:
    try:
        return real_numbers(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{what} must be arrays of numbers, but are {describe_kind(given)}; convert them") from error


def cut_windows(data: Trajectories, length: int) -> Windows:
    """Cut trajectories into windows of `length` readings, each of which starts at a complete reading.

    A window's last reading is the next window's first. Windows at the end of a trajectory are filled up with NaN.

    Raises:
        ValueError: if no trajectory has a complete reading with another one after it.
    """
    check_kind("data", data, Trajectories, "the answer of read_trajectories")
    positive_size("length", length, least=2)
    times, values = [], []
    for clock, states in zip(data.times, data.values, strict=True):
        complete = np.flatnonzero(~np.isnan(states).any(1))
        start = int(complete[0]) if len(complete) else len(states)
        while start < len(states) - 1:
            stop = min(start + length, len(states))
            times.append(_extend(clock[start:stop], length))
            part = np.full((length, data.size), np.nan)
            part[: stop - start] = states[start:stop]
            if not np.isnan(part[1:]).all():
                values.append(part)
            else:
                times.pop()
            later = complete[complete >= max(stop - 1, start + 1)]
            start = int(later[0]) if len(later) else len(states)
    if not values:
        raise ValueError(
            "a trajectory must have a reading without missing values and another one after it, but none has; pass "
            "longer trajectories"
        )
    return Windows(torch.tensor(np.stack(times, 1)), torch.tensor(np.stack(values, 1)))


def _extend(clock: Array, length: int) -> Floats:
    """Continue times by their last gap up to a length."""
    gap = clock[-1] - clock[-2]
    further = clock[-1] + gap * np.arange(1, length - len(clock) + 1)
    return np.concatenate([clock, further])
