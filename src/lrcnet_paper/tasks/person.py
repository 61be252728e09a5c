"""Localization Data for Person Activity: which of seven things a person with four body tags does, step by step.

The faithful protocol is that of the paper's program: overlapping windows of all sequences are shuffled and split, so
that a test window shares rows with training windows, and the last sequence is forgotten. The clean one splits by
sequence, has a validation set, and uses every sequence.
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
from .person_files import CLASSES, Recording, read_coarse, read_official
from .sources import SOURCES
from .task import DataPath, Recipe, Samples, Task

WINDOW = 32
STRIDE = 16
SPLIT_SEED = 98841
TEST_SHARE = 0.2

_FULL_NAMES = tuple(f"ConfLongDemo_JSI{suffix}" for suffix in (".txt", ".csv", ".txt.xz", ".csv.xz", ".txt.gz"))
_PART_NAMES = ("ConfLongDemo_JSI_A01-A04.csv.xz", "ConfLongDemo_JSI_A01-A04.csv", "ConfLongDemo_JSI_A01-A04.txt")
_COARSE_NAMES = ("person_activity_coarse.npz",)
_PART = ("A01", "A02", "A03", "A04")


@dataclass(frozen=True)
class _Variant:
    """What a variant reads and how it splits; the sizes are those of the real files."""

    files: tuple[str, ...]
    sequences: Literal["all", "all but the last", "A01-A04"]
    clean: bool
    splits: dict[str, int]
    notes: str


_COARSE_NOTE = "coordinates cut to 10 cm, no timestamps: dt = 1"
_GAPS_NOTE = "gaps below 0 count as 0"
_VARIANTS: dict[str, _Variant] = {
    "full": _Variant(
        _FULL_NAMES,
        "all but the last",
        False,
        {"train": 7769, "test": 1942},
        "the paper's protocol: 24 of 25 sequences; overlapping windows on both sides of the split",
    ),
    "full-25": _Variant(
        _FULL_NAMES,
        "all",
        False,
        {"train": 8212, "test": 2053},
        "the paper's split, all 25 sequences; overlapping windows on both sides of the split",
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
        "the paper's split on the first 4 of 25 sequences; overlapping windows on both sides of the split",
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
        f"the paper's split, 24 of 25 sequences; {_COARSE_NOTE}",
    ),
    "coarse-25": _Variant(
        _COARSE_NAMES,
        "all",
        False,
        {"train": 8212, "test": 2053},
        f"the paper's split, all 25 sequences; {_COARSE_NOTE}",
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
def _recordings(path: Path, changed: int) -> tuple[Recording, ...]:
    return read_coarse(path) if path.suffix == ".npz" else read_official(path)


def read(path: str | Path) -> tuple[Recording, ...]:
    """The sequences of a file, official or coarse by its name's end; the last two files read are remembered."""
    path = Path(path)
    return _recordings(path, path.stat().st_mtime_ns)


def windows(recordings: Sequence[Recording]) -> Samples:
    """Cuts sequences into windows of 32 rows that begin at range(0, rows - 32, 16).

    Args:
        recordings: sequences, all with time or all without.

    Returns:
        x (window, 32, 7) float32, dt (window, 32) float32 or None, y (window, 32) int64, in order of the sequences.

    Raises:
        ValueError: when no sequence is longer than a window, or only some have time.
    """
    pieces = [
        (recording, np.arange(start, start + WINDOW))
        for recording in recordings
        for start in range(0, len(recording.labels) - WINDOW, STRIDE)
    ]
    if not pieces:
        lengths = [len(recording.labels) for recording in recordings]
        raise ValueError(f"some sequence must have more than {WINDOW} rows; the lengths are {lengths}")
    timed = {recording.dt is not None for recording in recordings}
    if len(timed) != 1:
        raise ValueError("either all sequences or none must have time; these are mixed")
    dt: Tensor | None = None
    if timed == {True}:
        dt = torch.from_numpy(np.stack([r.dt[rows] for r, rows in pieces if r.dt is not None]))
    x = torch.from_numpy(np.stack([r.features[rows] for r, rows in pieces]))
    return Samples(x, dt, torch.from_numpy(np.stack([r.labels[rows] for r, rows in pieces])))


def _faithful(recordings: Sequence[Recording], split: str) -> Samples:
    samples = windows(recordings)
    # The legacy generator is the protocol: another one would give another split.
    order = np.random.RandomState(SPLIT_SEED).permutation(len(samples))
    tests = int(TEST_SHARE * len(samples))
    return Samples(*samples[torch.from_numpy(order[:tests] if split == "test" else order[tests:])])


def split_by_sequence(names: Sequence[str]) -> dict[str, list[str]]:
    """The clean split: of each person (first letter) the last take tests, the one before it validates, the rest trains.

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


def _clean(recordings: Sequence[Recording], split: str) -> Samples:
    chosen = split_by_sequence([recording.name for recording in recordings])[split]
    # A reading cannot come before its predecessor: the two clocks' disagreement counts as no time at all.
    return windows(
        [r if r.dt is None else replace(r, dt=np.maximum(r.dt, np.float32(0))) for r in recordings if r.name in chosen]
    )


def _load(variant: str, split: str, data: DataPath | None) -> Samples:
    chosen = _VARIANTS[variant]
    path = find_file("person", chosen.files, data)
    recordings = read(path)
    names = [recording.name for recording in recordings]
    if chosen.sequences == "A01-A04":
        missing = [name for name in _PART if name not in names]
        if missing:
            raise ValueError(f"{path.name} must hold the sequences {list(_PART)}; it lacks {missing}")
        recordings = tuple(recording for recording in recordings if recording.name in _PART)
    elif len(recordings) != 25:
        raise ValueError(
            f"{path.name} must hold 25 sequences for the variant {variant!r} and holds {len(recordings)}; get the "
            "whole file, or use the variant 'a01-a04' if it is that part"
        )
    if chosen.sequences == "all but the last":
        recordings = recordings[:-1]
    return _clean(recordings, split) if chosen.clean else _faithful(recordings, split)


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
        recipe=Recipe("rmsprop", 1e-3, 0.9, 1e-7, 128, 100, None, "best-validation" if variant.clean else "last"),
        citation=source.citation,
        licence=source.licence,
        notes=variant.notes,
        reader=_load,
        files=(variant.files,),
    )


VARIANTS: dict[str, Task] = {name: _task(name, variant) for name, variant in _VARIANTS.items()}
"""Every variant of the task, the paper's first."""
