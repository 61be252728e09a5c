"""The benchmark over archive sets: it resumes, and its comparison follows the trainings."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lrcnet_paper import archive_sets
from lrcnet_paper.benchmarks import generated_sets, held_out_sets
from lrcnet_paper.benchmarks import learning_archive as archive
from lrcnet_paper.benchmarks.learning_curves import draw


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Shrink the grid to one set of four sequences, two layers and two updates, in an empty folder."""
    half = archive_sets.Sequences(torch.randn(4, 5, 2), torch.tensor([5, 3, 5, 1]), torch.tensor([0, 1, 0, 1]))
    monkeypatch.setattr(archive_sets, "find", lambda name: Path(name))
    monkeypatch.setattr(archive_sets, "load", lambda name: archive_sets.ArchiveSet(name, 2, half, half))
    monkeypatch.setattr(archive, "SETS", ("ItalyPowerDemand",))
    monkeypatch.setattr(archive, "HELD_OUT", ("Recall",))
    monkeypatch.setattr(archive, "UPDATES", 2)
    monkeypatch.setattr(archive, "SEEDS", 1)
    monkeypatch.chdir(tmp_path)
    archive.load.cache_clear()
    yield
    archive.load.cache_clear()


@pytest.mark.usefixtures("toy")
def test_a_second_call_runs_only_the_missing_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    first = archive.measure()
    lines = archive.RECORD.read_text().splitlines()
    assert len(lines) == len(archive.plan(["ItalyPowerDemand"]))
    archive.RECORD.write_text("\n".join(lines[:-1]) + "\n")
    trained = []
    train = archive.train

    def note(training: archive.Training, data: archive_sets.ArchiveSet) -> float:
        trained.append(training)
        return train(training, data)

    monkeypatch.setattr(archive, "train", note)
    assert archive.measure() == first
    assert [list(training) for training in trained] == [json.loads(lines[-1])[:-1]]
    assert archive.PICTURE.stat().st_size > 10_000


def test_the_paired_difference_has_students_interval() -> None:
    mean, half = archive.paired_difference([(3.0, 1.0), (5.0, 4.0), (6.0, 3.0)])
    assert mean == 2.0
    assert half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert archive.paired_difference([(3.0, 1.0)]) == (2.0, math.inf)


def test_a_set_without_a_gru_is_left_out(tmp_path: Path) -> None:
    results = {archive.Training("GunPoint", "LRCU-S", 1e-3, 0): 50.0}
    assert archive.summarise(results) == []
    draw(results, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize("name", [*held_out_sets.TUNING, *held_out_sets.HELD_OUT])
def test_held_out_sets_are_standardised_and_have_every_class_in_both_halves(name: str) -> None:
    data = held_out_sets.load(name)
    for x, lengths, labels in (data.train, data.test):
        assert (lengths == x.shape[1]).all()
        assert labels.unique().tolist() == list(range(data.classes))
    spread = data.train.x.std((0, 1))
    # A pixel at the edge of a digit is always blank.
    torch.testing.assert_close(spread[spread > 0], torch.ones_like(spread[spread > 0]), rtol=1e-3, atol=0)
    assert not torch.equal(data.train.x[:50], data.test.x[:50])
    assert not torch.equal(data.train.x, held_out_sets.load(name, seed=1).train.x)


def test_the_class_of_a_sum_is_that_of_its_marked_numbers() -> None:
    x, labels = generated_sets.make_sums(40, 0)
    assert torch.equal((x[..., 0] * x[..., 1]).sum(1) > 1, labels.bool())
