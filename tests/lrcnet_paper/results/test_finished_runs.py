"""Finished runs, read from folders and from collected files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lrcnet_paper.results.collected import KEPT_POINTS, collect
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.training.change import Change
from tests.lrcnet_paper.artefacts import synthetic_runs


def write_folder(root, run):
    folder = root / "person_coarse_lstm_seed0"
    folder.mkdir(parents=True)
    run.result.write(folder)
    (folder / "config.json").write_text('{"run": {}}')
    (folder / "metrics.csv").write_text("epoch,train_loss,test_accuracy\n1,0.9,0.5\n2,nan,0.75\n")
    return folder


def test_a_run_folder_is_read_with_its_curve_and_prediction(tmp_path):
    run = FinishedRun(synthetic_runs.result("person", "coarse", "lstm", metrics={"accuracy": 0.75}))
    folder = write_folder(tmp_path, run)
    np.savez(folder / "prediction.npz", times=np.arange(3.0), states=np.zeros((3, 2)))
    (read_back,) = read_runs(tmp_path)
    assert read_back.result == run.result
    assert read_back.curve("test_accuracy") == ([1, 2], [0.5, 0.75])
    assert read_back.curve("train_loss") == ([1], [0.9]), "NaN has no place in a curve"
    assert read_back.curve("nonsense") == ([], [])
    assert read_back.prediction["times"] == [0, 1, 2]


def test_collected_files_give_the_same_run(tmp_path):
    runs = [synthetic_runs.classification_run("person", "coarse", "lstm", seed, 20) for seed in range(2)]
    files = collect(runs, tmp_path)
    assert len(files) == 2
    back = read_runs(tmp_path)
    assert [run.result for run in back] == [run.result for run in runs]
    assert back[0].curve("test_accuracy")[1] == pytest.approx(runs[0].curve("test_accuracy")[1], rel=1e-5)
    assert collect(runs, tmp_path) == [], "unchanged files are left alone"
    assert collect(back, tmp_path) == [], "a second generation is the same bytes"


def test_collected_files_are_small_and_one_line_per_field(tmp_path):
    (file,) = collect([synthetic_runs.ode_run("duffing", "lrc-s", 0)], tmp_path)
    text = file.read_text()
    assert len(text) < 30_000
    content = json.loads(text)
    assert len(content["prediction"]["times"]) == 1000, "a trajectory is drawn with all of its points"
    long = synthetic_runs.classification_run("person", "coarse", "gru", 0, 2 * KEPT_POINTS)
    (curve,) = collect([long], tmp_path)
    assert len(json.loads(curve.read_text())["history"]["epoch"]) == KEPT_POINTS
    assert content["prediction"]["times"][-1] == 25.0
    assert len(text.splitlines()) == len(content) + 2


def test_collecting_a_run_again_keeps_its_trajectory_and_measurements(tmp_path):
    whole = replace(synthetic_runs.ode_run("duffing", "lrc-s", 0), analyses={"first": {"number": 1}})
    (file,) = collect([whole], tmp_path)
    bare = replace(whole, prediction={}, analyses={"second": {"number": 2}})
    collect([bare], tmp_path)
    (back,) = read_runs(tmp_path)
    assert len(back.prediction["times"]) == 1000
    assert back.analyses == {"first": {"number": 1}, "second": {"number": 2}}
    # Another result under the same name is another run, and keeps nothing.
    collect([replace(bare, result=replace(bare.result, metrics={"mean_absolute_error": 9.0}))], tmp_path)
    assert "prediction" not in json.loads(file.read_text()) or not json.loads(file.read_text())["prediction"]


def test_other_json_files_are_passed_over(tmp_path):
    (tmp_path / "benchmark.json").write_text("[1, 2]")
    assert read_runs(tmp_path) == []


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "half.json").write_text('{"task":')
    with pytest.raises(ValueError, match=r"half\.json must be a JSON file"):
        read_runs(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be a folder of runs"):
        read_runs(tmp_path / "none")


def test_a_run_stored_twice_counts_once(tmp_path):
    run = synthetic_runs.classification_run("person", "coarse", "lstm", 0, 2)
    write_folder(tmp_path / "runs", run)
    collect([run], tmp_path / "results")
    assert len(read_runs(tmp_path)) == 1


def test_groups_hold_seeds_and_nothing_else():
    runs = [synthetic_runs.classification_run("person", "coarse", "lstm", seed, 100) for seed in range(3)]
    runs += [synthetic_runs.classification_run("person", "coarse", "lstm", 0, 100, "quick")]
    runs += [synthetic_runs.classification_run("person", "coarse", "lrc-s", 0, 100, solver="rk4-1", centre=0.8)]
    groups = group_runs(runs, "person")
    assert [(g.model, g.change, g.budget, len(g.runs)) for g in groups] == [
        ("lrc-s", Change(solver="rk4-1"), "paper", 1),
        ("lstm", Change(), "paper", 3),
        ("lstm", Change(), "quick", 1),
    ]
    assert group_runs(runs, "imdb") == []


def test_settings_are_never_averaged_as_if_they_were_seeds(tmp_path):
    runs = [
        synthetic_runs.classification_run("psmnist", "permuted", "lstm", 0, 3, "custom", learning_rate=rate)
        for rate in (1e-4, 1e-2)
    ]
    groups = group_runs(runs, "psmnist")
    assert [(group.budget_label, len(group.runs)) for group in groups] == [
        ("custom, rate 0.0001", 1),
        ("custom, rate 0.01", 1),
    ]
    assert len(collect(runs, tmp_path)) == 2, "two files"
    assert collect(runs, tmp_path) == [], "neither overwrites the other"
    assert len(read_runs(tmp_path)) == 2


def test_a_run_that_diverged_late_keeps_the_lengths_it_had_passed():
    runs = [synthetic_runs.ode_run("spiral", "lrc-s", seed) for seed in range(2)]
    early = {"mean_absolute_error@1000": 0.5}
    broken = replace(runs[1].result, status="diverged", epochs=1500, metrics=early)
    (group,) = group_runs([runs[0], replace(runs[1], result=broken)], "neural-ode")
    passed, lost = group.metric("mean_absolute_error@1000"), group.metric("mean_absolute_error@2000")
    assert (passed.seeds, passed.diverged) == (2, 0)
    assert (lost.seeds, lost.diverged) == (1, 1)


def test_a_continued_run_replaces_its_shorter_version(tmp_path):
    first, longer = (synthetic_runs.classification_run("psmnist", "permuted", "gru", 0, length) for length in (3, 10))
    other = synthetic_runs.classification_run("psmnist", "permuted", "gru", 1, 3)
    collect([first, other], tmp_path)
    collect([longer], tmp_path)
    assert sorted((run.result.seed, run.result.epochs) for run in read_runs(tmp_path)) == [(0, 10), (1, 3)]
    collect([first], tmp_path)
    assert len(read_runs(tmp_path)) == 3, "a shorter run deletes nothing"


def test_a_custom_run_comes_after_the_paper_budget():
    runs = [synthetic_runs.classification_run("imdb", "text", "gru", 0, 3, budget) for budget in ("custom", "paper")]
    assert [group.budget for group in group_runs(runs, "imdb")] == ["paper", "custom"]
