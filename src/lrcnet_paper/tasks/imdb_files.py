"""Readers of the IMDB reviews: the original texts, Keras' encoded file, and ranks with offsets.

All readers return the same data: for each split the reviews as lists of word ranks (1 = the most frequent word, 0 = not
in the index), laid end to end, and the labels.
"""

from __future__ import annotations

import json
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .archive_arrays import read_arrays
from .unpack import members_of

_SEPARATORS = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
_BLANKS = str.maketrans(_SEPARATORS, " " * len(_SEPARATORS))
_REVIEW = re.compile(r"(?:.*/)?(train|test)/(pos|neg)/(\d+)_(\d+)\.txt")


@dataclass(frozen=True)
class Reviews:
    """The reviews of one split.

    Attributes:
        ranks: word ranks of all reviews, end to end, (tokens,) int64.
        offsets: review k is ranks[offsets[k]:offsets[k + 1]], (reviews + 1,) int64.
        labels: 1 for a positive review, 0 for a negative one, (reviews,) int64.
    """

    ranks: NDArray[np.int64]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]


def split_words(text: str) -> list[str]:
    """Split a review as Keras' word index was made: in lower case, with all punctuation but the apostrophe as blanks.

    Only the blank separates words: other white space (such as a no-break space) stays inside its word.

    Example:
        >>> split_words("It's GREAT!<br />10/10")
        ["it's", 'great', 'br', '10', '10']
    """
    return [word for word in text.lower().translate(_BLANKS).split(" ") if word]


def read_word_index(path: Path) -> dict[str, int]:
    """Read `imdb_word_index.json`: word -> rank, from 1.

    Raises:
        ValueError: for a file that is not such a table.
    """
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} must be a complete JSON file and is not ({error}); get it again") from error
    if not isinstance(index, dict) or not index or not all(isinstance(r, int) and r > 0 for r in index.values()):
        raise ValueError(f"{path.name} must map words to ranks from 1; it holds something else, get it again")
    return index


def _texts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (path inside, bytes) of every review; archives are read once, in their order, and never unpacked."""
    if path.is_dir():
        for opinion in ("pos", "neg"):
            for file in path.glob(f"*/{opinion}/*.txt"):
                yield file.relative_to(path).as_posix(), file.read_bytes()
        return
    with tarfile.open(path, "r|*") as archive:
        for member in members_of(archive, path.name):
            stream = archive.extractfile(member) if member.isfile() and _REVIEW.fullmatch(member.name) else None
            if stream is not None:
                yield member.name, stream.read()


def read_texts(path: Path, index: Mapping[str, int]) -> dict[str, Reviews]:
    """Read the original reviews as word ranks.

    Args:
        path: an archive (.tar, .tar.gz, .tar.xz) or a folder that holds train|test/pos|neg/ID_RATING.txt.
        index: word -> rank.

    Returns:
        "train" and "test", positive reviews first, each half in the order of the reviews' numbers.

    Raises:
        ValueError: for a truncated archive, a text that is not UTF-8, or a split without reviews.
    """
    by_split: dict[str, list[tuple[int, int, int, list[int]]]] = {"train": [], "test": []}
    try:
        for name, content in _texts(path):
            match = _REVIEW.fullmatch(name)
            if match is None:
                continue
            split, opinion, number, rating = match.groups()
            ranks = [index.get(word, 0) for word in split_words(content.decode("utf-8"))]
            by_split[split].append((int(opinion == "neg"), int(number), int(rating), ranks))
    # tarfile raises a TypeError for a gzip header that ends early.
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, TypeError) as error:
        raise ValueError(
            f"{path.name} must be a complete archive of reviews and is not ({error}); get it again"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} in {path.name} must be UTF-8 text and is not ({error})") from error
    empty = [split for split, reviews in by_split.items() if not reviews]
    if empty:
        raise ValueError(f"{path.name} must hold reviews as train|test/pos|neg/ID_RATING.txt; it has none in {empty}")
    return {split: _join(sorted(reviews)) for split, reviews in by_split.items()}


def _join(reviews: list[tuple[int, int, int, list[int]]]) -> Reviews:
    lists = [ranks for *_, ranks in reviews]
    return _from_lists(lists, np.array([1 - negative for negative, *_ in reviews], dtype=np.int64))


def _from_lists(lists: list[list[int]], labels: NDArray[np.int64]) -> Reviews:
    offsets = np.concatenate([[0], np.cumsum([len(ranks) for ranks in lists])]).astype(np.int64)
    ranks = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=int(offsets[-1]))
    return Reviews(ranks, offsets, labels)


def _check_labels(path: Path, labels: NDArray[np.int64]) -> None:
    if labels.ndim != 1 or not len(labels) or not np.isin(labels, (0, 1)).all():
        raise ValueError(f"{path.name} must have labels 0 and 1, one per review; it has {np.unique(labels)[:5]}")


def read_keras(path: Path) -> dict[str, Reviews]:
    """Read Keras' `imdb.npz`: object arrays x_train, x_test of lists of ranks, and labels y_train, y_test.

    Returns:
        "train" and "test", in the file's order.

    Raises:
        ValueError: for a file that is truncated or holds anything else.
    """
    arrays = read_arrays(path, ("x_train", "y_train", "x_test", "y_test"))
    result = {}
    for split in ("train", "test"):
        reviews, labels = arrays[f"x_{split}"], arrays[f"y_{split}"].astype(np.int64)
        _check_labels(path, labels)
        if reviews.ndim != 1 or len(reviews) != len(labels):
            raise ValueError(
                f"{path.name} must have one review per label; x_{split} has shape {reviews.shape} for {len(labels)}"
            )
        lists = [list(review) for review in reviews if isinstance(review, (list, tuple, np.ndarray))]
        numbers = all(isinstance(rank, (int, np.integer)) and rank >= 0 for rank in chain.from_iterable(lists))
        if len(lists) != len(reviews) or not numbers:
            raise ValueError(f"{path.name} must hold lists of word ranks in x_{split}; it holds something else")
        result[split] = _from_lists(lists, labels)
    return result


def read_ranks(path: Path) -> dict[str, Reviews]:
    """Read ranks with offsets: {train,test}_{tokens,offsets,labels} of an .npz file.

    Returns:
        "train" and "test", in the file's order.

    Raises:
        ValueError: for a file that is truncated or has offsets that do not fit its tokens.
    """
    kinds = ("tokens", "offsets", "labels")
    arrays = read_arrays(path, tuple(f"{split}_{kind}" for split in ("train", "test") for kind in kinds))
    result = {}
    for split in ("train", "test"):
        ranks, offsets, labels = (arrays[f"{split}_{kind}"].astype(np.int64) for kind in kinds)
        _check_labels(path, labels)
        fits = len(offsets) == len(labels) + 1 and offsets[0] == 0 and offsets[-1] == len(ranks)
        if not fits or (np.diff(offsets) < 0).any() or (ranks < 0).any():
            raise ValueError(
                f"{path.name} must have rising offsets from 0 to the {len(ranks)} tokens of {split}, one more than its "
                f"{len(labels)} labels; it has {len(offsets)} from {offsets[:1]} to {offsets[-1:]}"
            )
        result[split] = Reviews(ranks, offsets, labels)
    return result
