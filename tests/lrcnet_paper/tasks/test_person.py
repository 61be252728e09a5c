"""The person-activity readers, windows and splits, on tiny files and on the real ones."""

import dataclasses

import numpy as np
import pytest
import torch

from lrcnet_paper.tasks import find, person
from lrcnet_paper.tasks.person_files import ACTIVITIES, CLASSES, TAGS, read_coarse, read_official

from .conftest import ALL_SEQUENCES, person_rows


def with_sizes(variant: str, **splits: int):
    return dataclasses.replace(find("person", variant), splits=splits)


@pytest.mark.parametrize("name", ["ConfLongDemo_JSI.txt", "x.csv", "x.csv.xz", "x.txt.gz"])
def test_official_file_is_read_plain_and_packed(person_file, name):
    recordings = read_official(person_file(name))
    assert [r.name for r in recordings] == list(ALL_SEQUENCES)
    assert [len(r.labels) for r in recordings] == list(ALL_SEQUENCES.values())
    second = recordings[1]
    assert second.features.dtype == second.dt.dtype == np.float32
    np.testing.assert_array_equal(second.features[5], np.float32([0, 1, 0, 0, 5 / 7, 1.25, -5 / 3]))
    assert second.dt[0] == 5
    np.testing.assert_allclose(second.dt[1:7], 0.270296, rtol=1e-6)
    assert second.dt[7] == np.float32(-0.05)
    assert second.labels[0] == ACTIVITIES[list(ACTIVITIES)[1]]


def test_coarse_file_has_the_same_rows_without_time(person_file, coarse_file):
    fine, coarse = read_official(person_file()), read_coarse(coarse_file())
    for a, b in zip(fine, coarse, strict=True):
        assert a.name == b.name
        assert b.dt is None
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_array_equal(a.features[:, :4], b.features[:, :4])
        assert np.abs(a.features - b.features).max() < 0.1


def test_eleven_activities_make_seven_classes():
    assert sorted(set(ACTIVITIES.values())) == list(range(len(CLASSES)))
    assert len(ACTIVITIES) == 11
    assert len(TAGS) == 4


def test_windows_begin_every_16_rows_and_stop_before_the_end(person_file):
    recordings = read_official(person_file(sequences={"A01": 64, "A02": 65, "A03": 32}))
    samples = person.cut_windows(recordings)
    assert len(samples) == len(range(0, 64 - 32, 16)) + len(range(0, 65 - 32, 16)) == 5
    x, dt, y = samples[4]
    np.testing.assert_array_equal(x, recordings[1].features[32:64])
    np.testing.assert_array_equal(dt, recordings[1].dt[32:64])
    np.testing.assert_array_equal(y, recordings[1].labels[32:64])


def test_faithful_split_is_the_seeded_permutation_of_24_sequences(person_file, tmp_path):
    everything = person.cut_windows(read_official(person_file())[:-1])
    total = len(everything)
    order = np.random.RandomState(98841).permutation(total)
    tests = int(0.2 * total)
    test = with_sizes("full", test=tests).load("test", tmp_path)
    train = with_sizes("full", train=total - tests).load("train", tmp_path)
    assert torch.equal(test.x, everything.x[order[:tests]])
    assert torch.equal(train.dt, everything.dt[order[tests:]])
    assert torch.equal(train.y, everything.y[order[tests:]])
    assert (train.dt < 0).any()
    assert find("person", "full").negative_dt == "allow"


def test_all_25_sequences_are_an_option(person_file, tmp_path):
    total = len(person.cut_windows(read_official(person_file())))
    assert len(with_sizes("full-25", test=int(0.2 * total)).load("test", tmp_path)) == int(0.2 * total)


def test_part_is_read_from_the_part_or_from_the_whole(person_file, tmp_path):
    person_file()
    sizes = {"train": 9, "test": 2}
    whole = with_sizes("a01-a04", **sizes).load("train", tmp_path)
    (tmp_path / "person_activity/ConfLongDemo_JSI.txt").unlink()
    four = {name: rows for name, rows in ALL_SEQUENCES.items() if name in ("A01", "A02", "A03", "A04")}
    path = person_file("ConfLongDemo_JSI_A01-A04.csv.xz", four)
    part = with_sizes("a01-a04", **sizes).load("train", tmp_path)
    assert torch.equal(whole.x, part.x)
    assert torch.equal(with_sizes("a01-a04", **sizes).load("train", path).x, part.x)


def test_clean_split_shares_no_sequence_and_has_no_negative_gap(person_file, tmp_path):
    parts = person.split_by_sequence(list(ALL_SEQUENCES))
    assert sorted(name for names in parts.values() for name in names) == sorted(ALL_SEQUENCES)
    assert parts["test"] == ["A05", "B05", "C05", "D05", "E05"]
    assert parts["validation"] == ["A04", "B04", "C04", "D04", "E04"]
    recordings = read_official(person_file())
    for split, names in parts.items():
        expected = person.cut_windows([r for r in recordings if r.name in names])
        loaded = with_sizes("full-clean", **{split: len(expected)}).load(split, tmp_path)
        assert torch.equal(loaded.x, expected.x)
        assert torch.equal(loaded.dt, expected.dt.clamp(min=0))
    assert find("person", "full-clean").negative_dt == "error"
    assert find("person", "full-clean").recipe.reported == "best-validation"


@pytest.mark.parametrize("variant", find("person").variants)
def test_a_variant_that_changes_gaps_says_so(variant):
    changes = variant.endswith("-clean") and find("person", variant).irregular
    assert ("gaps below 0 count as 0" in find("person", variant).notes) == changes


@pytest.mark.parametrize("variant", person.VARIANTS)
def test_a_variant_whose_windows_overlap_across_the_split_says_so(variant):
    assert ("overlapping windows" in find("person", variant).notes) != variant.endswith("-clean")


def test_coarse_variant_has_no_dt(coarse_file, tmp_path):
    total = len(person.cut_windows(read_coarse(coarse_file())[:-1]))
    samples = with_sizes("coarse", test=int(0.2 * total)).load("test", tmp_path)
    assert samples.dt is None
    assert not find("person", "coarse").irregular


def test_changed_file_is_read_anew(person_file, tmp_path):
    first = person.read_sequences(person_file(sequences={"A01": 40}))
    second = person.read_sequences(person_file(sequences={"A01": 50}))
    assert (len(first[0].labels), len(second[0].labels)) == (40, 50)


LINE = person_rows({"A01": 1})[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must hold readings; it is empty"),
        ("\n\n", "must hold readings; it is empty"),
        (LINE + LINE[:40], "line 2 of .* must have 8 fields .* and has"),
        (LINE.replace(TAGS[0], "999"), "line 1 of .* must name one of the tags .* it has '999'"),
        (LINE.replace("lying down", "flying"), "must name one of the activities .* it has 'flying'"),
        (LINE.replace("0.25", "high"), "must have finite numbers as ticks, x, y and z"),
        (LINE + LINE.replace("A01", "A02") + LINE, "each sequence in one piece; A01 begins a second time"),
        (LINE.replace("lying", "l\u00fcing"), "must be a complete text"),
    ],
)
def test_damaged_official_file_is_explained(tmp_path, text, message):
    path = tmp_path / "ConfLongDemo_JSI.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_official(path)


@pytest.mark.parametrize("name", ["x.csv.xz", "x.csv.gz"])
def test_truncated_compressed_file_is_explained(person_file, name):
    path = person_file(name)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be a complete text file, plain or compressed, and is not"):
        read_official(path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tag": None}, r"lacks \['tag'\]"),
        ({"tag": np.zeros(3, np.uint8)}, "one tag, place and activity for each of"),
        ({"sequence": np.zeros(0, np.uint8)}, "for each of 0 rows"),
        ({"tag_names": np.array(["a", *TAGS[1:]])}, r"it has \['a'\]"),
        ({"activity_names": np.array(["flying"])}, r"it has \['flying'\]"),
        ({"activity_names": np.array(["lying"])}, "activity below 1; it has 10"),
        ({"sequence_names": np.array([{"x": 1}])}, "must be a complete .npz file"),
    ],
)
def test_damaged_coarse_file_is_explained(coarse_file, changed, message):
    with pytest.raises(ValueError, match=message):
        read_coarse(coarse_file(**changed))


def test_coarse_rows_out_of_order_are_refused(coarse_file):
    rows = sum(ALL_SEQUENCES.values())
    with pytest.raises(ValueError, match="out of order"):
        read_coarse(coarse_file(sequence=np.arange(rows)[::-1] % 25))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 noise"])
def test_coarse_file_that_is_no_archive_is_explained(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"must be a complete \.npz file"):
        read_coarse(tmp_path / "x.npz")


def test_part_given_as_the_whole_is_refused(person_file, tmp_path):
    person_file(sequences={"A01": 40, "A02": 40})
    with pytest.raises(ValueError, match="must hold 25 sequences for the variant 'full' and holds 2"):
        find("person", "full").load("train", tmp_path)
    with pytest.raises(ValueError, match=r"it lacks \['A03', 'A04'\]"):
        find("person", "a01-a04").load("train", tmp_path)


def test_shortened_file_does_not_pass_for_the_real_one(person_file, tmp_path):
    person_file()
    with pytest.raises(ValueError, match="must have 7769 samples and has"):
        find("person", "full").load("train", tmp_path)


def test_windows_and_splits_refuse_unsuitable_sequences(person_file, coarse_file):
    with pytest.raises(ValueError, match=r"more than 32 rows; the lengths are \[32\]"):
        person.cut_windows(read_official(person_file(sequences={"A01": 32})))
    mixed = read_official(person_file())[:1] + read_coarse(coarse_file())[:1]
    with pytest.raises(ValueError, match="either all sequences or none"):
        person.cut_windows(mixed)
    with pytest.raises(ValueError, match="at least 3 sequences"):
        person.split_by_sequence(["A01", "A02"])


def test_real_part_has_its_rows_gaps_and_classes(real_file):
    recordings = person.read_sequences(real_file("person_activity/ConfLongDemo_JSI_A01-A04.csv.xz"))
    assert [len(r.labels) for r in recordings] == [5830, 5691, 5326, 5402]
    counts = np.bincount(np.concatenate([r.labels for r in recordings]))
    assert counts.tolist() == [9219, 4259, 2469, 3024, 363, 963, 1952]
    gaps = np.concatenate([r.dt[1:] for r in recordings])
    assert (gaps < 0).sum() == 2
    assert gaps.min() == pytest.approx(-0.051388)


def test_real_coarse_file_has_all_rows_and_agrees_with_the_part(real_file):
    recordings = person.read_sequences(real_file("person_activity/person_activity_coarse.npz"))
    assert len(recordings) == 25
    assert sum(len(r.labels) for r in recordings) == 164_860
    part = person.read_sequences(real_file("person_activity/ConfLongDemo_JSI_A01-A04.csv.xz"))
    for fine, coarse in zip(part, recordings, strict=False):
        np.testing.assert_array_equal(fine.labels, coarse.labels)
        assert np.abs(fine.features - coarse.features).max() < 0.1001


@pytest.mark.parametrize("variant", [v for v in find("person").variants if not v.startswith("full")])
def test_real_splits_have_the_protocols_sizes(real_data, real_file, variant):
    real_file("person_activity")
    task = find("person", variant)
    for split, size in task.splits.items():
        samples = task.load(split, real_data)
        assert samples.x.shape == (size, 32, 7)
        assert samples.y.shape == (size, 32)
        assert (samples.dt is not None) == task.irregular


@pytest.mark.parametrize("variant", ["full", "full-25", "full-clean"])
def test_full_and_coarse_variants_have_the_same_split_sizes(variant):
    assert find("person", variant).splits == find("person", variant.replace("full", "coarse")).splits
