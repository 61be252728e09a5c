"""`train`: the call behind `lrcnet train`, for notebooks."""

import pytest

from lrcnet_paper.training import Result, RunSpec, train
from lrcnet_paper.training.summary import format_rate, format_result


def test_train_runs_the_spec_of_its_names_in_the_given_folder(tmp_path):
    result = train("neural-ode", "lrc-s", iterations=3, seed=2, out=tmp_path / "run", progress=False)
    assert result.spec == RunSpec("neural-ode", "sinusoid", "lrc-s", iterations=3, seed=2)
    assert Result.read(tmp_path / "run") == result
    again = train("neural-ode", "lrc-s", iterations=3, seed=2, out=tmp_path / "run", progress=False, resume=True)
    assert again == result


def test_runs_go_below_runs_unless_a_folder_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = train("neural-ode", "lrc-s", variant="spiral", iterations=2, progress=False)
    assert Result.read(tmp_path / "runs" / result.spec.folder_name()) == result


def test_the_schedule_is_the_tasks_own_unless_one_is_given(monkeypatch):
    specs = []
    monkeypatch.setattr("lrcnet_paper.training.by_name.run_in", lambda folder, spec, **options: specs.append(spec))
    train("driving", "lrcu-s")
    train("driving", "lrcu-s", schedule="constant")
    train("person", "lrcu-s")
    assert [spec.schedule for spec in specs] == ["cosine", "constant", "constant"]


def test_a_setting_that_a_run_does_not_have_is_a_type_error():
    with pytest.raises(TypeError, match="epoch"):
        train("person", "lrcu-s", epoch=3)


def test_a_result_is_formatted_with_its_unit_and_every_metric(tmp_path):
    result = train("neural-ode", "lrc-s", iterations=3, out=tmp_path, progress=False)
    text = format_result(result)
    assert "3 iterations, " in text
    assert all(name in text for name in result.metrics)
    assert format_rate(1e-3, None) == "learning rate 0.001: diverged"
