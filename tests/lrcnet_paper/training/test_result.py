"""Runs and results: stable names, exact round trips, clear messages for broken files."""

import json

import pytest

from lrcnet.cli import main
from lrcnet_paper.tasks import find
from lrcnet_paper.training import Result, RunSpec, atomic_files, by_name
from lrcnet_paper.training.atomic_files import write_atomically, write_json

SPEC = RunSpec("person", "coarse", "lrcu-s", epochs=3)
RESULT = Result(
    spec=SPEC,
    rate=1e-3,
    unit="epoch",
    parameters=23_573,
    epochs=3,
    updates=30,
    best_epoch=3,
    seconds_per_epoch=1.5,
    metrics={"accuracy": 0.1 + 0.2},
    status="finished",
    versions={"torch": "2"},
    machine={"cores": 2},
)
FIELDS = "spec rate unit parameters epochs updates best_epoch seconds_per_epoch metrics status versions machine"


def test_a_result_has_exactly_the_contracts_fields(tmp_path):
    RESULT.write(tmp_path)
    assert list(json.loads((tmp_path / "result.json").read_text())) == FIELDS.split()


def test_a_result_carries_every_choice_of_its_run(tmp_path):
    RESULT.write(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["spec"] == SPEC.as_dict()
    assert (RESULT.task, RESULT.variant, RESULT.model) == ("person", "coarse", "lrcu-s")
    assert (RESULT.seed, RESULT.budget) == (0, "custom")
    assert RESULT.command == SPEC.command()


def test_a_result_survives_the_disk_to_the_last_digit(tmp_path):
    RESULT.write(tmp_path / "one.json")
    assert Result.read(tmp_path / "one.json") == RESULT


@pytest.mark.parametrize(("text", "word"), [("{", "must be a JSON file"), ("[]", "fields"), ('{"task": 1}', "fields")])
def test_a_broken_result_is_refused_with_the_reason(tmp_path, text, word):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ValueError, match=word):
        Result.read(tmp_path)


def test_nan_never_reaches_a_json_file(tmp_path):
    with pytest.raises(ValueError):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")

    def fill(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fill)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_are_written_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    def refuse(path, *flags):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(atomic_files.sys, "platform", "win32")
    monkeypatch.setattr(atomic_files.os, "open", refuse)
    write_atomically(tmp_path / "x", lambda file: file.write(b"all"))
    monkeypatch.undo()
    assert (tmp_path / "x").read_bytes() == b"all"


def test_the_folder_name_is_stable_and_ignores_the_length_of_a_constant_run():
    assert SPEC.folder_name() == "person_coarse_lrcu-s_seed0_custom_d9016ba9"
    assert SPEC.with_(epochs=9).folder_name() == SPEC.folder_name()
    assert SPEC.with_(epochs=9, schedule="cosine").folder_name() != SPEC.with_(schedule="cosine").folder_name()


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"learning_rate": 0.1},
        {"solver": "euler-1"},
        {"budget": "paper"},
        {"options": {"units": 3}},
        {"clip": 1.0},
        {"samples": 7},
        {"devices": 2},
    ],
)
def test_every_choice_that_changes_the_numbers_changes_the_folder(change):
    assert SPEC.with_(**change).folder_name() != SPEC.folder_name()


@pytest.fixture
def spec_of(monkeypatch):
    """Return the run that `lrcnet train` would make of a command line."""

    def parse(words):
        specs = []
        monkeypatch.setattr(by_name, "run_in", lambda folder, spec, **options: specs.append(spec) or RESULT)
        assert main(words) == 0
        return specs[0]

    return parse


def test_a_spec_survives_json_and_its_command_line(spec_of):
    spec = SPEC.with_(
        seed=4, solver="euler-1", clip=0.5, learning_rate=1e-2, options={"units": 8, "parametrisation": "ab"}, devices=2
    )
    assert RunSpec.from_dict(json.loads(json.dumps(spec.as_dict()))) == spec
    assert spec_of(spec.command().split()[1:]) == spec


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize(("task", "variant"), [("driving", "own"), ("person", "coarse")])
def test_a_command_line_means_its_schedule_whatever_the_tasks_own_is(spec_of, task, variant, schedule):
    spec = RunSpec(task, variant, "gru", schedule=schedule)
    assert spec_of(spec.command().split()[1:]) == spec
    plain = ["train", task, "--model", "gru"]
    assert spec_of(plain).schedule == find(task).recipe.schedule


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"schedule": "linear"}, "schedule must be one of constant, cosine"),
        ({"budget": "huge"}, "budget must be one of smoke"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and above 0"),
    ],
)
def test_bad_specs_are_refused(change, word):
    with pytest.raises(ValueError, match=word):
        SPEC.with_(**change)
