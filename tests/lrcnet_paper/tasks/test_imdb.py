"""The three readers of the reviews agree with each other, with the encoding, and with the real files."""

import dataclasses
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch

from lrcnet_paper.tasks import find, imdb
from lrcnet_paper.tasks.imdb_files import Reviews, read_keras, read_ranks, read_texts, read_word_index, split_words

from .conftest import LABELS, RANKS, REVIEWS, WORD_INDEX


def lists(reviews: Reviews) -> list[list[int]]:
    return [reviews.ranks[a:b].tolist() for a, b in zip(reviews.offsets[:-1], reviews.offsets[1:], strict=True)]


def object_array(rows: list) -> np.ndarray:
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


HEADER = b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }\n"
OBJECTS = b"\x93NUMPY\x01\x00" + len(HEADER).to_bytes(2, "little") + HEADER


def keras_file(path, **changed):
    arrays = {f"x_{s}": object_array(RANKS[s]) for s in RANKS} | {f"y_{s}": np.array(LABELS[s]) for s in LABELS}
    np.savez(path, **{k: v for k, v in (arrays | changed).items() if v is not None})
    return path


def ranks_file(path, **changed):
    arrays = {}
    for split, rows in RANKS.items():
        arrays[f"{split}_tokens"] = np.array(sum(rows, []), dtype=np.int32)  # noqa: RUF017
        arrays[f"{split}_offsets"] = np.cumsum([0] + [len(row) for row in rows])
        arrays[f"{split}_labels"] = np.array(LABELS[split], dtype=np.int8)
    np.savez_compressed(path, **{k: v for k, v in (arrays | changed).items() if v is not None})
    return path


@pytest.mark.parametrize("name", ["aclImdb_v1.tar.gz", "aclImdb_labeled.tar.xz", "aclImdb"])
def test_texts_are_read_packed_and_unpacked(imdb_folder, name):
    reviews = read_texts(imdb_folder(name), WORD_INDEX)
    for split in ("train", "test"):
        assert lists(reviews[split]) == RANKS[split]
        assert reviews[split].labels.tolist() == LABELS[split]


def test_encoded_files_give_the_same_data_as_the_texts(imdb_folder, tmp_path):
    texts = read_texts(imdb_folder(), WORD_INDEX)
    for reviews in (read_keras(keras_file(tmp_path / "k.npz")), read_ranks(ranks_file(tmp_path / "r.npz"))):
        for split in ("train", "test"):
            assert lists(reviews[split]) == lists(texts[split])
            np.testing.assert_array_equal(reviews[split].labels, texts[split].labels)
            np.testing.assert_array_equal(imdb.encode(reviews[split]), imdb.encode(texts[split]))


def test_only_the_blank_and_punctuation_separate_words():
    assert split_words("A-b_c.d/E'f\tg\nh  i") == ["a", "b", "c", "d", "e'f", "g", "h", "i"]
    assert split_words("no\u00a0break \u0085next") == ["no\u00a0break", "\u0085next"]
    assert split_words("") == split_words("... -- !") == []


def test_encoding_cuts_and_pads_at_the_front():
    rows = [[], [1], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6], [0, 19_996, 19_997]]
    reviews = Reviews(
        np.array([r for row in rows for r in row]), np.cumsum([0] + [len(r) for r in rows]), np.zeros(len(rows))
    )
    expected = [[0, 0, 0, 1], [0, 0, 1, 4], [1, 4, 5, 6], [4, 5, 6, 7], [6, 7, 8, 9], [1, 2, 19_999, 2]]
    assert imdb.encode(reviews, length=4).tolist() == expected
    assert imdb.encode(reviews).shape == (6, 256)
    assert imdb.encode(reviews).max() == 19_999


def test_python_2_pickles_are_read(tmp_path):
    # Keras' file was written by an old protocol, in which bytes are spelt with a codec.
    old = {f"x_{s}": OBJECTS + pickle.dumps(object_array(RANKS[s]), protocol=2) for s in RANKS}
    path = keras_file(tmp_path / "k.npz", x_train=None, x_test=None)
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in old.items():
            archive.writestr(f"{name}.npy", content.replace(b"numpy._core", b"numpy.core"))
    assert lists(read_keras(path)["train"]) == RANKS["train"]


class Bomb:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ((os.system, ("touch exploded",)), r"posix\.system|nt\.system"),
        ((eval, ("open('exploded', 'w')",)), r"builtins\.eval"),
        ((getattr, ("text", "upper")), r"builtins\.getattr"),
        ((np.load, ("exploded",)), r"numpy\.load"),
    ],
)
def test_pickle_that_calls_something_is_refused_unrun(tmp_path, monkeypatch, call, name):
    monkeypatch.chdir(tmp_path)
    path = keras_file(tmp_path / "k.npz", x_train=object_array([Bomb(*call)] * 5))
    with pytest.raises(ValueError, match=f"arrays of numbers and lists only.*({name}) is not allowed"):
        read_keras(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not numpy at all",
        b"\x93NUMPY\x01\x00\x05\x00noise",
        # A pickle that asks for an array of a million million million numbers, and one that is no array.
        OBJECTS + pickle.dumps(object_array([1]), protocol=0).replace(b"(I0\ntp", b"(I1000000000000000000\ntp"),
        OBJECTS + pickle.dumps([1, 2]),
        OBJECTS + b"garbage",
        OBJECTS.replace(b"|O", b"<i"),
    ],
)
def test_array_that_is_none_is_explained(tmp_path, content):
    path = keras_file(tmp_path / "k.npz", x_train=None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x_train.npy", content)
    with pytest.raises(ValueError, match=r"k\.npz must (hold arrays of numbers and lists only|be a complete)"):
        read_keras(path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y_test": None}, r"must hold the arrays .* it lacks \['y_test'\]"),
        ({"y_test": np.array([0, 2])}, "must have labels 0 and 1"),
        ({"y_test": np.array([])}, "must have labels 0 and 1"),
        ({"x_test": object_array([[1]])}, "one review per label"),
        ({"x_test": object_array([[1], "word"])}, "must hold lists of word ranks in x_test"),
        ({"x_test": object_array([[1], [1.5]])}, "must hold lists of word ranks in x_test"),
        ({"x_test": object_array([[1], [-1]])}, "must hold lists of word ranks in x_test"),
    ],
)
def test_damaged_keras_file_is_explained(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        read_keras(keras_file(tmp_path / "k.npz", **changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"train_tokens": None}, r"it lacks \['train_tokens'\]"),
        ({"test_offsets": np.array([0, 3, 99])}, "must have rising offsets from 0 to the 7 tokens of test"),
        ({"test_offsets": np.array([0, 9, 7])}, "must have rising offsets"),
        ({"test_offsets": np.array([0, 7])}, "must have rising offsets"),
        ({"test_tokens": np.full(7, -1)}, "must have rising offsets"),
    ],
)
def test_damaged_ranks_are_explained(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        read_ranks(ranks_file(tmp_path / "r.npz", **changed))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 noise"])
@pytest.mark.parametrize("read", [read_keras, read_ranks])
def test_file_that_is_no_archive_is_explained(tmp_path, content, read):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"must be a complete \.npz file"):
        read(tmp_path / "x.npz")


@pytest.mark.parametrize("name", ["aclImdb_v1.tar.gz", "aclImdb_labeled.tar.xz"])
@pytest.mark.parametrize("part", [0, 0.5])
def test_archive_that_is_cut_off_is_explained(imdb_folder, name, part):
    path = imdb_folder(name)
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(ValueError, match="must be a complete archive of reviews"):
        read_texts(path, WORD_INDEX)


def test_reviews_must_be_utf8_and_in_both_splits(imdb_folder):
    folder = imdb_folder("aclImdb")
    (folder / "test/pos/5_8.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"test/pos/5_8\.txt in aclImdb must be UTF-8"):
        read_texts(folder, WORD_INDEX)
    only = {name: text for name, text in REVIEWS.items() if name.startswith("train")}
    with pytest.raises(ValueError, match=r"it has none in \['test'\]"):
        read_texts(imdb_folder("aclImdb_v1.tar.gz", only), WORD_INDEX)


@pytest.mark.parametrize("content", ["", "[1, 2]", "{}", '{"a": 0}', '{"a": "b"}', '{"a": 1'])
def test_word_index_must_map_words_to_ranks(tmp_path, content):
    (tmp_path / "i.json").write_text(content)
    with pytest.raises(ValueError, match=r"i\.json must (map words to ranks|be a complete JSON)"):
        read_word_index(tmp_path / "i.json")


def test_validation_rows_are_a_seeded_permutation(imdb_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(imdb, "VALIDATION", 2)
    imdb_folder()
    task = dataclasses.replace(find("imdb"), splits={"train": 3, "validation": 2, "test": 2})
    order = np.random.RandomState(0).permutation(5)
    every = imdb.encode(imdb.read("text", tmp_path)["train"])
    assert task.load("validation", tmp_path).x.tolist() == every[order[:2]].tolist()
    assert task.load("train", tmp_path).x.tolist() == every[order[2:]].tolist()
    assert task.load("test", tmp_path).y.tolist() == [1, 0]


def test_too_few_reviews_and_unknown_variants_are_refused(imdb_folder, tmp_path):
    imdb_folder()
    with pytest.raises(ValueError, match="more than the 2500 for validation; got 5"):
        find("imdb").load("train", tmp_path)
    with pytest.raises(ValueError, match=r"must be one of \['text', 'ranks', 'keras'\]; got 'bert'"):
        imdb.read("bert")


def test_word_index_is_found_beside_the_archive(imdb_folder, tmp_path):
    path = imdb_folder()
    assert lists(imdb.read("text", path)["test"]) == RANKS["test"]
    (tmp_path / "imdb/imdb_word_index.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"needs imdb_word_index\.json"):
        imdb.read("text", path)


def test_changed_word_index_is_read_anew(imdb_folder, tmp_path):
    imdb_folder()
    imdb.read("text", tmp_path)
    index = tmp_path / "imdb/imdb_word_index.json"
    index.write_text(json.dumps({"the": 5}))
    os.utime(index, ns=(1, 1))
    assert lists(imdb.read("text", tmp_path)["test"])[0] == [5, 5, 5]


def test_real_ranks_have_the_protocols_sizes(real_data, real_file):
    real_file("imdb/imdb_tokens.npz")
    task = find("imdb", "ranks")
    for split, size in task.splits.items():
        samples = task.load(split, real_data)
        assert samples.x.shape == (size, 256)
        assert 19_990 < samples.x.max() < 20_000
    assert samples.y.sum() == 12_500


@pytest.mark.slow
def test_real_texts_give_the_real_ranks_word_for_word(real_file):
    index = read_word_index(real_file("imdb/imdb_word_index.json"))
    assert len(index) == 88_584
    texts = read_texts(real_file("imdb/aclImdb_labeled.tar.xz"), index)
    ranks = read_ranks(real_file("imdb/imdb_tokens.npz"))
    for split in ("train", "test"):
        np.testing.assert_array_equal(texts[split].offsets, ranks[split].offsets)
        np.testing.assert_array_equal(texts[split].ranks, ranks[split].ranks)
        np.testing.assert_array_equal(texts[split].labels, ranks[split].labels)
        assert torch.bincount(torch.from_numpy(texts[split].labels)).tolist() == [12_500, 12_500]
