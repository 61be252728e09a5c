"""What the columns of a table mean: series, times, channels, target; guessed once, and kept with the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

import numpy as np

from lrcnet.data import Array, column_of, group_rows, is_missing, refuse_missing
from lrcnet.errors import one_of
from lrcnet.own_data.files import import_pandas

Task = Literal["classification", "regression", "forecast"]
TASKS: tuple[Task, ...] = ("classification", "regression", "forecast")
FORMATS = ("long", "wide")
# Text with more values than this is a name or a remark rather than a category.
MOST_CATEGORIES = 50
# Whole numbers with at most this many values are classes, unless --task says otherwise.
MOST_NUMERIC_CLASSES = 10
# pandas' name for a column without one.
_NAMELESS = "Unnamed: "
_NUMBERED = re.compile(r"(?P<channel>.*?)[ _.\-]?(?P<step>\d+)")


@dataclass(frozen=True)
class Schema:
    """The meaning of each column.

    Attributes:
        layout: "long", one row per reading, or "wide", one row per series.
        task: what the network is to do.
        per_reading: whether every reading has a target.
        id, time, target: columns; None if there is none.
        dates: whether times are dates, which count in seconds.
        numeric: columns of numbers; for a wide table the names of its channels.
        categorical: columns of text with their values, each of which becomes a channel of 0 and 1.
        wide: for a wide table, the columns of each channel in the order of time.
        classes: the classes as text, sorted as the network's answers; empty for numbers.
        balanced: whether every class has the same weight in training and in measures, however rare it is.
        left_out: columns of the training table that nobody named and that cannot be channels, with the reason.
    """

    layout: str
    task: Task
    per_reading: bool
    id: str | None
    time: str | None
    target: str | None
    dates: bool
    numeric: list[str]
    categorical: dict[str, list[str]] = field(default_factory=dict)
    wide: dict[str, list[str]] = field(default_factory=dict)
    classes: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    balanced: bool = False

    @property
    def channels(self) -> list[str]:
        """The names of the channels that the network takes."""
        ones = [f"{column}={value}" for column, values in self.categorical.items() for value in values]
        return [*self.numeric, *ones]

    @property
    def goal(self) -> str:
        """What the network does, for titles."""
        return "forecasts" if self.task == "forecast" else f"{self.task} of {self.target}"

    @property
    def main_measure(self) -> tuple[str, int]:
        """The measure that decides which model is better, and 1 if more is better, else -1."""
        if self.task == "classification":
            return ("balanced accuracy" if self.balanced else "accuracy"), 1
        return "RMSE", -1

    def input_names(self, masked: bool) -> list[str]:
        """Return the names of the network's inputs: the channels, then their masks if it takes some."""
        return self.channels + [f"{name} was measured" for name in self.channels if masked]

    def to_json(self) -> dict[str, Any]:
        """Return the schema as data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Return the schema that `to_json` wrote."""
        return cls(**data)


def understand(
    frame: Any,
    *,
    id: str | None = None,
    time: str | None = None,
    target: str | None = None,
    channels: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    task: str | None = None,
    layout: str | None = None,
) -> Schema:
    """Guess the meaning of each column from a training table; arguments decide instead of the guess.

    Raises:
        ValueError: for columns that do not exist or are of the wrong kind, or arguments that contradict each other.
    """
    named = [name for name in (id, time, target) if name is not None]
    for name in (*named, *(channels or ()), *categorical):
        column_of(frame, name)
    if len(set(named)) < len(named):
        raise ValueError(f"id, time and target must be different columns, but are {', '.join(named)}; choose others")
    both = sorted(set(named) & set(channels or ()))
    if both:
        raise ValueError(f"column {both[0]!r} must be id, time or target, or a channel, but is both; choose one")
    if layout is None:
        layout = "wide" if time is None and (id is None or frame[id].is_unique) and target is not None else "long"
    one_of("format", layout, FORMATS)
    candidates = [str(name) for name in frame.columns if name not in named] if channels is None else list(channels)
    useless = _find_useless(frame, candidates, layout)
    if channels is not None and useless:
        name, reason = next(iter(useless.items()))
        raise ValueError(f"column {name!r} must hold values to be a channel, but has {reason}; leave it out")
    chosen = [name for name in candidates if name not in useless]
    if not chosen:
        raise ValueError(f"the table must have a channel beside {', '.join(named)}, but has none; add a column")
    decided = _decide_task(frame, target, task)
    classes = _classes(frame, target) if decided == "classification" and target is not None else []
    if layout == "wide":
        if time is not None:
            raise ValueError(f"a wide table has its times in its header, but --time is {time!r}; use --format long")
        if decided == "forecast":
            raise ValueError("a forecast needs one row per reading, but the table is wide; use --format long")
        if categorical:
            raise ValueError(f"a wide table takes numbers only, but {categorical[0]!r} is categorical; leave it out")
        wide = _group_columns(chosen)
        return Schema("wide", decided, False, id, None, target, False, list(wide), {}, wide, classes, useless)
    per_reading = target is not None and not _is_constant(frame, id, target)
    dates = time is not None and not _is_numeric(column_of(frame, time))
    numeric, categories = _sort_channels(frame, chosen, set(categorical))
    if decided == "forecast" and categories:
        raise ValueError(
            f"a forecast takes numbers only, but column {next(iter(categories))!r} is text; choose others with "
            "--channels"
        )
    return Schema("long", decided, per_reading, id, time, target, dates, numeric, categories, {}, classes, useless)


def _find_useless(frame: Any, columns: Sequence[str], layout: str) -> dict[str, str]:
    """Return the columns that cannot be channels, with the reason: those without a name or without a value.

    A column without a name is usually the number of the row, which programs write unasked and which tells a network
    about the order of the file. In a wide table a column without values is a reading that no series has reached.
    """
    reasons = {}
    for name in columns:
        if name.startswith(_NAMELESS):
            reasons[name] = "no name"
        elif layout == "long" and bool(is_missing(column_of(frame, name)).all()):
            reasons[name] = "no values"
    return reasons


def _decide_task(frame: Any, target: str | None, task: str | None) -> Task:
    if task is not None:
        one_of("task", task, TASKS)
    if target is None:
        if task in ("classification", "regression"):
            raise ValueError(f"{task} needs a target, but none is given; name its column with --target")
        return "forecast"
    if task == "forecast":
        raise ValueError(f"a forecast has no target, but --target is {target!r}; leave it out")
    column = column_of(frame, target)
    refuse_missing(column, target)
    if task is not None:
        if task == "regression" and not _is_numeric(column):
            raise ValueError(
                f"regression needs numbers, but column {target!r} holds {str(column[0])!r} in row 1; correct it"
            )
        return task  # type: ignore[return-value]
    whole = column.dtype.kind in "iub" and len(np.unique(column)) <= MOST_NUMERIC_CLASSES
    return "classification" if whole or not _is_numeric(column) else "regression"


def _classes(frame: Any, target: str) -> list[str]:
    classes = [str(value) for value in np.unique(column_of(frame, target).astype(str))]
    if len(classes) < 2:
        raise ValueError(f"column {target!r} must have at least two classes, but all rows are {classes[0]!r}; check it")
    return classes


def _is_constant(frame: Any, id: str | None, target: str) -> bool:
    column = column_of(frame, target)
    groups = [np.arange(len(column))] if id is None else group_rows(frame, id)
    # Series of one reading have a label each, whichever way one looks at them.
    return all(bool((column[rows] == column[rows[0]]).all()) for rows in groups)


def _is_numeric(column: Array) -> bool:
    return column.dtype.kind in "iufb"


def _sort_channels(frame: Any, chosen: list[str], forced: set[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the numeric columns, and the categorical ones with their values."""
    numeric, categories = [], {}
    for name in chosen:
        column = column_of(frame, name)
        if name not in forced and (_is_numeric(column) or _is_mostly_numeric(frame, name)):
            numeric.append(name)
            continue
        values = sorted({str(value) for value in column[~is_missing(column)]})
        if len(values) > MOST_CATEGORIES:
            raise ValueError(
                f"column {name!r} must hold numbers or at most {MOST_CATEGORIES} categories, but has {len(values)} "
                "texts; leave it out with --channels"
            )
        categories[name] = values
    return numeric, categories


def _is_mostly_numeric(frame: Any, name: str) -> bool:
    """Return whether more than half of a text column are numbers, so that the rest are errors."""
    numbers = import_pandas().to_numeric(frame[name], errors="coerce")
    known = int((~is_missing(column_of(frame, name))).sum())
    return bool(int(numbers.notna().sum()) * 2 > known)


def _group_columns(columns: list[str]) -> dict[str, list[str]]:
    """Return the columns of each channel of a wide table, such as hr_0, hr_1 ..., in the order of their numbers."""
    matches = {name: _NUMBERED.fullmatch(name) for name in columns}
    plain = [name for name, match in matches.items() if match is None]
    if plain:
        raise ValueError(
            f"columns of a wide table must end with the number of the reading, such as x_0, but one is {plain[0]!r}; "
            "leave it out with --channels, or use --format long"
        )
    groups: dict[str, list[tuple[int, str]]] = {}
    for name, match in matches.items():
        assert match is not None
        groups.setdefault(match["channel"] or "value", []).append((int(match["step"]), name))
    counts = {channel: len(steps) for channel, steps in groups.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{channel} {count}" for channel, count in counts.items())
        raise ValueError(
            f"all channels of a wide table must have as many readings, but they have: {listed}; add columns"
        )
    return {channel: [name for _, name in sorted(steps)] for channel, steps in groups.items()}
