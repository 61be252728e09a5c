"""PhysioNet Challenge 2012: does a patient in intensive care die in hospital, from the readings of 48 hours.

A reading is every variable that was measured in one minute. Its inputs are the last value of each of the 37 variables,
a mask that is 1 for those measured now, and the patient's age, gender, height and type of unit.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .data_folders import find_files
from .losses_and_metrics import area_under_curve, binary_accuracy, binary_cross_entropy
from .physionet_files import SERIES, STATIC, Stay, read_stays
from .ragged import RaggedSamples
from .sources import SOURCES
from .task import DataPath, Recipe, Task

SETS = ("a", "b")
STAYS = 8_000
UNIT_TYPES = 4
# Typing errors of the files are tens of standard deviations away from the mean.
FARTHEST = 5.0
SPLITS = {"train": 5_120, "validation": 1_280, "test": 1_600}
FOLDS = 5
_ALL = "physionet2012_sets_abc.tar.xz"
FILES = tuple((_ALL, name) for name in ("set-a.tar.gz", "set-b.tar.gz", "Outcomes-a.txt", "Outcomes-b.txt"))


def split_stays(fold: int, count: int) -> dict[str, NDArray[np.int64]]:
    """Split stays at random: each of the five folds is for testing once; a fifth of the others is for validation."""
    order = np.random.RandomState(0).permutation(count)
    test = order[fold * count // FOLDS : (fold + 1) * count // FOLDS]
    others = np.random.RandomState(fold).permutation(np.setdiff1d(order, test))
    held_out = len(others) // 5
    return {"train": others[held_out:], "validation": others[:held_out], "test": test}


def encode(
    stays: list[Stay], labels: NDArray[np.int64], fitted: NDArray[np.int64], chosen: NDArray[np.int64]
) -> RaggedSamples:
    """Return chosen stays as inputs, standardised by the fitted ones.

    Returns:
        Channels: 37 last values (0, the mean, before the first one), 37 masks, age, gender and height (0 if unknown),
        and the type of the unit as four columns. Gaps in hours; the first one begins with the admission.

    Raises:
        ValueError: if a variable was never measured in the fitted stays.
    """
    measured = np.concatenate([stays[number].values for number in fitted])
    seen = ~np.isnan(measured)
    if not seen.any(0).all():
        column = int(np.argmin(seen.any(0)))
        raise ValueError(f"every variable must be measured in the training stays, but {SERIES[column]} never is")
    mean, spread = _fit(measured)
    static = np.stack([stays[number].static for number in fitted])
    static_mean, static_spread = _fit(static)
    rows, gaps = [], []
    for number in chosen:
        stay = stays[number]
        mask = ~np.isnan(stay.values)
        values = np.clip((stay.values - mean) / spread, -FARTHEST, FARTHEST)
        last = np.maximum.accumulate(np.where(mask, np.arange(len(values))[:, None], -1))
        filled = np.where(last < 0, 0.0, np.take_along_axis(values, np.maximum(last, 0), 0))
        person = np.nan_to_num(((stay.static - static_mean) / static_spread).clip(-FARTHEST, FARTHEST))[
            : len(STATIC) - 1
        ]
        unit = np.arange(1, UNIT_TYPES + 1) == stay.static[-1]
        constant = np.tile(np.concatenate([person, unit]), (len(values), 1))
        rows.append(np.concatenate([filled, mask, constant], 1).astype(np.float32))
        gaps.append(np.diff(stay.hours, prepend=0.0).astype(np.float32))
    return RaggedSamples(
        torch.from_numpy(np.concatenate(rows)),
        torch.from_numpy(np.concatenate(gaps)),
        torch.tensor([len(one) for one in rows]),
        torch.from_numpy(labels[chosen]),
    )


def _fit(values: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # A descriptor that nobody has counts as 0.
    seen = (~np.isnan(values)).sum(0).clip(1)
    mean = np.nansum(values, 0, dtype=np.float64) / seen
    spread = np.sqrt(np.nansum((values - mean) ** 2, 0) / seen)
    # MechVent is 1 wherever it is measured: its mask says everything.
    return mean, np.where(spread > 0, spread, 1.0)


@lru_cache(maxsize=1)
def _read_stays(paths: tuple[Path, ...], changed: tuple[int, ...]) -> tuple[list[Stay], NDArray[np.int64]]:
    return read_stays(paths, SETS)


@lru_cache(maxsize=1)
def _encode_fold(fold: int, paths: tuple[Path, ...], changed: tuple[int, ...]) -> dict[str, RaggedSamples]:
    stays, labels = _read_stays(paths, changed)
    rows = split_stays(fold, len(stays))
    return {split: encode(stays, labels, rows["train"], chosen) for split, chosen in rows.items()}


def _load(variant: str, split: str, data: DataPath | None) -> RaggedSamples:
    paths = find_files("physionet", FILES, data)
    changed = tuple(path.stat().st_mtime_ns for path in paths)
    return _encode_fold(int(variant.removeprefix("fold-")) - 1, paths, changed)[split]


def _task(variant: str, notes: str) -> Task:
    source = SOURCES["physionet"]
    return Task(
        name="physionet",
        variant=variant,
        variants=tuple(_NOTES),
        title="PhysioNet 2012, in-hospital mortality",
        kind="label-per-padded-sequence",
        input_size=2 * len(SERIES) + len(STATIC) - 1 + UNIT_TYPES,
        vocabulary=0,
        output_size=1,
        length=203,
        splits=SPLITS,
        irregular=True,
        negative_dt="error",
        loss=binary_cross_entropy,
        metrics={"auc": area_under_curve, "accuracy": binary_accuracy},
        maximise=True,
        recipe=Recipe("adam", 1e-3, None, 1e-8, 128, 30, None, "best-validation", patience=5),
        citation=source.citation,
        licence=source.licence,
        notes=notes,
        reader=_load,
        files=FILES,
        masked=len(SERIES),
    )


_NOTES = {
    f"fold-{number}": f"sets a and b, {STAYS} stays, fold {number} of {FOLDS} for testing" for number in (1, 2, 3, 4, 5)
}
VARIANTS: dict[str, Task] = {variant: _task(variant, notes) for variant, notes in _NOTES.items()}
"""The five folds."""
