"""IMDB movie reviews: positive or negative, from the last 256 words."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .data_folders import find_files
from .imdb_files import Reviews, read_keras, read_ranks, read_texts, read_word_index
from .losses_and_metrics import binary_accuracy, binary_accuracy_above_half, binary_cross_entropy
from .sources import SOURCES
from .task import DataPath, Recipe, Samples, Task

VOCABULARY = 20_000
LENGTH = 256
PADDING, START, UNKNOWN = 0, 1, 2
SHIFT = 3
VALIDATION = 2_500
SPLIT_SEED = 0

_TEXTS = ("aclImdb_labeled.tar.xz", "aclImdb_v1.tar.gz", "aclImdb_v1.tar", "aclImdb")
_INDEX = ("imdb_word_index.json",)
_FILES = {"text": (_TEXTS, _INDEX), "ranks": (("imdb_tokens.npz",),), "keras": (("imdb.npz",),)}
_NOTES = {
    "text": "the original reviews, ranked by Keras' word index",
    "ranks": "the same reviews as word ranks with offsets: the same samples as `text`, read faster",
    "keras": "Keras' encoded file, in its own order",
}


def encode(reviews: Reviews, length: int = LENGTH, vocabulary: int = VOCABULARY) -> NDArray[np.int64]:
    """Turn word ranks into token indices as Keras does.

    Index 0 is padding, 1 begins each review, 2 is a word that is unknown or too rare, rank + 3 is any other word.
    Reviews are truncated and padded at the front, so that their end comes last.

    Args:
        reviews: reviews as word ranks.
        length: number of indices per review.
        vocabulary: number of different indices; ranks up to vocabulary - 4 are kept.

    Returns:
        (reviews, length) int64.

    Example:
        >>> three = Reviews(np.array([1, 9, 0]), np.array([0, 3]), np.array([1]))
        >>> encode(three, length=6, vocabulary=10)
        array([[0, 0, 1, 4, 2, 2]])
    """
    known = (reviews.ranks > 0) & (reviews.ranks + SHIFT < vocabulary)
    indices = np.where(known, reviews.ranks + SHIFT, UNKNOWN)
    result = np.full((len(reviews.labels), length), PADDING, dtype=np.int64)
    for row, (begin, end) in enumerate(zip(reviews.offsets[:-1], reviews.offsets[1:], strict=True)):
        words = min(int(end - begin), length)
        result[row, length - words :] = indices[end - words : end]
        if words < length:
            result[row, length - words - 1] = START
    return result


@lru_cache(maxsize=1)
def _read_cached(variant: str, path: Path, index: Path | None, changed: tuple[int, ...]) -> dict[str, Reviews]:
    if variant == "keras":
        return read_keras(path)
    if index is None:
        return read_ranks(path)
    return read_texts(path, read_word_index(index))


def read(variant: str, data: DataPath | None = None) -> dict[str, Reviews]:
    """Read both original splits as word ranks, with the variant's reader; the last variant read is cached.

    Args:
        variant: "text", "ranks" or "keras".
        data: folder with the files; None searches `LRCNET_DATA`, then the cache.

    Returns:
        "train" and "test".
    """
    if variant not in _NOTES:
        raise ValueError(f"variant must be one of {list(_NOTES)}; got {variant!r}")
    path, *others = find_files("imdb", _FILES[variant], data)
    index = others[0] if others else None
    changed = tuple(file.stat().st_mtime_ns for file in (path, *others))
    return _read_cached(variant, path, index, changed)


def _load(variant: str, split: str, data: DataPath | None) -> Samples:
    reviews = read(variant, data)["test" if split == "test" else "train"]
    x, y = torch.from_numpy(encode(reviews)), torch.from_numpy(reviews.labels.copy())
    if split != "test":
        if len(y) <= VALIDATION:
            raise ValueError(f"the training reviews must be more than the {VALIDATION} for validation; got {len(y)}")
        order = torch.from_numpy(np.random.RandomState(SPLIT_SEED).permutation(len(y)))
        chosen = order[:VALIDATION] if split == "validation" else order[VALIDATION:]
        x, y = x[chosen], y[chosen]
    return Samples(x, None, y)


def _task(variant: str) -> Task:
    source = SOURCES["imdb"]
    return Task(
        name="imdb",
        variant=variant,
        variants=tuple(_NOTES),
        title="IMDB movie sentiment",
        kind="label-per-sequence",
        input_size=0,
        vocabulary=VOCABULARY,
        output_size=1,
        length=LENGTH,
        splits={"train": 22_500, "validation": VALIDATION, "test": 25_000},
        irregular=False,
        negative_dt="error",
        loss=binary_cross_entropy,
        metrics={"accuracy": binary_accuracy, "accuracy_above_half": binary_accuracy_above_half},
        maximise=True,
        recipe=Recipe("adam", 1e-3, None, 1e-7, 64, 30, None, "best-validation"),
        citation=source.citation,
        licence=source.licence,
        notes=f"{_NOTES[variant]}; 123 texts occur in both splits",
        reader=_load,
        files=_FILES[variant],
    )


VARIANTS: dict[str, Task] = {variant: _task(variant) for variant in _NOTES}
"""Every variant of the task, the original texts first."""
