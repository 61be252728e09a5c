"""Localization Data for Person Activity: one of seven activities of a person with four body tags at every step.

The faithful protocol is that of the paper's program: overlapping windows of all sequences are shuffled and split, so
that a test window shares rows with training windows, and the last sequence is left out. The clean protocol splits by
sequence, has a validation split, and uses every sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .data_folders import find_file
from .losses_and_metrics import accuracy, cross_entropy
from .person_files import CLASSES, ActivitySequence, read_coarse, read_official
from .sources import SOURCES
from .task import DataPath, Recipe, Samples, Task

WINDOW = 32
STRIDE = 16
SPLIT_SEED = 98841
TEST_SHARE = 0.2
BATCH = 128
EPOCHS = 100
# Of the paper: 100 epochs of 61 batches.
UPDATES = 6_100

_FULL_NAMES = tuple(f"ConfLongDemo_JSI{suffix}" for suffix in (".txt", ".csv", ".txt.xz", ".csv.xz", ".txt.gz"))
_PART_NAMES = ("ConfLongDemo_JSI_A01-A04.csv.xz", "ConfLongDemo_JSI_A01-A04.csv", "ConfLongDemo_JSI_A01-A04.txt")
_COARSE_NAMES = ("person_activity_coarse.npz",)
_PART = ("A01", "A02", "A03", "A04")


@dataclass(frozen=True)
class _Variant:
    """The files and the protocol of a variant; the sizes of the splits are those of the real files."""

    files: tuple[str, ...]
    sequences: Literal["all", "all but the last", "A01-A04"]
    clean: bool
    splits: dict[str, int]
    notes: str


_OVERLAP_NOTE = "overlapping windows on both sides of the split"
_COARSE_NOTE = "coordinates cut to 10 cm, no timestamps: dt = 1"
_GAPS_NOTE = "gaps below 0 count as 0"
_VARIANTS: dict[str, _Variant] = {
    "full": _Variant(
        _FULL_NAMES,
        "all but the last",
        False,
        {"train": 7769, "test": 1942},
        f"the paper's protocol: 24 of 25 sequences; {_OVERLAP_NOTE}",
    ),
    "full-25": _Variant(
        _FULL_NAMES,
        "all",
        False,
        {"train": 8212, "test": 2053},
        f"the paper's split, all 25 sequences; {_OVERLAP_NOTE}",
    ),
    "full-clean": _Variant(
        _FULL_NAMES,
        "all",
        True,
        {"train": 6274, "validation": 1960, "test": 2031},
        f"split by sequence: each person's last take is for testing, the one before it for validation; {_GAPS_NOTE}",
    ),
    "a01-a04": _Variant(
        _PART_NAMES + _FULL_NAMES,
        "A01-A04",
        False,
        {"train": 1108, "test": 276},
        f"the paper's split on the first 4 of 25 sequences; {_OVERLAP_NOTE}",
    ),
    "a01-a04-clean": _Variant(
        _PART_NAMES + _FULL_NAMES,
        "A01-A04",
        True,
        {"train": 717, "validation": 331, "test": 336},
        f"split by sequence: A01 and A02 for training, A03 for validation, A04 for testing; {_GAPS_NOTE}",
    ),
    "coarse": _Variant(
        _COARSE_NAMES,
        "all but the last",
        False,
        {"train": 7769, "test": 1942},
        f"the paper's split, 24 of 25 sequences; {_OVERLAP_NOTE}; {_COARSE_NOTE}",
    ),
    "coarse-25": _Variant(
        _COARSE_NAMES,
        "all",
        False,
        {"train": 8212, "test": 2053},
        f"the paper's split, all 25 sequences; {_OVERLAP_NOTE}; {_COARSE_NOTE}",
    ),
    "coarse-clean": _Variant(
        _COARSE_NAMES,
        "all",
        True,
        {"train": 6274, "validation": 1960, "test": 2031},
        f"split by sequence: each person's last take is for testing, the one before it for validation; {_COARSE_NOTE}",
    ),
}


@lru_cache(maxsize=2)
def _read_cached(path: Path, changed: int) -> tuple[ActivitySequence, ...]:
    return read_coarse(path) if path.suffix == ".npz" else read_official(path)


def read_sequences(path: str | Path) -> tuple[ActivitySequence, ...]:
    """Read the sequences of a file, coarse if its name ends in .npz, else official; the last two files are cached."""
    path = Path(path)
    return _read_cached(path, path.stat().st_mtime_ns)


def cut_windows(sequences: Sequence[ActivitySequence]) -> Samples:
    """Cut sequences into windows of 32 rows that begin at range(0, rows - 32, 16).

    Args:
        sequences: sequences, all with timestamps or all without.

    Returns:
        x (window, 32, 7) float32, dt (window, 32) float32 or None, y (window, 32) int64, in order of the sequences.

    Raises:
        ValueError: when no sequence is longer than a window, or only some have timestamps.
    """
    pieces = [
        (sequence, np.arange(start, start + WINDOW))
        for sequence in sequences
        for start in range(0, len(sequence.labels) - WINDOW, STRIDE)
    ]
    if not pieces:
        lengths = [len(sequence.labels) for sequence in sequences]
        raise ValueError(f"some sequence must have more than {WINDOW} rows; the lengths are {lengths}")
    timed = {sequence.dt is not None for sequence in sequences}
    if len(timed) != 1:
        raise ValueError("either all sequences or none must have time; these are mixed")
    dt: Tensor | None = None
    if timed == {True}:
        dt = torch.from_numpy(np.stack([s.dt[rows] for s, rows in pieces if s.dt is not None]))
    x = torch.from_numpy(np.stack([s.features[rows] for s, rows in pieces]))
    return Samples(x, dt, torch.from_numpy(np.stack([s.labels[rows] for s, rows in pieces])))


def _load_faithful_split(sequences: Sequence[ActivitySequence], split: str) -> Samples:
    samples = cut_windows(sequences)
    # The legacy generator is part of the protocol: another one would give another split.
    order = np.random.RandomState(SPLIT_SEED).permutation(len(samples))
    tests = int(TEST_SHARE * len(samples))
    return Samples(*samples[torch.from_numpy(order[:tests] if split == "test" else order[tests:])])


def split_by_sequence(names: Sequence[str]) -> dict[str, list[str]]:
    """Assign sequences to the clean splits.

    Of each person (first letter) the last take is for testing, the one before it for validation, the rest for training.

    Example:
        >>> split_by_sequence(["A01", "A02", "A03", "A04"])
        {'train': ['A01', 'A02'], 'validation': ['A03'], 'test': ['A04']}
    """
    parts: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    for person in dict.fromkeys(name[0] for name in names):
        takes = sorted(name for name in names if name[0] == person)
        if len(takes) < 3:
            raise ValueError(f"each person must have at least 3 sequences to split by; {person} has {takes}")
        parts["train"] += takes[:-2]
        parts["validation"].append(takes[-2])
        parts["test"].append(takes[-1])
    return parts


def _load_clean_split(sequences: Sequence[ActivitySequence], split: str) -> Samples:
    names = split_by_sequence([sequence.name for sequence in sequences])[split]
    # A reading cannot come before its predecessor: where two clocks disagree, the gap counts as 0.
    return cut_windows(
        [s if s.dt is None else replace(s, dt=np.maximum(s.dt, np.float32(0))) for s in sequences if s.name in names]
    )


def _load(variant: str, split: str, data: DataPath | None) -> Samples:
    chosen = _VARIANTS[variant]
    path = find_file("person", chosen.files, data)
    sequences = read_sequences(path)
    names = [sequence.name for sequence in sequences]
    if chosen.sequences == "A01-A04":
        missing = [name for name in _PART if name not in names]
        if missing:
            raise ValueError(f"{path.name} must hold the sequences {list(_PART)}; it lacks {missing}")
        sequences = tuple(sequence for sequence in sequences if sequence.name in _PART)
    elif len(sequences) != 25:
        raise ValueError(
            f"{path.name} must hold 25 sequences for the variant {variant!r} and holds {len(sequences)}; get the "
            "whole file, or use the variant 'a01-a04' if it is that part"
        )
    if chosen.sequences == "all but the last":
        sequences = sequences[:-1]
    return (_load_clean_split if chosen.clean else _load_faithful_split)(sequences, split)


def _epochs(variant: _Variant) -> int:
    """Return the paper's 100 epochs; on a part of the data, the tens of epochs with the paper's number of updates."""
    if variant.sequences != "A01-A04":
        return EPOCHS
    updates_per_epoch = -(-variant.splits["train"] // BATCH)
    return 10 * -(-UPDATES // (10 * updates_per_epoch))


def _task(name: str, variant: _Variant) -> Task:
    source = SOURCES["person"]
    return Task(
        name="person",
        variant=name,
        variants=tuple(_VARIANTS),
        title="Localization data for person activity",
        kind="label-per-step",
        input_size=7,
        vocabulary=0,
        output_size=len(CLASSES),
        length=WINDOW,
        splits=variant.splits,
        irregular=variant.files is not _COARSE_NAMES,
        negative_dt="error" if variant.clean or variant.files is _COARSE_NAMES else "allow",
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        maximise=True,
        recipe=Recipe(
            "rmsprop", 1e-3, 0.9, 1e-7, BATCH, _epochs(variant), None, "best-validation" if variant.clean else "last"
        ),
        citation=source.citation,
        licence=source.licence,
        notes=variant.notes,
        reader=_load,
        files=(variant.files,),
    )


VARIANTS: dict[str, Task] = {name: _task(name, variant) for name, variant in _VARIANTS.items()}
"""Every variant of the task, the paper's first."""
