"""Files in the .ts format of the UCR and UEA archives: a header, then one sequence with its label per line."""

import lzma
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ts_header import Header, read_header

LARGEST_TEXT = 1 << 30
"""Bytes of an unpacked file; the largest set of the archives has a fifth of this."""


class LabelledSeries(NamedTuple):
    """A sequence of an archive.

    Attributes:
        values: (time, channels), NaN where a value is missing.
        label: the name of its class.
        place: its file and line, for messages.
    """

    values: NDArray[np.float32]
    label: str
    place: str


def read_ts(path: Path) -> list[LabelledSeries]:
    """Read a file in the .ts format, plain or compressed (.xz).

    Returns:
        The sequences. "?", "NaN" in any case and an empty field become NaN, and so does the rest of a channel that ends
        before the others do.

    Raises:
        ValueError: if the header or a line does not follow the format, or a line disagrees with the header; the message
            names the line.
    """
    lines = _read_text(path).splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip().lower() == "@data"), None)
    if start is None:
        raise ValueError(f"{path.name} must have sequences after a line @data, but has no such line; it may be cut off")
    header = read_header(lines[:start], path.name)
    sequences: list[LabelledSeries] = []
    for number, raw in enumerate(lines[start + 1 :], start + 2):
        line = raw.strip()
        if line and not line.startswith("#"):
            series = _parse(line, f"{path.name}, line {number}")
            _check_series(series, header, sequences[0] if sequences else series)
            sequences.append(series)
    if not sequences:
        raise ValueError(f"{path.name} must have sequences after a line @data, but has none; it may be cut off")
    return sequences


def number_labels(names: list[str], sequences: Iterable[LabelledSeries]) -> list[int]:
    """Return the number of each sequence's label among the names of the training classes.

    Raises:
        ValueError: for a label that is not among them; the message names file and line.
    """
    sequences = list(sequences)
    for series in sequences:
        if series.label not in names:
            raise ValueError(
                f"{series.place} must have one of the training labels {names}, but has {series.label[:40]!r}; leave "
                "out classes without training sequences"
            )
    return [names.index(series.label) for series in sequences]


def _read_text(path: Path) -> str:
    if path.suffix != ".xz":
        return path.read_text(encoding="utf-8", errors="replace")
    try:
        with lzma.open(path) as file:
            content = file.read(LARGEST_TEXT + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise ValueError(f"{path.name} must be a complete .xz file and is not ({error}); get it again") from error
    if len(content) > LARGEST_TEXT:
        raise ValueError(f"{path.name} must unpack to at most {LARGEST_TEXT >> 20} MB, but is larger; get it again")
    return content.decode(encoding="utf-8", errors="replace")


def _parse(line: str, place: str) -> LabelledSeries:
    *channels, label = line.split(":")
    if not channels or not label:
        raise ValueError(f"{place} must be channels and a label, separated by colons, but is {line[:40]!r}")
    try:
        rows = [[_number_of(value) for value in row.split(",")] for row in channels]
    except ValueError as error:
        raise ValueError(f"{place} must hold numbers, but: {error}") from None
    longest = max(len(row) for row in rows)
    values = np.array([row + [np.nan] * (longest - len(row)) for row in rows], np.float32).T
    return LabelledSeries(values, label, place)


def _number_of(text: str) -> float:
    if text.strip() in ("", "?"):
        return math.nan
    number = float(text)
    # Arrays have 32 bits.
    if abs(number) >= 3e38:
        raise ValueError(f"{text[:40]!r} is not a finite number")
    return number


def _check_series(series: LabelledSeries, header: Header, first: LabelledSeries) -> None:
    """Raise unless a sequence agrees with the header and has as many channels as the first one."""
    place, (steps, channels) = series.place, series.values.shape
    if series.label not in header.classes:
        raise ValueError(
            f"{place} must have one of the labels {header.classes} that the header names, but has {series.label[:40]!r}"
        )
    for size in header.channels:
        if channels != size.value:
            raise ValueError(
                f"{place} must have the number of channels that {size.source} states, but has {channels}; correct one "
                "of the two lines"
            )
    if channels != first.values.shape[1]:
        raise ValueError(
            f"{place} must have {first.values.shape[1]} channels, equally many in every line, but has {channels}"
        )
    if header.steps is not None and steps != header.steps.value:
        raise ValueError(
            f"{place} must have the number of steps that {header.steps.source} states, but has {steps}; correct one of "
            "the two lines, or say '@equalLength false' if lengths differ"
        )
