"""Timestamps of readings: numbers, datetimes, pandas.Timestamp and numpy.datetime64, and the time between two."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import numpy as np

from lrcnet.cells.checks import read_number

TimeUnit = Literal["seconds", "minutes", "hours", "days"]
UNITS: dict[str, int] = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
"""The length of each unit of time in seconds."""
_NANOSECONDS = 1_000_000_000
_KINDS = {"number": "numbers", "naive": "dates without a time zone", "aware": "dates with a time zone"}


class Moment(NamedTuple):
    """A point in time: a number as it was given, or whole nanoseconds since 1970.

    Attributes:
        kind: "number", "naive" (a date without a time zone) or "aware".
        value: the number, or the nanoseconds.
    """

    kind: str
    value: float | int


def read_moment(given: Any) -> Moment:
    """Return a timestamp as a `Moment`.

    Raises:
        TypeError: for anything that is no timestamp.
        ValueError: for a missing time (NaN, NaT) or an infinite one.
    """
    if type(given) is float and math.isfinite(given):  # the usual case of a stream, quicker than the checks below
        return Moment("number", given)
    if isinstance(given, np.datetime64):
        if np.isnat(given):
            raise ValueError("the time of a reading must be known, but is NaT; drop the reading")
        return Moment("naive", int(given.astype("datetime64[ns]").astype(np.int64)))
    if isinstance(given, datetime):
        return _read_datetime(given)
    number = read_number(given)
    if number is None:
        # pandas.NaT is neither a datetime nor a number.
        if type(given).__name__ == "NaTType":
            raise ValueError("the time of a reading must be known, but is NaT; drop the reading")
        raise TypeError(
            f"the time of a reading must be a number, a datetime, a pandas.Timestamp or a numpy.datetime64, but is "
            f"{given!r}; convert it"
        )
    if not math.isfinite(number):
        raise ValueError(f"the time of a reading must be finite, but is {number}; drop the reading")
    return Moment("number", number)


def _read_datetime(given: datetime) -> Moment:
    if given != given:  # pandas.NaT, in versions in which it is a datetime
        raise ValueError("the time of a reading must be known, but is NaT; drop the reading")
    kind = "naive" if given.utcoffset() is None else "aware"
    start = datetime(1970, 1, 1, tzinfo=None if kind == "naive" else UTC)
    # In whole numbers, because a float has no microseconds left after 1970.
    nanoseconds = _whole_nanoseconds(given - start) + int(getattr(given, "nanosecond", 0)) % 1000
    return Moment(kind, nanoseconds)


def _whole_nanoseconds(difference: timedelta) -> int:
    """Return a difference in nanoseconds; those below a microsecond, which only pandas has, are left out."""
    return (difference.days * 86_400 + difference.seconds) * _NANOSECONDS + difference.microseconds * 1000


def elapsed(before: Moment, after: Moment, unit: str) -> float:
    """Return the time between two moments: in `unit` for dates, as it is for numbers.

    Raises:
        TypeError: if one is a number and the other a date, or only one has a time zone.
    """
    if before.kind != after.kind:
        raise TypeError(
            f"the times of a stream must be of one kind, but {_KINDS[before.kind]} came first and {_KINDS[after.kind]} "
            "now; convert them"
        )
    if after.kind == "number":
        return float(after.value - before.value)
    return (after.value - before.value) / (_NANOSECONDS * UNITS[unit])


def length_in(unit: str, what: str, given: float | timedelta) -> float:
    """Return a length of time in `unit`, given as a number in that unit or as a timedelta.

    Raises:
        ValueError: unless it is above 0 and finite.
    """
    seconds = UNITS[unit]
    number = given.total_seconds() / seconds if isinstance(given, timedelta) else read_number(given)
    if number is None or not 0 < number < math.inf:
        raise ValueError(
            f"{what} must be a timedelta or a number of {unit} above 0, but is {given!r}; pass one of these"
        )
    return number
