"""From a table and its schema to series, targets and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lrcnet.data import Array, Floats, column_of, group_rows, increasing, is_missing, read_numbers, refuse_missing
from lrcnet.estimators.series import Series
from lrcnet.own_data.files import import_pandas
from lrcnet.own_data.schema import Schema


@dataclass(frozen=True)
class Readings:
    """The series of a table.

    Attributes:
        series: values and times; empty readings at the end of a wide row are left out.
        ids: the name of each series.
        moments: the times as they stand in the file, for output; None without times.
        targets: one array per series if every reading has a target, else an array; None without targets.
    """

    series: Series
    ids: list[str]
    moments: list[Array] | None
    targets: Any

    def take(self, chosen: Any) -> Readings:
        """Return some of the series."""
        targets = self.targets
        if targets is not None:
            targets = [targets[i] for i in chosen] if isinstance(targets, list) else targets[np.asarray(chosen)]
        moments = None if self.moments is None else [self.moments[i] for i in chosen]
        return Readings(self.series.take(chosen), [self.ids[i] for i in chosen], moments, targets)


def encode(frame: Any, schema: Schema, *, with_targets: bool, sort: bool = False) -> Readings:
    """Read a table by its schema.

    Args:
        frame: the table; columns beside those of the schema are ignored.
        schema: the meaning of the columns.
        with_targets: whether targets are read too.
        sort: whether rows are sorted by time first.

    Raises:
        ValueError: for bad values; the message names the column and the row, counted from 1 below the header.
    """
    if schema.layout == "wide":
        return _encode_wide(frame, schema, with_targets)
    rows = [np.arange(len(frame))] if schema.id is None else group_rows(frame, schema.id)
    columns = [read_numbers(frame, name) for name in schema.numeric]
    for name, categories in schema.categorical.items():
        columns += _one_hot(frame, name, categories)
    values = np.stack(columns, -1)
    times = moments = None
    if schema.time is not None:
        whole = _times(frame, schema)
        if sort:  # Of each series: messages and predictions keep the rows of the file.
            rows = [one[np.argsort(whole[one], kind="stable")] for one in rows]
        for one in rows:
            increasing(whole, one, schema.time)
        column = column_of(frame, schema.time)
        times, moments = [whole[one] for one in rows], [column[one] for one in rows]
    names = ["all"] * len(rows) if schema.id is None else [str(column_of(frame, schema.id)[one[0]]) for one in rows]
    targets = _targets(frame, schema, rows) if with_targets and schema.target is not None else None
    return Readings(Series([values[one] for one in rows], times, rows), names, moments, targets)


def _encode_wide(frame: Any, schema: Schema, with_targets: bool) -> Readings:
    channels = [np.stack([read_numbers(frame, name) for name in columns], -1) for columns in schema.wide.values()]
    values = np.stack(channels, -1)
    series = []
    for row, one in enumerate(values, 1):
        known = np.flatnonzero(~np.isnan(one).all(-1))
        if not len(known):
            raise ValueError(f"every row must have a value, but row {row} has none; drop it")
        series.append(one[: known[-1] + 1])
    rows = [np.array([row]) for row in range(len(frame))]
    names = (
        [str(row + 1) for row in range(len(frame))] if schema.id is None else column_of(frame, schema.id).astype(str)
    )
    targets = _targets(frame, schema, rows) if with_targets and schema.target is not None else None
    return Readings(Series(series, None, rows), [str(name) for name in names], None, targets)


def _times(frame: Any, schema: Schema) -> Floats:
    """Return times as numbers; dates as seconds since 1970."""
    assert schema.time is not None
    column = column_of(frame, schema.time)
    refuse_missing(column, schema.time)
    if not schema.dates:
        return read_numbers(frame, schema.time)
    pandas = import_pandas()
    moments = pandas.to_datetime(frame[schema.time], errors="coerce", utc=True, format="mixed")
    wrong = np.flatnonzero(moments.isna().to_numpy())
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(
            f"column {schema.time!r} must hold dates such as 2024-05-01 13:00, but row {row + 1} is "
            f"{str(column[row])!r}; correct it"
        )
    seconds: Floats = ((moments - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta("1s")).to_numpy(np.float64)
    return seconds


def _one_hot(frame: Any, name: str, values: list[str]) -> list[Floats]:
    """Return one column of 0 and 1 per category; NaN where the value is missing."""
    column = column_of(frame, name)
    missing = is_missing(column)
    text = np.where(missing, "", column.astype(str))
    unknown = np.flatnonzero(~missing & ~np.isin(text, values))
    if len(unknown):
        row = int(unknown[0])
        raise ValueError(
            f"column {name!r} must hold one of {', '.join(values)}, as in training, but row {row + 1} is "
            f"{str(text[row])!r}; correct it"
        )
    return [np.where(missing, np.nan, (text == value).astype(np.float64)) for value in values]


def _targets(frame: Any, schema: Schema, rows: list[Array]) -> Any:
    assert schema.target is not None
    if schema.task == "regression":
        column: Array = read_numbers(frame, schema.target)
    else:
        column = column_of(frame, schema.target).astype(str)
    if schema.per_reading:
        return [column[one] for one in rows]
    return np.array([column[one[0]] for one in rows])
