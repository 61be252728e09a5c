"""The part of the data that no model sees in training: whole series, or the last readings for forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lrcnet.data import Array
from lrcnet.estimators.series import Series
from lrcnet.own_data.encoding import Readings
from lrcnet.own_data.schema import Schema

TEST_SHARE = 0.2
FEWEST_SERIES = 10
# Readings of one series: the last fifth must hold at least one.
FEWEST_READINGS = 10


@dataclass(frozen=True)
class Split:
    """Training and test data.

    Attributes:
        training: the readings to learn from.
        test: the readings to measure on; for forecasts the whole series.
        starts: for forecasts, the first reading of each series that counts in the measurement.
    """

    training: Readings
    test: Readings
    starts: list[int] | None = None


def split(readings: Readings, schema: Schema, seed: int) -> Split:
    """Hold out a fifth: of the series, class by class, or of the readings of each series for forecasts.

    Raises:
        ValueError: if there is too little data for that.
    """
    if schema.task == "forecast":
        return _split_by_time(readings)
    count = len(readings.ids)
    if count < FEWEST_SERIES:
        place = f"column {schema.id!r}" if schema.id else "the table, which has no --id,"
        longest = max(len(one) for one in readings.series.values)
        raise ValueError(
            f"{place} must name at least {FEWEST_SERIES} series, some to learn from and some to measure on, but names "
            f"{count} (the longest has {longest:,} readings); choose another --id"
        )
    rng = np.random.default_rng(seed)
    groups = np.zeros(count, dtype=int)
    if schema.task == "classification" and not schema.per_reading:
        groups = np.unique(readings.targets, return_inverse=True)[1]
        smallest = int(np.argmin(np.bincount(groups)))
        if np.bincount(groups)[smallest] < 2:
            row = int(np.flatnonzero(groups == smallest)[0])
            raise ValueError(
                f"every class of column {schema.target!r} needs at least two series, but "
                f"{str(readings.targets[row])!r} has one ({readings.ids[row]!r}); add series or leave it out"
            )
    test: list[int] = []
    for group in np.unique(groups):
        members = rng.permutation(np.flatnonzero(groups == group))
        test += members[: max(1, round(TEST_SHARE * len(members)))].tolist()
    held_out = np.isin(np.arange(count), test)
    return Split(readings.take(np.flatnonzero(~held_out)), readings.take(np.flatnonzero(held_out)))


def _split_by_time(readings: Readings) -> Split:
    series = readings.series
    long_enough = [i for i, one in enumerate(series.values) if len(one) >= FEWEST_READINGS]
    if not long_enough:
        longest = max(len(one) for one in series.values)
        raise ValueError(
            f"a forecast needs a series of at least {FEWEST_READINGS} readings, but the longest has {longest}; check "
            "the column of --id"
        )
    chosen = readings.take(long_enough)
    values, times = chosen.series.values, chosen.series.times
    starts = [int(len(one) * (1 - TEST_SHARE)) for one in values]
    first: list[Array] = [one[:start] for one, start in zip(values, starts, strict=True)]
    first_times = None if times is None else [one[:start] for one, start in zip(times, starts, strict=True)]
    training = Readings(Series(first, first_times), chosen.ids, None, None)
    return Split(training, chosen, starts)
