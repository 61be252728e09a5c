"""Tasks of sequences of unequal lengths: samples by hand, tiny files, and one sentence for each kind of bad input."""

import gzip
import json
import tarfile
from io import BytesIO

import numpy as np
import pytest
import torch

from lrcnet_paper.tasks import find, losses_and_metrics, register, uea
from lrcnet_paper.tasks.events import encode_runs
from lrcnet_paper.tasks.physionet import encode, split_stays
from lrcnet_paper.tasks.physionet_files import SERIES, parse_outcomes, parse_stay, read_stays
from lrcnet_paper.tasks.ragged import RaggedSamples
from tests.lrcnet_paper.tasks.conftest import idx

HEADER = "@problemName Toy\n@dimensions 2\n@classLabel true a b\n@data\n"
ROWS = ["1,2,3:4,6,5:a\n", "2,3:5,5:b\n", "3,1,2:6,4,4:a\n", "0,1,1:3,3,3:b\n", "1,1,2:4,4,5:a\n"]
STAY = "Time,Parameter,Value\n00:00,RecordID,{}\n00:00,Age,54\n00:00,ICUType,4\n00:00,Weight,-1\n"


def test_ragged_samples_are_padded_selected_and_spaced():
    samples = RaggedSamples(torch.arange(6.0)[:, None], None, torch.tensor([1, 2, 3]), torch.tensor([0, 1, 1]))
    x, dt, y = samples[1:]
    assert dt is None
    assert x[..., 0].tolist() == [[1, 2, 0], [3, 4, 5]]
    assert x[..., 1].tolist() == [[1, 1, 0], [1, 1, 1]]
    assert y.tolist() == [1, 1]
    assert samples[2][0][:, 0].tolist() == [3, 4, 5]
    assert samples.select(torch.tensor([2, 0])).rows[:, 0].tolist() == [3, 4, 5, 0]
    assert len(samples.evenly_spaced(2)) == 2
    with pytest.raises(ValueError, match="add up to 6 rows"):
        RaggedSamples(torch.zeros(6, 1), None, torch.tensor([1, 2]), torch.tensor([0, 1]))


def test_xor_is_the_parity_of_the_stream():
    samples = find("xor").load("test")
    bits = (samples.gaps * 32).round() * (samples.rows[:, 0] > 0)
    owner = torch.repeat_interleave(torch.arange(len(samples)), samples.lengths)
    ones = torch.zeros(len(samples)).index_add(0, owner, bits)
    assert torch.equal(ones.long() % 2, samples.y)
    assert 0.45 < samples.y.float().mean() < 0.55
    steps = torch.zeros(len(samples)).index_add(0, owner, samples.gaps * 32)
    assert (steps.min(), steps.max()) == (1, 32)


def test_runs_end_with_their_stream():
    bits = np.array([[1, 1, 0, 0], [0, 1, 1, 1]], bool)
    runs = encode_runs(bits, np.array([3, 4]), np.array([0, 1]), unit=4)
    assert runs.rows[:, 0].tolist() == [1, -1, -1, 1]
    assert runs.gaps.tolist() == [0.5, 0.25, 0.25, 0.75]
    assert runs.lengths.tolist() == [2, 2]


def test_digits_become_events(tmp_path):
    images = np.zeros((10_001, 28, 28))
    images[:, 0, 3:6], images[:, 1, 0] = 128, 127
    for name, array in (("images-idx3", images), ("labels-idx1", np.arange(10_001) % 10)):
        (tmp_path / f"train-{name}-ubyte.gz").write_bytes(gzip.compress(idx(array)))
    x, dt, y = find("event-mnist").reader("events", "train", tmp_path)[[0]]
    assert x[0, :, 0].tolist() == [-1, 1, -1]
    assert (dt[0] * 256).tolist() == [3, 3, 778]
    assert y.tolist() == [0]


def test_thinned_readings_are_among_those_of_smaller_shares():
    whole, thin = (find("thinned", f"drop-{share}").load("test") for share in (0, 90))
    assert set(whole.gaps.tolist()) == {1.0}
    assert torch.equal(whole.y, thin.y)
    assert 6 < thin.lengths.float().mean() < 10
    owner = torch.repeat_interleave(torch.arange(len(thin)), thin.lengths)
    ends = torch.zeros(len(thin)).index_add(0, owner, thin.gaps)
    assert (ends == 64).all()


def write_set(folder, train=ROWS, test=ROWS[:2], header=HEADER):
    (folder / "Toy").mkdir(parents=True, exist_ok=True)
    (folder / "Toy/Toy_TRAIN.ts").write_text(header + "".join(train))
    (folder / "Toy/Toy_TEST.ts").write_text(header + "".join(test))


def test_any_set_of_the_archive_is_a_task(tmp_path):
    write_set(tmp_path)
    task = uea.archive_task("Toy", tmp_path)
    assert (task.input_size, task.output_size, task.length) == (2, 2, 3)
    register(task)
    train, validation, test = (find("Toy").load(split) for split in ("train", "validation", "test"))
    assert (len(train), len(validation), len(test)) == (4, 1, 2)
    assert test.lengths.tolist() == [3, 2]
    torch.testing.assert_close(train.rows.mean(0), torch.zeros(2), atol=1e-6, rtol=0)


def archive(count: int, *classes: str) -> list[str]:
    """Return lines of `count` sequences of two channels for each class."""
    return [f"{i},{i * i % 7},1:{j},2,{i}:{label}\n" for i in range(count) for j, label in enumerate(classes)]


def test_sets_with_few_sequences_per_class_are_tasks(tmp_path):
    classes = [f"c{i}" for i in range(10)]
    header = HEADER.replace("a b", " ".join(classes))
    # Two training sequences of all classes but the last, which has one.
    write_set(tmp_path, archive(2, *classes)[:-1], archive(1, *classes), header)
    task = uea.archive_task("Toy", tmp_path)
    parts = {split: task.reader("archive", split, tmp_path).y.tolist() for split in ("train", "validation", "test")}
    assert (task.output_size, set(parts["train"]), parts["test"]) == (10, set(range(10)), list(range(10)))
    assert len(parts["validation"]) == 3
    assert 9 not in parts["validation"]


def test_the_split_is_random_where_every_class_keeps_a_training_sequence():
    labels = ["a", "b"] * 50
    order = np.random.RandomState(0).permutation(100)
    assert uea.choose_rows("validation", labels, 3).tolist() == order[:20].tolist()
    assert uea.choose_rows("train", labels, 3).tolist() == order[20:].tolist()
    assert uea.choose_rows("test", labels, 3).tolist() == [100, 101, 102]
    alone = [*labels[:-1], "c"]
    rare = alone.index("c")
    assert rare not in uea.choose_rows("validation", alone, 3)
    assert sorted([*uea.choose_rows("validation", alone, 3), *uea.choose_rows("train", alone, 3)]) == list(range(100))


def test_channels_can_be_left_out(tmp_path):
    constant = [f"{i},{i + 1},1:7,7,7:{label}\n" for i in range(3) for label in "ab"]
    write_set(tmp_path, constant, archive(1, "a", "b"))
    with pytest.raises(
        ValueError, match=r"channel 1 is constant; keep the others by archive_task\(\.\.\., channels=\[0\]\)"
    ):
        uea.archive_task("Toy", tmp_path)
    task = uea.archive_task("Toy", tmp_path, channels=[0])
    assert (task.input_size, task.reader("archive", "test", tmp_path).rows.shape[1]) == (1, 1)
    for wrong in ([], [2], [0, 0], [True], ["0"]):
        with pytest.raises(ValueError, match="channels must be different whole numbers from 0 to 1 for Toy"):
            uea.archive_task("Toy", tmp_path, channels=wrong)


def test_a_long_channel_of_one_value_is_constant(tmp_path):
    # Its mean is not exactly 0.1, so that its computed deviation is above 0.
    long = ",".join(["0.1"] * 1001)
    write_set(tmp_path, [f"{long}:a\n", f"{long}:b\n"] * 3, header=HEADER.replace("2", "1"), test=[f"{long}:a\n"])
    with pytest.raises(ValueError, match="channel 0 is constant; no channel is left"):
        uea.archive_task("Toy", tmp_path)


def test_a_missing_set_is_not_looked_for_among_the_sets_of_the_tasks(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Nope_TRAIN\.ts .*load_classification\('Nope'") as caught:
        uea.archive_task("Nope", tmp_path)
    assert "lrcnet data get" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match="lrcnet data get uea"):
        uea.archive_task("SelfRegulationSCP1", tmp_path)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"train": ["1,?,3:4,5,6:a\n", *ROWS]},
            "Toy_TRAIN.ts, line 5 must have a value at every step, but channel 0 has none at step 1",
        ),
        ({"train": ["1,2,3:4,5:a\n"] * 5}, "channel 1 has none at step 2"),
        ({"train": ["1,2:4,4:a\n", "3,1:4,4:b\n"] * 2}, "channel 1 is constant"),
        (
            {"train": ["1,2:?,NaN:a\n", "3,1:,nan:b\n"] * 2},
            "must have values in the training sequences, but channel 1 is",
        ),
        ({"train": [*ROWS[:4], "1,2:?,?:a\n"] * 2}, "must have a value at every step, but channel 1 is empty"),
        ({"train": ROWS[:2]}, "some class must have at least 2 training sequences"),
        ({"test": ["1:2:c\n"]}, r"must have one of the labels \['a', 'b'\]"),
        (
            {"train": ["1,2:4,5:a\n", "3,1:5,4:a\n"]},
            r"Toy_TEST.ts, line 6 must have one of the training labels \['a'\], but has 'b'",
        ),
        ({"header": HEADER.replace("true a b", "false")}, "line 3 must say '@classLabel true'"),
        ({"header": HEADER.replace("2", "two")}, "number of channels after @dimensions"),
        ({"header": HEADER.replace("2", "3")}, r"that line 2 \(@dimensions 3\) states, but has 2"),
        (
            {"header": HEADER.replace("@dimensions 2\n", ""), "test": ["1:a\n"]},
            r"equally many channels, but have \[1, 2\]",
        ),
        ({"header": HEADER.replace("@data", "")}, "after a line @data"),
        ({"header": "Toy\n" + HEADER}, "line 1 must begin with # or @"),
    ],
)
def test_bad_sets_get_one_sentence(tmp_path, changed, message):
    write_set(tmp_path, **changed)
    with pytest.raises(ValueError, match=message):
        uea.archive_task("Toy", tmp_path)


def test_published_splits_are_checked(tmp_path):
    path = tmp_path / "scp_splits.json"
    path.write_text(json.dumps({"Toy": {"1": {"val": [0], "test": [2, 9]}, "2": {"val": [0], "test": [2, 1]}}}))
    assert uea.read_published(path, "Toy", "2", 4)[1].tolist() == [2, 1]
    with pytest.raises(ValueError, match="different rows from 0 to 3"):
        uea.read_published(path, "Toy", "1", 4)
    with pytest.raises(ValueError, match="must hold the split 3 of Toy"):
        uea.read_published(path, "Toy", "3", 4)


def test_a_stay_is_its_last_values_and_masks():
    texts = [STAY.format(n) + f"00:30,HR,{60 + n}\n02:00,Temp,37\n02:00,HR,{80 + n}\n" for n in range(5)]
    stays = [parse_stay(text, "x") for text in texts]
    with pytest.raises(ValueError, match="must be measured in the training stays, but ALP never is"):
        encode(stays, np.zeros(5, int), np.arange(5), np.arange(2))
    complete = [parse_stay(t + "".join(f"03:00,{name},{n}\n" for name in SERIES), "x") for n, t in enumerate(texts)]
    samples = encode(complete, np.arange(5) % 2, np.arange(5), np.array([3]))
    rate, temperature = SERIES.index("HR"), SERIES.index("Temp")
    assert samples.rows.shape == (3, 81)
    assert samples.gaps.tolist() == [0.5, 1.5, 1.0]
    assert samples.rows[:, 37 + rate].tolist() == [1, 1, 1]
    assert samples.rows[:, 37 + temperature].tolist() == [0, 1, 1]
    assert samples.rows[0, temperature] == 0, "the mean before the first value"
    assert samples.rows[:, -4:].tolist() == [[0, 0, 0, 1]] * 3
    parts = split_stays(2, 100)
    assert sorted(np.concatenate(list(parts.values()))) == list(range(100))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Time,Value\n", "must begin with 'Time,Parameter,Value'"),
        (STAY.format(1) + "7,HR,3\n", "line 6 of x must begin with a time HH:MM"),
        (STAY.format(1) + "00:07,HR,high\n", "line 6 of x must have a finite number"),
        (STAY.format(1) + "00:07,Mood,3\n", "must name a parameter of the challenge, but names 'Mood'"),
        (STAY.format(1) + "00:07,HR\n", "must have 3 fields"),
        ("Time,Parameter,Value\n00:07,HR,3\n", "must have a RecordID"),
    ],
)
def test_bad_stays_get_one_sentence(text, message):
    with pytest.raises(ValueError, match=message):
        parse_stay(text, "x")


def test_outcomes_are_checked_and_every_stay_needs_one(tmp_path):
    header = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"
    assert parse_outcomes(header + "5,1,1,1,-1,1\n", "o") == {5: 1}
    with pytest.raises(ValueError, match="line 2 of o must have 6 fields, the last one 0 or 1"):
        parse_outcomes(header + "5,1,1,1,-1,2\n", "o")
    with tarfile.open(tmp_path / "sets.tar", "w") as archive:
        for name, text in (("set-a/6.txt", STAY.format(6)), ("Outcomes-a.txt", header + "5,1,1,1,-1,1\n")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, BytesIO(text.encode()))
    with pytest.raises(ValueError, match="an outcome for every stay, but stay 6 has none"):
        read_stays([tmp_path / "sets.tar"], ["a"])


def test_the_area_under_the_curve_counts_pairs():
    logits, labels = torch.tensor([[0.1], [0.4], [0.4], [0.9]]), torch.tensor([0, 1, 0, 1])
    assert losses_and_metrics.area_under_curve(logits, labels) == 0.875
    assert losses_and_metrics.area_under_curve(logits, torch.ones(4)) == 0.5


def test_real_files_have_the_stated_sizes(real_file, real_data):
    real_file("uea/scp_splits.json")
    assert len(find("uea", "scp2-3456").load("validation", real_data)) == 57
