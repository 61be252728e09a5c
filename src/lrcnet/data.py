"""Readings as networks take them: a long table to padded tensors, times to gaps, and missing values filled.

Missing values (NaN) are replaced by the last value of their channel, or by 0 where there is none yet, and a mask says
which values were measured. Networks that are to know the difference take the mask as further channels.

Axes: B series, T time (the longest series), n channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lrcnet.errors import check_kind

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Array: TypeAlias = "np.ndarray[Any, Any]"
SECOND = np.timedelta64(1, "s")


class LongBatch(NamedTuple):
    """Series of a long table; the order of series is that of their first rows.

    Attributes:
        x: (B, T, n), missing values filled, padding 0.
        dt: (B, T), the time before each reading, in the unit of the table (dates: seconds); 0 before the first reading
            and at the padding. Use layers with fill_first_gap=True.
        mask: (B, T, n), True where a value was measured.
        lengths: (B,), the number of readings of each series.
        labels: (B,) if the label is the same in all rows of every series, else (B, T); None without a label. Numbers
            keep their type; text becomes the index among its sorted values.
    """

    x: Tensor
    dt: Tensor
    mask: Tensor
    lengths: Tensor
    labels: Tensor | None


def from_long(frame: Any, id: str, time: str, channels: Sequence[str], label: str | None = None) -> LongBatch:
    """Turn a table with one row per reading into padded tensors.

    Args:
        frame: a pandas or polars DataFrame, or a dictionary of columns.
        id: the column that says to which series a row belongs. Rows of different series may alternate.
        time: the column of times, numbers or dates, which must increase within each series.
        channels: the columns of values, numbers or NaN.
        label: the column of labels or targets, if there is one.

    Raises:
        ValueError: for a column that does not exist or is not numeric, a time that is missing, repeated or runs
            backwards, an infinite value; the message names the column and the row, counted from 1.

    >>> table = {"id": [1, 1, 2], "t": [0.0, 0.5, 3.0], "heart rate": [60.0, float("nan"), 80.0], "y": [0, 0, 1]}
    >>> x, dt, mask, lengths, labels = lrcnet.data.from_long(table, "id", "t", ["heart rate"], "y")
    >>> x.squeeze(-1).tolist(), dt.tolist(), lengths.tolist(), labels.tolist()
    ([[60.0, 60.0], [80.0, 0.0]], [[0.0, 0.5], [0.0, 0.0]], [2, 1], [0, 1])
    """
    check_kind("channels", channels, (list, tuple), "a list of names of columns")
    if not channels:
        raise ValueError("channels must name at least one column, but is empty; list the columns of readings")
    for column in (id, time, *channels, *([] if label is None else [label])):
        column_of(frame, column)
    rows = group_rows(frame, id)
    times = read_times(frame, time)
    values = np.stack([read_numbers(frame, channel) for channel in channels], -1)
    gaps = np.zeros(len(times))
    for series in rows:
        gaps[series[1:]] = increasing(times, series, time)[1:]
    filled, mask = zip(*(fill_missing(values[series]) for series in rows), strict=True)
    labels = None if label is None else _labels(read_labels(frame, label), rows)
    return LongBatch(
        pad(filled), pad([gaps[series] for series in rows]), pad(mask), torch.tensor([len(s) for s in rows]), labels
    )


def fill_missing(values: Floats, start: Floats | float = 0.0) -> tuple[Floats, Array]:
    """Replace each NaN of a series by the last value of its channel; return the values and where they were measured.

    Args:
        values: (T, n).
        start: the value, or (n,) values, of a channel before its first measurement.

    >>> fill_missing(np.array([[np.nan], [3.0], [np.nan]]), start=1.0)[0].ravel().tolist()
    [1.0, 3.0, 3.0]
    """
    measured = ~np.isnan(values)
    steps = np.where(measured, np.arange(len(values))[:, None], -1)
    last = np.maximum.accumulate(steps, 0) if len(values) else steps
    filled = np.take_along_axis(values, np.maximum(last, 0), 0) if len(values) else values
    return np.where(last >= 0, filled, np.broadcast_to(start, values.shape)), measured


def pad(series: Sequence[Array]) -> Tensor:
    """Stack series (T_i, ...) of unequal length into (B, T, ...), with zeros at the padding; floats as float32."""
    longest = max(len(one) for one in series)
    shape, kind = (len(series), longest, *series[0].shape[1:]), series[0].dtype
    whole = np.zeros(shape, np.float32 if kind == np.float64 else kind)
    for place, one in zip(whole, series, strict=True):
        place[: len(one)] = one
    return torch.from_numpy(whole)


def group_rows(frame: Any, id: str) -> list[Array]:
    """Return the rows of each series, in the order of the first row of each."""
    names = column_of(frame, id)
    if not len(names):
        raise ValueError("the table must have at least one row, but has none; check the file")
    refuse_missing(names, id)
    _, first, inverse = np.unique(names.astype(str), return_index=True, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(inverse))[:-1])
    return [groups[place] for place in np.argsort(first, kind="stable")]


def column_of(frame: Any, name: str) -> Array:
    """Return a column of a table as an array.

    Raises:
        ValueError: if the table has no such column; the message lists its columns.
    """
    if not hasattr(frame, "columns"):
        check_kind("the table", frame, Mapping, "a DataFrame or a dictionary of columns")
    columns = [str(column) for column in getattr(frame, "columns", frame)]
    check_kind("the name of a column", name, str, "a text")
    if name not in columns:
        listed = ", ".join(columns[:12]) + (" ..." if len(columns) > 12 else "")
        raise ValueError(f"the table must have the column {name!r}, but has {listed}; choose one of these")
    column = frame[name]
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def real_numbers(given: Any) -> Floats:
    """Return numbers in float64; complex ones are an error, because NumPy would drop their imaginary part."""
    array = np.asarray(given)
    if array.dtype.kind == "c":
        raise TypeError("numbers must be real, but are complex; pass the real and the imaginary part as two channels")
    return np.asarray(array, dtype=np.float64)


def is_beyond_float32(numbers: Floats) -> Array:
    """Return which numbers are infinite, or would be in float32, in which networks compute."""
    beyond: Array = np.abs(numbers) > np.finfo(np.float32).max
    return beyond


def read_numbers(frame: Any, name: str) -> Floats:
    """Return a column of numbers in float64, NaN where a value is missing.

    Raises:
        ValueError: for text, or a value that is infinite in float32; the message names its row.
    """
    column = column_of(frame, name)
    try:
        numbers = real_numbers(column)
    except (TypeError, ValueError):
        if column.dtype.kind == "c":
            raise
        numbers = np.array([_as_number(value, name, row) for row, value in enumerate(column, 1)])
    beyond = np.flatnonzero(is_beyond_float32(numbers))
    if len(beyond):
        row = int(beyond[0])
        limit = "" if np.isinf(numbers[row]) else ", at most 3.4e38 as float32 has them"
        raise ValueError(
            f"column {name!r} must hold finite numbers{limit}, but row {row + 1} is {numbers[row]}; replace it"
        )
    return numbers


def read_times(frame: Any, name: str) -> Floats:
    """Return a column of times in float64: numbers as they are, dates as seconds since 1970.

    Raises:
        ValueError: for a missing time, or one that is neither a number nor a date.
    """
    return as_times(column_of(frame, name), name)


def as_times(column: Array, name: str) -> Floats:
    """Return times in float64; see `read_times`."""
    refuse_missing(column, name)
    if column.dtype.kind == "M":
        return np.asarray((column - np.datetime64(0, "s")) / SECOND, dtype=np.float64)
    if column.dtype.kind == "m":
        return np.asarray(column / SECOND, dtype=np.float64)
    if column.dtype == object or column.dtype.kind in "US":
        return np.array([_as_time(value, name, row) for row, value in enumerate(column, 1)])
    times = real_numbers(column)
    infinite = np.flatnonzero(~np.isfinite(times))
    if len(infinite):
        row = int(infinite[0])
        raise ValueError(f"column {name!r} must hold finite times, but row {row + 1} is {times[row]}; correct it")
    return times


def increasing(times: Floats, rows: Array, name: str, *, table: bool = True) -> Floats:
    """Return the gap before each of some rows (0 before the first), which must be above 0.

    Args:
        times: of all rows.
        rows: of one series, in order.
        name: the column, or what the times are of.
        table: whether they are a column of a table; messages then speak of rows instead of readings.

    Raises:
        ValueError: for a time that is repeated or runs backwards; the message names its row.
    """
    gaps = np.diff(times[rows], prepend=times[rows[:1]])
    wrong = np.flatnonzero(gaps[1:] <= 0)
    if len(wrong):
        place = int(wrong[0]) + 1
        column = f"column {name!r}"
        what, row, whole = (column, "row", "the table") if table else (name, "reading", "the readings")
        here, before = f"{row} {int(rows[place]) + 1}", f"{row} {int(rows[place - 1]) + 1}"
        problem, remedy = (
            (f"repeats the time of {before}", "keep one of them")
            if gaps[place] == 0
            else (f"is earlier than {before}", f"sort {whole} by time")
        )
        raise ValueError(f"{what} must increase within each series, but {here} {problem}; {remedy}")
    return np.asarray(gaps, dtype=np.float64)


def read_labels(frame: Any, name: str) -> Array:
    """Return a column of labels: numbers keep their type, text becomes the index among its sorted values.

    Raises:
        ValueError: if a label is missing; the message names its row.
    """
    column = column_of(frame, name)
    refuse_missing(column, name)
    if column.dtype.kind in "iufb":
        return column
    return np.unique(column.astype(str), return_inverse=True)[1]


def _labels(column: Array, rows: list[Array]) -> Tensor:
    if all((column[series] == column[series[0]]).all() for series in rows):
        return torch.from_numpy(np.array([column[series[0]] for series in rows]))
    return pad([column[series] for series in rows])


def refuse_missing(column: Array, name: str) -> None:
    """Raise a ValueError that names the first row without a value, if there is one."""
    missing = np.flatnonzero(is_missing(column))
    if len(missing):
        raise ValueError(
            f"column {name!r} must have a value in every row, but row {int(missing[0]) + 1} has none; fill it in or "
            "drop the row"
        )


def is_missing(column: Array) -> Array:
    """Return where a column has no value: NaN, None, NaT or empty text."""
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype == object:
        return np.array([value is None or value == "" or value != value for value in map(_plain, column)], dtype=bool)
    return np.zeros(len(column), dtype=bool)


def _plain(value: Any) -> Any:
    """Return None for pandas' NA, which refuses comparisons."""
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _as_number(value: Any, name: str, row: int) -> float:
    if value is None or type(value).__name__ == "NAType" or value == "":
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} must hold numbers, but row {row} is {value!r}; correct it, or name the column as "
            "categorical"
        ) from None


def _as_time(value: Any, name: str, row: int) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        pass
    try:
        # numpy reads no zone; pandas' own dates bring theirs along, and convert to UTC.
        moment = value.tz_convert(None) if getattr(value, "tzinfo", None) is not None else value
        return float((np.datetime64(moment) - np.datetime64(0, "s")) / SECOND)
    except (TypeError, ValueError, AttributeError):
        raise ValueError(
            f"column {name!r} must hold numbers or dates such as 2024-05-01 13:00, but row {row} is {value!r}; correct "
            "it"
        ) from None
