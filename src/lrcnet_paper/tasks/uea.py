"""Sets of the UEA and UCR archives, read from .ts files: SelfRegulationSCP1 and SCP2 by name, any other by a function.

The five published splits of SCP1 and SCP2 are those of the papers on state-space models (LinOSS, LrcSSM).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lrcnet_paper.archive_sets import number_labels, read_ts

from .data_folders import find_files
from .losses_and_metrics import accuracy, cross_entropy
from .ragged import RaggedSamples
from .sources import SOURCES
from .task import ANY_NUMBER, DataPath, Recipe, Task

PUBLISHED = ("2345", "3456", "4567", "5678", "6789")
"""The data seeds of the papers, which name the published splits."""
VALIDATION_SHARE = 0.2
SPLIT_SEED = 0
_SPLITS = ("scp_splits.json",)
_SETS = {"scp1": "SelfRegulationSCP1", "scp2": "SelfRegulationSCP2"}
# (channels, steps, sizes of the published splits, sizes of the archive's split)
_SIZES = {
    "scp1": (6, 896, (392, 84, 85), (215, 53, 293)),
    "scp2": (7, 1152, (266, 57, 57), (160, 40, 180)),
}
Series = list[tuple[NDArray[np.float32], str]]


def _half_names(name: str, half: str) -> tuple[str, ...]:
    stem = f"{name}_{half}.ts"
    # aeon unpacks a set into a folder of its name.
    return f"{stem}.xz", stem, f"{name}/{stem}"


@lru_cache(maxsize=4)
def _read_half(path: Path, changed: int) -> Series:
    return read_ts(path)


def read_set(name: str, data: DataPath | None = None) -> tuple[Series, Series]:
    """Read both halves of a set, TRAIN and TEST, as lists of (values (time, channels), label).

    Args:
        name: the set's name in the archive, such as "BasicMotions".
        data: folder with its files; None searches `LRCNET_DATA`, then the cache.

    Raises:
        FileNotFoundError: when a file is missing.
        ValueError: when a file does not follow the format.
    """
    paths = find_files("uea", [_half_names(name, half) for half in ("TRAIN", "TEST")], data)
    train, test = (_read_half(path, path.stat().st_mtime_ns) for path in paths)
    return train, test


def read_published(path: Path, name: str, seed: str, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the rows of validation and of test of a published split, numbered through TRAIN and then TEST.

    Raises:
        ValueError: for a file that does not hold this split, or rows that a set of `count` rows does not have.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))[name][seed]
        parts = [np.array(content[part]) for part in ("val", "test")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path.name} must hold the split {seed} of {name} and does not ({error!r})") from error
    if any(part.ndim != 1 or part.dtype.kind != "i" for part in parts):
        raise ValueError(f"{path.name} must list whole numbers of rows for {name}, split {seed}")
    rows = np.concatenate(parts)
    if len(set(rows.tolist())) != len(rows) or (len(rows) and not (rows.min() >= 0 and rows.max() < count)):
        raise ValueError(f"{path.name} must list different rows from 0 to {count - 1} for {name}, split {seed}")
    return parts[0], parts[1]


def choose_rows(split: str, train: int, test: int) -> NDArray[np.int64]:
    """Return the rows of a split of the archive: a fifth of its TRAIN, chosen at random, is for validation."""
    if split == "test":
        return np.arange(train, train + test)
    if train < 2:
        raise ValueError(f"a set must have at least 2 training sequences, one for validation, but has {train}")
    order = np.random.RandomState(SPLIT_SEED).permutation(train)
    held_out = max(1, int(VALIDATION_SHARE * train))
    return order[:held_out] if split == "validation" else order[held_out:]


def prepare(name: str, series: Series, fitted: Sequence[int], chosen: Sequence[int]) -> RaggedSamples:
    """Return chosen sequences, with every channel standardised by the `fitted` ones.

    Raises:
        ValueError: for missing values, a channel that is constant in the fitted sequences, or a label that does not
            occur in them.
    """
    for number in (*fitted, *chosen):
        missing = np.isnan(series[number][0])
        if missing.any():
            step, channel = np.argwhere(missing)[0]
            raise ValueError(
                f"sequence {number} of {name} must have a value at every step, but channel {channel} has none at step "
                f"{step}; fill missing values or cut the sequence first"
            )
    readings = np.concatenate([series[number][0] for number in fitted])
    mean, spread = readings.mean(0, dtype=np.float64), readings.std(0, dtype=np.float64)
    if not spread.all():
        raise ValueError(
            f"every channel of {name} must vary in the training sequences, but channel {int(np.argmin(spread))} is "
            "constant; leave it out"
        )
    classes = sorted({series[number][1] for number in fitted})
    labels = list(number_labels(classes, [series[number][1] for number in chosen]))
    rows = np.concatenate([(series[number][0] - mean) / spread for number in chosen]).astype(np.float32)
    lengths = torch.tensor([len(series[number][0]) for number in chosen])
    return RaggedSamples(torch.from_numpy(rows), None, lengths, torch.tensor(labels))


def _load(variant: str, split: str, data: DataPath | None) -> RaggedSamples:
    short, _, seed = variant.partition("-")
    name = _SETS[short]
    train, test = read_set(name, data)
    series = [*train, *test]
    if seed:
        (path,) = find_files("uea", [_SPLITS], data)
        validation, held_out = read_published(path, name, seed, len(series))
        others = np.setdiff1d(np.arange(len(series)), np.concatenate([validation, held_out]))
        rows = {"train": others, "validation": validation, "test": held_out}
    else:
        rows = {part: choose_rows(part, len(train), len(test)) for part in ("train", "validation", "test")}
    return prepare(name, series, rows["train"].tolist(), rows[split].tolist())


def _task(variant: str) -> Task:
    source = SOURCES["uea"]
    short, _, seed = variant.partition("-")
    channels, steps, published, own = _SIZES[short]
    return Task(
        name="uea",
        variant=variant,
        variants=tuple(_NOTES),
        title=_SETS[short],
        kind="label-per-padded-sequence",
        input_size=channels,
        vocabulary=0,
        output_size=2,
        length=steps,
        splits=dict(zip(("train", "validation", "test"), published if seed else own, strict=True)),
        irregular=False,
        negative_dt="error",
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        maximise=True,
        # The papers evaluate after every 1000 steps, about ten epochs here, and stop after ten evaluations in vain.
        recipe=Recipe("adam", 1e-3, None, 1e-8, 4, 1000, None, "best-validation", evaluate_every=10, patience=10),
        citation=source.citation,
        licence=source.licence,
        notes=_NOTES[variant],
        reader=_load,
        files=tuple(_half_names(_SETS[short], half) for half in ("TRAIN", "TEST")) + ((_SPLITS,) if seed else ()),
    )


_STANDARDISED = "channels standardised by the training rows"
_NOTES = {
    **{f"{short}-{seed}": f"published split {seed}; {_STANDARDISED}" for short in _SETS for seed in PUBLISHED},
    **dict.fromkeys(_SETS, f"the archive's split, a fifth of its TRAIN for validation; {_STANDARDISED}"),
}
VARIANTS: dict[str, Task] = {variant: _task(variant) for variant in _NOTES}
"""The published splits of both sets, then the archive's split of each."""


def archive_task(name: str, data: str | os.PathLike[str]) -> Task:
    """Describe any classification set of the archives as a task, to be registered with `lrcnet_paper.tasks.register`.

    Args:
        name: the set's name, such as "BasicMotions".
        data: folder with NAME_TRAIN.ts and NAME_TEST.ts, or with a folder NAME that has them, as
            `aeon.datasets.load_classification(NAME, extract_path=data)` leaves it.

    Returns:
        A task of that name with the archive's split; a fifth of its TRAIN is for validation.

    Raises:
        FileNotFoundError, ValueError: as `read_set`.
    """
    train, test = read_set(name, data)
    # Every fault of the files is found here, not in the middle of a grid.
    parts = {
        split: prepare(
            name,
            [*train, *test],
            choose_rows("train", len(train), len(test)).tolist(),
            choose_rows(split, len(train), len(test)).tolist(),
        )
        for split in ("train", "validation", "test")
    }
    return replace(
        VARIANTS["scp1"],
        name=name,
        variant="archive",
        variants=("archive",),
        title=name,
        input_size=train[0][0].shape[1],
        output_size=len({label for _, label in train}),
        length=max(len(values) for values, _ in (*train, *test)),
        splits=dict.fromkeys(parts, ANY_NUMBER),
        notes=_NOTES["scp1"],
        citation="the archive's page of the set",
        licence="as the archive states",
        reader=lambda variant, split, folder: parts[split],
        files=(),
    )
