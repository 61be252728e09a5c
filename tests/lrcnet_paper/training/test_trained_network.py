"""A trained network is loaded from its folder unchanged; a folder that cannot be loaded is explained."""

import random

import pytest
import torch

from lrcnet_paper.tasks.driving import recording
from lrcnet_paper.training import RunSpec, run
from lrcnet_paper.training.trained_network import load_trained


@pytest.fixture(scope="module")
def policy_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        recording.cache_clear()
        spec = RunSpec(
            "driving",
            "own-sample",
            "gru",
            epochs=2,
            samples=2,
            batch_size=2,
            piece=4,
            schedule="cosine",
            budget="smoke",
        )
        run(spec, folder, progress=False, threads=1)
        yield folder / spec.folder_name()
        recording.cache_clear()


def test_a_folder_gives_the_weights_that_the_task_reports(policy_run):
    trained = load_trained(policy_run)
    assert trained.task.name == "driving"
    assert trained.file.name == "best.ckpt"
    assert trained.done in (1, 2)
    assert not trained.network.training
    frames = torch.zeros(1, 3, 48, 160, 3, dtype=torch.uint8)
    last = load_trained(policy_run / "last.ckpt")
    assert last.done == 2
    assert trained.network(frames).shape == last.network(frames).shape == (1, 3)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no config\.json"):
        load_trained(tmp_path)


def test_a_damaged_checkpoint_says_so(policy_run, tmp_path):
    (tmp_path / "config.json").write_text((policy_run / "config.json").read_text())
    (tmp_path / "best.ckpt").write_bytes((policy_run / "best.ckpt").read_bytes()[:1000])
    with pytest.raises(ValueError, match="must hold the weights of this run, but cannot be read"):
        load_trained(tmp_path)


def test_a_flipped_bit_never_loads_other_weights(policy_run, tmp_path):
    (tmp_path / "config.json").write_text((policy_run / "config.json").read_text())
    content = bytearray((policy_run / "best.ckpt").read_bytes())
    expected = load_trained(policy_run).network.state_dict()
    generator, refused = random.Random(0), 0
    for _ in range(60):
        place, bit = generator.randrange(len(content)), 1 << generator.randrange(8)
        content[place] ^= bit
        (tmp_path / "best.ckpt").write_bytes(content)
        content[place] ^= bit
        try:
            weights = load_trained(tmp_path).network.state_dict()
        except ValueError:
            refused += 1
        else:
            assert all(torch.equal(weights[name], expected[name]) for name in expected), place
    assert refused > 40


def test_pieces_need_an_answer_at_every_step(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recording.cache_clear()
    spec = RunSpec("driving", "own-sample", "gru", epochs=1, samples=2, batch_size=2, piece=33, budget="smoke")
    with pytest.raises(ValueError, match="pieces need a task with an answer at each of at least 33 steps"):
        run(spec, tmp_path, progress=False, threads=1)
    recording.cache_clear()
