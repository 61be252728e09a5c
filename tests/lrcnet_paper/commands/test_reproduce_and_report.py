"""`lrcnet reproduce` and `lrcnet report` from the command line; the Neural-ODE runs here really train."""

import json

import pytest

from lrcnet.cli import main
from lrcnet.pages import figures
from lrcnet_paper import artefacts as paper
from lrcnet_paper import training
from lrcnet_paper.reproduction import pipeline
from lrcnet_paper.results.collected import collect
from lrcnet_paper.results.reading import read_runs
from tests.lrcnet_paper.artefacts import synthetic_runs

ONE = ["--only", "neural-ode/spiral/lrc-s"]


def call(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """A machine without the data files."""
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_run_is_trained_once_drawn_and_collected(capsys, tmp_path, monkeypatch):
    out, results = tmp_path / "runs", tmp_path / "results"
    words = ["reproduce", "neural-ode", "--budget", "smoke", *ONE, "--out", out, "--collect", results, "--quiet"]
    code, text, _ = call(capsys, *words)
    assert code == 0
    assert "[1/1] neural-ode spiral lrc-s seed 0: mean_absolute_error" in text
    assert "0.009 ± 0.004" in text, "the paper's number stands beside ours"
    suffixes = {path.suffix for path in (out / "artefacts" / "neural-ode").iterdir()}
    assert suffixes == {".csv", ".md", ".png", ".svg"}
    (run,) = read_runs(out)
    assert len(run.prediction["states"]) == 1000
    (file,) = results.rglob("*.json")
    assert json.loads(file.read_text())["metrics"] == run.result.metrics

    def refuse(*arguments, **options):
        raise AssertionError("a finished run was trained again")

    monkeypatch.setattr(training.grid, "run_or_diverge", refuse)
    monkeypatch.setattr(figures, "save", lambda picture, folder: [])
    code, text, _ = call(capsys, *words)
    assert code == 0
    assert "0 new files" in text


def test_more_epochs_carry_on(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "save", lambda picture, folder: [])
    for iterations in (2, 3, 1):
        words = ["reproduce", "neural-ode", "--budget", "smoke", *ONE, "--out", tmp_path, "--quiet"]
        assert call(capsys, *words, "--epochs", iterations)[0] == 0
    (run,) = read_runs(tmp_path)
    assert run.result.epochs == 3, "asking for less afterwards loses nothing"
    (result,) = tmp_path.glob("*/result.json")
    result.unlink()
    assert call(capsys, *words, "--epochs", 1)[0] == 0, "nor when the run was broken off before its result"
    assert json.loads(result.read_text())["epochs"] == 3


def test_finished_runs_are_drawn_although_another_was_left_out(capsys, tmp_path, monkeypatch):
    def busy(*arguments, **options):
        raise training.run_folder.BusyFolderError("another process is at this run")

    monkeypatch.setattr(training.grid, "run_or_diverge", busy)
    words = ["reproduce", "neural-ode", "--budget", "smoke", *ONE, "--out", tmp_path, "--quiet"]
    code, _, error = call(capsys, *words)
    assert code != 0
    assert "another process is at this run" in error
    assert (tmp_path / "artefacts" / "neural-ode" / "README.md").exists()


def test_runs_that_lack_files_are_skipped_with_a_message(capsys, tmp_path, no_data):
    code, text, _ = call(capsys, "reproduce", "classification", "--budget", "smoke", "--out", tmp_path / "runs")
    assert code == 0
    assert "left out: person coarse" in text
    assert "lrcnet data get imdb" in text
    assert "84.21 ± 0.26" in text


def test_a_pattern_may_name_another_rate_or_pass_over_it(capsys):
    def list_commands(pattern):
        main(["reproduce", "classification", "--budget", "paper", "--seeds", "1", "--list", "--only", pattern])
        return [line for line in capsys.readouterr().out.splitlines() if "lrcnet train" in line]

    every, fast = list_commands("person/coarse/gru"), list_commands("person/coarse+lr0.01/gru")
    assert len(every) == 3
    assert len(fast) == 1
    assert "--lr 0.01" in fast[0]
    assert fast[0] in every


def test_only_named_artefacts_are_measured(tmp_path, monkeypatch):
    asked = []
    models = (("lrcu-s", ""), ("lstm", ""), ("ltc", "euler-1"))
    runs = [synthetic_runs.result("driving", "own-features", model, solver=solver) for model, solver in models]
    monkeypatch.setattr(
        pipeline, "analyse_all", lambda names, folder, only, report: asked.extend(r.model for r in runs if only(r))
    )
    monkeypatch.setattr(pipeline, "run_all", lambda specs, out, **options: [])
    words = ["--only", "driving/own-features/l[rt]c*", "--budget", "quick", "--quiet", "--out", str(tmp_path)]
    assert main(["reproduce", "dynamics", *words]) == 0
    assert asked == ["lrcu-s", "ltc"]


def test_the_list_trains_nothing(capsys, tmp_path):
    code, text, _ = call(capsys, "reproduce", "--budget", "paper", "--list", "--out", tmp_path / "runs")
    assert code == 0
    # Artefacts share runs: each is listed once.
    planned = {spec for name in paper.ARTEFACTS for spec in paper.load(name).runs("paper")}
    assert f"0 of {len(planned)} runs done" in text
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "nonsense"], "artefact must be one of elastance, architecture"),
        (["reproduce", "--budget", "huge"], "budget must be one of smoke, quick, paper"),
        (["reproduce", "neural-ode", "--only", "x/*"], "matches none of the runs: neural-ode/"),
        (["reproduce", "neural-ode", "--seeds", "0"], "seeds must be at least 1"),
        (["reproduce", "neural-ode", "--engine", "abacus", *ONE], "engine must be one of local, ray"),
        (["report", "nowhere", "--html", "x.html"], "must be a folder of runs"),
        (["report", "nowhere"], "--html FILE, --markdown FILE"),
        (["report", ".", "--html", "x", "--artefact", "nonsense"], "artefact must be one of"),
    ],
)
def test_a_mistake_is_one_clear_line(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, _, error = call(capsys, *words)
    assert code == 1
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_report_is_written_from_collected_results(capsys, tmp_path):
    runs = [synthetic_runs.classification_run("person", "coarse", "lrcu-s", seed, 3) for seed in range(2)]
    collect(runs, tmp_path / "results")
    html, markdown = tmp_path / "report.html", tmp_path / "docs" / "reproduction.md"
    words = ["--html", html, "--markdown", markdown, "--artefact", "classification", "--artefact", "elastance"]
    code, text, _ = call(capsys, "report", tmp_path / "results", *words)
    assert code == 0
    assert f"wrote {html}" in text
    assert "3 of 100" in markdown.read_text()
    assert (tmp_path / "docs" / "reproduction" / "elastance-shapes.svg").exists()
    assert "neural-ode" not in html.read_text()


def test_existing_runs_are_collected_without_training(capsys, tmp_path):
    place = tmp_path / "runs" / "one"
    place.mkdir(parents=True)
    synthetic_runs.result("person", "coarse", "lstm").write(place)
    words = ["report", tmp_path / "runs", "--collect", tmp_path / "results"]
    assert "1 new files in" in call(capsys, *words)[1]
    assert "0 new files in" in call(capsys, *words)[1]
    assert [run.result.model for run in read_runs(tmp_path / "results")] == ["lstm"]


@pytest.mark.slow
def test_every_artefact_is_smoke_run_on_the_available_data(capsys, tmp_path):
    assert call(capsys, "reproduce", "--budget", "smoke", "--out", tmp_path, "--quiet")[0] == 0
    for name in paper.ARTEFACTS:
        assert (tmp_path / "artefacts" / name / "README.md").exists()
    assert all(run.result.budget == "smoke" for run in read_runs(tmp_path))
