"""The series that an estimator is given (an array, a list of arrays or a long table) in one form.

Axes: T_i readings of series i, n channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lrcnet.data import (
    Array,
    Floats,
    as_times,
    column_of,
    group_rows,
    increasing,
    is_beyond_float32,
    read_numbers,
    read_times,
    real_numbers,
)


@dataclass(frozen=True)
class Series:
    """Series of unequal length.

    Attributes:
        values: (T_i, n) each, NaN where a value is missing.
        times: (T_i,) each, increasing; None if readings are evenly spaced.
        rows: the rows of each series in the table that it came from; None if it came from arrays.
    """

    values: list[Floats]
    times: list[Floats] | None = None
    rows: list[Array] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def channels(self) -> int:
        """The number n of channels."""
        return int(self.values[0].shape[1])

    @property
    def has_missing(self) -> bool:
        """Whether any value is missing."""
        return any(bool(np.isnan(one).any()) for one in self.values)

    def gaps(self) -> list[Floats] | None:
        """Return the gap before each reading, 0 before the first; None if readings are evenly spaced."""
        return None if self.times is None else [np.diff(one, prepend=one[:1]) for one in self.times]

    def take(self, chosen: Sequence[int] | Array) -> Series:
        """Return some of the series."""

        def some(parts: list[Any] | None) -> Any:
            return None if parts is None else [parts[i] for i in chosen]

        return Series(some(self.values), some(self.times), some(self.rows))

    def cut(self, window: int) -> tuple[Series, list[tuple[int, slice]]]:
        """Cut every series into windows; return them, and the series and the readings that each came from."""
        places = [
            (i, slice(start, start + window))
            for i, one in enumerate(self.values)
            for start in range(0, len(one), window)
        ]
        times = self.times
        cut_times = None if times is None else [times[i][part] for i, part in places]
        return Series([self.values[i][part] for i, part in places], cut_times), places


def from_arrays(x: Any, times: Any = None) -> Series:
    """Read an array (series, time, channels), or a list of arrays (time, channels) or (time,).

    Args:
        x: the values; NaN stands for a missing one.
        times: the time of each reading, numbers or dates: an array (series, time), or a list of arrays (time,).

    Raises:
        ValueError: for wrong shapes, infinite values, or times that do not increase.
    """
    series = [_values(one, i) for i, one in enumerate(x)]
    if not series:
        raise ValueError("there must be at least one series, but there is none; pass some")
    widths = {one.shape[1] for one in series}
    if len(widths) > 1:
        raise ValueError(f"all series must have the same channels, but some have {sorted(widths)}; make them alike")
    return Series(series, None if times is None else _read_all_times(times, series))


def from_table(
    frame: Any, id: str, time: str | None, channels: Sequence[str] | None, leave_out: Sequence[str]
) -> Series:
    """Read a long table, one row per reading.

    Args:
        frame: a DataFrame or a dictionary of columns.
        id: the column of series.
        time: the column of times; None if readings are evenly spaced, in the order of the rows.
        channels: the columns of values; None means all others.
        leave_out: columns that are no channels.
    """
    rows = group_rows(frame, id)
    names = getattr(frame, "columns", frame)
    chosen = [str(name) for name in names if name not in (id, time, *leave_out)] if channels is None else list(channels)
    if not chosen:
        raise ValueError(f"the table must have a column of values beside {id!r} and {time!r}, but has none; add one")
    values = np.stack([read_numbers(frame, name) for name in chosen], -1)
    if time is None:
        return Series([values[one] for one in rows], None, rows)
    times = read_times(frame, time)
    for one in rows:
        increasing(times, one, time)
    return Series([values[one] for one in rows], [times[one] for one in rows], rows)


def targets_from_table(frame: Any, target: str, series: Series, per_reading: bool) -> list[Any]:
    """Return the targets of a long table: one per series, or one array per series."""
    column = column_of(frame, target)
    assert series.rows is not None
    if per_reading:
        return [column[rows] for rows in series.rows]
    for rows in series.rows:
        other = np.flatnonzero(column[rows] != column[rows[0]])
        if len(other):
            raise ValueError(
                f"column {target!r} must be the same in all rows of a series, but rows {int(rows[0]) + 1} and "
                f"{int(rows[other[0]]) + 1} differ; pass per_reading=True if each reading has its own"
            )
    return [column[rows[0]] for rows in series.rows]


def _values(one: Any, place: int) -> Floats:
    try:
        values = real_numbers(one)
    except (TypeError, ValueError) as error:
        raise ValueError(f"series must hold numbers, but series {place} does not ({error}); convert it") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise ValueError(
            f"a series must be an array (time, channels) with at least one reading, but series {place} has shape "
            f"{np.shape(one)}; reshape or leave it out"
        )
    beyond = is_beyond_float32(values)
    if beyond.any():
        t, channel = (int(axis[0]) for axis in np.nonzero(beyond))
        value = values[t, channel]
        kind = "an infinite value" if np.isinf(value) else f"{value:g}, which float32 does not have,"
        raise ValueError(
            f"series must be finite, or NaN where a value is missing, but series {place} has {kind} at reading {t} of "
            f"channel {channel}; replace it"
        )
    return values


def _read_all_times(times: Any, series: list[Floats]) -> list[Floats]:
    if len(times) != len(series):
        raise ValueError(f"times must be given for each of {len(series)} series, but for {len(times)}; pass all")
    read = []
    for i, (one, values) in enumerate(zip(times, series, strict=True)):
        moments = as_times(np.asarray(one), f"times of series {i}")
        if moments.shape != values.shape[:1]:
            raise ValueError(
                f"there must be one time per reading, but series {i} has {len(values)} readings and times of shape "
                f"{moments.shape}; pass as many"
            )
        increasing(moments, np.arange(len(moments)), f"the times of series {i}", table=False)
        read.append(moments)
    return read
