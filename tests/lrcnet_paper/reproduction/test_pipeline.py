"""The pipelines as a notebook calls them."""

import pytest

import lrcnet_paper
from lrcnet_paper.reproduction import pipeline, plan_runs
from lrcnet_paper.reproduction.countdown import Countdown
from lrcnet_paper.training.grid import RunsLeftError
from tests.lrcnet_paper.artefacts import synthetic_runs

ONE = ["neural-ode/spiral/lrc-s"]


def test_reproduce_returns_runs_sections_and_files(tmp_path):
    lines = []
    outcome = lrcnet_paper.reproduce(
        ["neural-ode"], "smoke", tmp_path, only=ONE, progress=False, collect=tmp_path / "results", on_line=lines.append
    )
    (run,) = outcome.runs
    assert (run.result.spec.variant, run.result.unit, run.result.epochs) == ("spiral", "iteration", 4)
    assert [section.name for section in outcome.sections] == ["neural-ode"]
    assert all(path.exists() for path in (*outcome.files["neural-ode"], *outcome.collected))
    assert outcome.left_out is None
    assert not outcome.missing
    assert lines[0].startswith("[1/1] neural-ode spiral lrc-s seed 0: mean_absolute_error")


def test_reproduce_says_which_data_is_missing_and_draws_the_rest(tmp_path, monkeypatch):
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outcome = lrcnet_paper.reproduce(["classification"], "smoke", tmp_path / "runs", only=["imdb/*"], progress=False)
    assert list(outcome.missing) == [("imdb", "text")]
    assert "lrcnet data get imdb" in outcome.missing["imdb", "text"]
    assert outcome.sections[0].rendered.tables


def test_reproduce_returns_the_error_of_runs_that_were_left_out(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise RunsLeftError("another process is at this run")

    monkeypatch.setattr(pipeline, "run_all", refuse)
    outcome = lrcnet_paper.reproduce(["neural-ode"], "smoke", tmp_path, only=ONE, progress=False)
    assert "another process" in str(outcome.left_out)
    assert outcome.sections


def test_a_run_that_two_artefacts_share_is_planned_once(tmp_path):
    specs = plan_runs(["lane-keeping", "closed-loop"], "smoke", tmp_path)
    assert len(specs) == len(set(specs)) == 5


def test_a_limit_counts_epochs_or_iterations_as_the_task_does(tmp_path):
    (ode,) = plan_runs(["neural-ode"], "quick", tmp_path, seeds=1, epochs=7, only=["neural-ode/duffing/lrc-a"])
    assert (ode.epochs, ode.iterations) == (None, 7)
    (person,) = plan_runs(["classification"], "quick", tmp_path, seeds=1, epochs=7, only=["person/coarse/gru"])
    assert (person.epochs, person.iterations) == (7, None)


def test_write_report_writes_the_pages_that_are_asked_for(tmp_path):
    runs = [synthetic_runs.classification_run("person", "coarse", "lrcu-s", 0, 3)]
    sections, pages = lrcnet_paper.write_report(runs, ["elastance"], markdown=tmp_path / "page.md")
    assert [section.name for section in sections] == ["elastance"]
    assert pages == [tmp_path / "page.md"]


def test_the_countdown_estimates_the_rest_by_the_runs_that_were_trained(monkeypatch):
    clock = iter([0.0, 0.01, 200.0])
    monkeypatch.setattr("lrcnet_paper.reproduction.countdown.time.monotonic", lambda: next(clock))
    lines = []
    countdown = Countdown(4, lines.append)
    result = synthetic_runs.result("person", "coarse", "gru", metrics={"accuracy": 0.5}, learning_rate=0.01)
    countdown.add(result.spec, result)
    countdown.add(result.spec, result)
    assert lines == [
        "[1/4] person coarse, rate 0.01 gru seed 0: accuracy 0.5",
        "[2/4] person coarse, rate 0.01 gru seed 0: accuracy 0.5; about 7 min left",
    ]


def test_a_long_run_is_the_first_part_of_the_papers_unless_it_trains_a_head(tmp_path):
    names = ["classification", "neural-ode", "efficiency", "lane-keeping"]
    long, paper = plan_runs(names, "long", tmp_path), plan_runs(names, "paper", tmp_path)
    end_to_end = [spec for spec in long if (spec.task, spec.variant) == ("driving", "own")]
    folders = {spec.folder_name() for spec in paper}
    assert all((spec.folder_name() in folders) == (spec not in end_to_end) for spec in long)
    assert {(s.epochs * s.samples // s.batch_size, s.batch_size, s.piece) for s in end_to_end} == {(4000, 8, 16)}
    assert {spec.seed for spec in long if spec.task == "psmnist"} == {0}
    assert {spec.seed for spec in long if spec.task == "imdb"} == {0, 1, 2}


def test_a_page_that_is_no_markdown_is_refused_before_anything_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline.report, "assemble", lambda *given: pytest.fail("drawn"))
    with pytest.raises(ValueError, match=r"must be a \.md file"):
        pipeline.write_report([], markdown=tmp_path / "page.html")
