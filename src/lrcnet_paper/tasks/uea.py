"""Sets of the UEA and UCR archives, read from .ts files: SelfRegulationSCP1 and SCP2 by name, any other by a function.

The five published splits of SCP1 and SCP2 are those of the papers on state-space models (LinOSS, LrcSSM).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lrcnet_paper.archive_sets import LabelledSeries, number_labels, read_ts

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
Series = list[LabelledSeries]


def _half_names(name: str, half: str) -> tuple[str, ...]:
    stem = f"{name}_{half}.ts"
    # aeon unpacks a set into a folder of its name.
    return f"{stem}.xz", stem, f"{name}/{stem}"


@lru_cache(maxsize=4)
def _read_half(path: Path, changed: int) -> Series:
    return read_ts(path)


def read_set(name: str, data: DataPath | None = None) -> tuple[Series, Series]:
    """Read both halves of a set, TRAIN and TEST.

    Args:
        name: the set's name in the archive, such as "BasicMotions".
        data: folder with its files; None searches `LRCNET_DATA`, then the cache.

    Raises:
        FileNotFoundError: when a file is missing.
        ValueError: when a file does not follow the format.
    """
    try:
        paths = find_files("uea", [_half_names(name, half) for half in ("TRAIN", "TEST")], data)
    except FileNotFoundError as error:
        if name in _SETS.values():
            raise
        # `lrcnet data get uea`, which that error suggests, brings the two sets of the tasks only.
        folder = "the data folder" if data is None else os.fspath(data)
        raise FileNotFoundError(
            f"the set {name!r} must have {name}_TRAIN.ts and {name}_TEST.ts in {folder} or in its folder {name}, but a "
            f"file is missing; get the set with `aeon.datasets.load_classification({name!r}, extract_path=FOLDER)`, or "
            f"from {SOURCES['uea'].homepage}"
        ) from error
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


def choose_rows(split: str, labels: Sequence[str], test: int) -> NDArray[np.int64]:
    """Return the rows of a split of the archive: a fifth of its TRAIN, chosen at random, is for validation.

    Every class keeps at least one training sequence, so that a class with a single one is not in validation.

    Args:
        split: "train", "validation" or "test".
        labels: the labels of TRAIN.
        test: the number of sequences of TEST.

    Raises:
        ValueError: if no class has two training sequences.
    """
    train = len(labels)
    if split == "test":
        return np.arange(train, train + test)
    order, left = np.random.RandomState(SPLIT_SEED).permutation(train), Counter(labels)
    held_out: list[int] = []
    for row in order.tolist():
        if len(held_out) < max(1, int(VALIDATION_SHARE * train)) and left[labels[row]] > 1:
            held_out.append(row)
            left[labels[row]] -= 1
    if not held_out:
        raise ValueError(
            f"some class must have at least 2 training sequences, one of them for validation, but each of {len(left)} "
            f"classes has 1; add sequences"
        )
    return np.array(held_out) if split == "validation" else order[~np.isin(order, held_out)]


def prepare(
    name: str,
    series: Series,
    classes: list[str],
    fitted: Sequence[int],
    chosen: Sequence[int],
    channels: Sequence[int] | None = None,
) -> RaggedSamples:
    """Return chosen sequences, with every channel standardised by the `fitted` ones.

    Args:
        name: the set's name, for messages.
        series: all sequences.
        classes: the names of the classes, in the order of their numbers.
        fitted: rows that give mean and standard deviation.
        chosen: rows to return.
        channels: channels to keep, in this order; all if None.

    Raises:
        ValueError: for missing values, a channel that is empty or constant in the fitted sequences, or a label that is
            not one of the classes.
    """
    kept = list(range(series[0].values.shape[1])) if channels is None else list(channels)
    readings = np.concatenate([series[number].values[:, kept] for number in fitted])
    _refuse_channels(name, kept, np.isnan(readings).all(0), "have values", "empty")
    for number in (*fitted, *chosen):
        _check_complete(series[number], kept)
    # Rounding of the mean gives a long constant channel a deviation above 0.
    _refuse_channels(name, kept, readings.min(0) == readings.max(0), "vary", "constant")
    mean, spread = readings.mean(0, dtype=np.float64), readings.std(0, dtype=np.float64)
    labels = number_labels(classes, [series[number] for number in chosen])
    rows = [(series[number].values[:, kept] - mean) / spread for number in chosen]
    lengths = torch.tensor([len(row) for row in rows])
    return RaggedSamples(torch.from_numpy(np.concatenate(rows).astype(np.float32)), None, lengths, torch.tensor(labels))


def _refuse_channels(name: str, kept: list[int], wrong: NDArray[np.bool_], must: str, state: str) -> None:
    """Raise if some channels are wrong in all training sequences, and say how to leave them out."""
    if not wrong.any():
        return
    bad = [channel for channel, is_wrong in zip(kept, wrong, strict=True) if is_wrong]
    others = [channel for channel in kept if channel not in bad]
    listed = f"channel {bad[0]} is" if len(bad) == 1 else f"channels {', '.join(map(str, bad))} are"
    remedy = (
        f"keep the others by archive_task(..., channels={others})" if others else "no channel is left to learn from"
    )
    raise ValueError(f"every channel of {name} must {must} in the training sequences, but {listed} {state}; {remedy}")


def _check_complete(series: LabelledSeries, kept: list[int]) -> None:
    missing = np.isnan(series.values[:, kept])
    if not missing.any():
        return
    step, place = np.argwhere(missing)[0]
    where = "is empty" if missing[:, place].all() else f"has none at step {step}"
    raise ValueError(
        f"{series.place} must have a value at every step, but channel {kept[place]} {where}; fill missing values, cut "
        "the sequence, or keep other channels by archive_task(..., channels=[...])"
    )


def _name_classes(train: Series) -> list[str]:
    """Return the classes of a set: the labels of its TRAIN, whatever part of it is for validation."""
    return sorted({one.label for one in train})


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
        labels = [one.label for one in train]
        rows = {part: choose_rows(part, labels, len(test)) for part in ("train", "validation", "test")}
    return prepare(name, series, _name_classes(train), rows["train"].tolist(), rows[split].tolist())


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


def archive_task(name: str, data: str | os.PathLike[str], *, channels: Sequence[int] | None = None) -> Task:
    """Describe any classification set of the archives as a task, to be registered with `lrcnet_paper.tasks.register`.

    Args:
        name: the set's name, such as "BasicMotions".
        data: folder with NAME_TRAIN.ts and NAME_TEST.ts, or with a folder NAME that has them, as
            `aeon.datasets.load_classification(NAME, extract_path=data)` leaves it.
        channels: numbers of the channels to keep, from 0 on; None keeps all. A channel that is empty or constant must
            be left out.

    Returns:
        A task of that name with the archive's split. A fifth of its TRAIN is for validation, and every class keeps at
        least one training sequence.

    Raises:
        FileNotFoundError, ValueError: as `read_set`, `choose_rows` and `prepare`.
    """
    train, test = read_set(name, data)
    series, labels, classes = [*train, *test], [one.label for one in train], _name_classes(train)
    kept = _check_channels(name, channels, train[0].values.shape[1])
    widths = {one.values.shape[1] for one in series}
    if len(widths) > 1:
        raise ValueError(f"TRAIN and TEST of {name} must have equally many channels, but have {sorted(widths)}")
    rows = {split: choose_rows(split, labels, len(test)).tolist() for split in ("train", "validation", "test")}
    # Every fault of the files is found here, not in the middle of a grid.
    parts = {split: prepare(name, series, classes, rows["train"], rows[split], kept) for split in rows}
    return replace(
        VARIANTS["scp1"],
        name=name,
        variant="archive",
        variants=("archive",),
        title=name,
        input_size=len(kept),
        output_size=len(classes),
        length=max(len(one.values) for one in series),
        splits=dict.fromkeys(parts, ANY_NUMBER),
        notes=_NOTES["scp1"],
        citation="the archive's page of the set",
        licence="as the archive states",
        reader=lambda variant, split, folder: parts[split],
        files=(),
    )


def _check_channels(name: str, given: Sequence[int] | None, count: int) -> list[int]:
    """Return the channels to keep, or all of them for None; raise unless they are different channels of the set."""
    if given is None:
        return list(range(count))
    kept = list(given)
    whole = all(isinstance(one, Integral) and not isinstance(one, bool) and 0 <= one < count for one in kept)
    if not kept or not whole or len(set(kept)) < len(kept):
        raise ValueError(
            f"channels must be different whole numbers from 0 to {count - 1} for {name}, but are {kept}; pass those to "
            "keep"
        )
    return [int(one) for one in kept]
