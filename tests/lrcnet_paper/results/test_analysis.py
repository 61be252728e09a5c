"""Measurements on trained networks are made once, kept beside the run, and survive collecting."""

import json
import types

import pytest

from lrcnet_paper.results import analysis
from lrcnet_paper.results.collected import collect
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.reading import read_runs
from tests.lrcnet_paper.artefacts import synthetic_runs


@pytest.fixture
def measured_folders():
    """Names of the run folders that `one` has measured."""
    return []


@pytest.fixture
def one(measured_folders):
    """A measurement that counts how often it is made."""
    return {
        "one": types.SimpleNamespace(
            wants=lambda result: result.model == "lrcu-s",
            analyse=lambda folder: measured_folders.append(folder.name) or {"value": [1.23456789, None], "name": "x"},
        )
    }


def write(folder, model, status="finished"):
    place = folder / model
    place.mkdir()
    synthetic_runs.result("person", "coarse", model, status=status).write(place)
    return place


def test_each_wanted_run_is_measured_once(tmp_path, one, measured_folders):
    write(tmp_path, "lrcu-s")
    write(tmp_path, "lstm")
    assert analysis.analyse_all(one, tmp_path) == 1
    assert analysis.analyse_all(one, tmp_path) == 0
    assert measured_folders == ["lrcu-s"]
    analyses = {run.result.model: run.analyses for run in read_runs(tmp_path)}
    assert analyses == {"lrcu-s": {"one": {"value": [1.23456789, None], "name": "x"}}, "lstm": {}}


def test_a_diverged_run_is_not_measured(tmp_path, one):
    write(tmp_path, "lrcu-s", status="diverged")
    assert analysis.analyse_all(one, tmp_path) == 0


def test_a_continued_run_is_measured_again(tmp_path, one):
    place = write(tmp_path, "lrcu-s")
    analysis.analyse_all(one, tmp_path)
    later = (place / "analyses" / "one.json").stat().st_mtime + 10
    import os

    os.utime(place / "result.json", (later, later))
    assert analysis.analyse_all(one, tmp_path) == 1


def test_measurements_are_collected_and_read_back(tmp_path):
    run = FinishedRun(
        synthetic_runs.result("person", "coarse", "lstm"), {}, {}, {"one": {"deep": {"list": [0.123456789]}}}
    )
    (path,) = collect([run], tmp_path)
    assert json.loads(path.read_text())["analyses"] == {"one": {"deep": {"list": [0.123457]}}}
    assert read_runs(tmp_path)[0].analyses == {"one": {"deep": {"list": [0.123457]}}}
