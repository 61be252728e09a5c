"""A user's own task and own recordings train, resume and appear in a report; flags without effect are refused."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lrcnet.cli import main
from lrcnet_paper import tasks
from lrcnet_paper.tasks import own_tasks
from lrcnet_paper.tasks.own_recordings import read_own
from lrcnet_paper.training import train

FILE = """
import torch
from lrcnet_paper.tasks import Samples, make_task

def read(split, data):
    generator = torch.Generator().manual_seed({"train": 0, "test": 1}[split])
    y = torch.randint(2, (64,), generator=generator)
    x = torch.randn(64, 10, 3, generator=generator) + y[:, None, None]
    return Samples(x, None, y)

TASK = make_task("waves", read, kind="label-per-sequence", input_size=3, output_size=2, length=10,
                 splits={"train": 64, "test": 64})
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(own_tasks, "_REGISTERED", {})
    monkeypatch.delenv(own_tasks.VARIABLE, raising=False)
    own_tasks._read_file.cache_clear()
    path = tmp_path / "my_task.py"
    path.write_text(FILE)
    return path


def test_a_task_of_a_file_trains_resumes_and_is_reported(file: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    first = train(str(file), "gru", epochs=1, out=runs / "a", progress=False)
    assert first.task == "waves"
    longer = train("waves", "gru", epochs=6, out=runs / "a", resume=True, progress=False)
    assert longer.epochs == 6
    assert longer.metrics["accuracy"] > 0.8
    assert main(["report", str(runs), "--html", str(tmp_path / "report.html"), "--artefact", "elastance"]) == 0
    assert "Your task waves" in (tmp_path / "report.html").read_text()


def test_runs_are_reported_where_the_file_of_the_task_is_not_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(own_tasks.VARIABLE, "")
    runs = tmp_path / "runs"
    train(str(file), "gru", epochs=1, learning_rate=0.02, out=runs / "a", progress=False)
    # A later process knows nothing of the file.
    monkeypatch.setenv(own_tasks.VARIABLE, "")
    monkeypatch.setattr(own_tasks, "_REGISTERED", {})
    assert main(["report", str(runs), "--html", str(tmp_path / "report.html"), "--artefact", "elastance"]) == 0
    assert "Your task waves" in (tmp_path / "report.html").read_text()


def test_the_command_that_a_run_suggests_finds_the_task(
    file: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs" / "a"
    assert main(["train", str(file), "--model", "gru", "--epochs", "1", "--out", str(folder), "--quiet"]) == 0
    variable, *command = shlex.split(capsys.readouterr().out.rpartition("next: ")[2])
    # A later process knows the variable only.
    monkeypatch.setattr(own_tasks, "_REGISTERED", {})
    monkeypatch.setenv(*variable.split("="))
    monkeypatch.chdir(tmp_path)
    assert main(command[1:]) == 0
    assert (tmp_path / "inside.html").is_file()


def test_the_data_of_an_own_task_must_exist(file: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--data must name a file or a folder, but nowhere does not exist"):
        train(str(file), "gru", epochs=1, out=tmp_path / "a", data="nowhere", progress=False)


def test_a_task_is_found_through_the_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"task must be one of .*, or a file that defines one, but is 'waves'; choose"):
        tasks.find("waves")
    monkeypatch.setenv(own_tasks.VARIABLE, str(file))
    assert tasks.find("waves").splits["train"] == 64


def test_bad_files_of_tasks_are_one_sentence(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match="a file of tasks must exist"):
        tasks.find("nowhere.py")
    file.write_text("x = 1")
    with pytest.raises(ValueError, match=r"must define TASK or TASKS, but my_task.py defines neither"):
        tasks.find(str(file))
    with pytest.raises(TypeError, match="a registered task must be a Task"):
        tasks.register("waves")  # type: ignore[arg-type]


def write_drive(folder: Path, frames: int, curvature: float) -> None:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    lines = ["frame,curvature"]
    for k in range(frames):
        Image.fromarray(rng.integers(0, 255, (12, 40, 3), dtype=np.uint8)).save(folder / f"{k}.png")
        lines.append(f"{k}.png,{curvature * np.sin(k / 5):.6f}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRCNET_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("cache")
def test_a_small_cars_curvatures_are_learned_in_a_unit_that_trains(tmp_path: Path) -> None:
    for i in range(3):
        write_drive(tmp_path / "drives" / f"d{i}", 40, curvature=1.0)
    own = read_own(tmp_path / "drives")
    assert own.factor == 0.01
    parts = {name: own.split(name, 32) for name in ("train", "validation", "test")}
    assert [len(part) for part in parts.values()] == [40, 40, 40]
    assert 0.004 < np.abs(parts["train"].curvature).max() < 0.02
    result = train(
        "driving", "gru", data=tmp_path / "drives", epochs=1, out=tmp_path / "run", progress=False, options={"units": 4}
    )
    assert result.variant == "recordings"
    # In 1/100 m, the curvatures as they are would count about 70 ** 2 = 4900.
    assert result.metrics["curvature_loss"] < 100


@pytest.mark.usefixtures("cache")
def test_one_drive_is_split_by_time_and_short_ones_are_refused(tmp_path: Path) -> None:
    write_drive(tmp_path / "one", 250, curvature=0.01)
    own = read_own(tmp_path / "one")
    assert own.factor == 1
    assert [len(own.split(name, 32)) for name in ("train", "validation", "test")] == [175, 37, 38]
    with pytest.raises(ValueError, match="validation part of the recordings must hold 64 frames"):
        own.split("validation", 64)
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="--data must be a folder of recordings"):
        read_own(tmp_path / "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "driving", "--model", "gru", "--variant", "own", "--data", "x"], "or use --variant recordings"),
        (["train", "neural-ode", "--model", "lrc-s", "--data", "x"], "makes its own data and reads no files"),
        (["train", "driving", "--model", "gru", "--variant", "recordings"], "--data is not given"),
        (["explain", "x", "--html", "y", "--dt", "2"], "so --dt would have no effect"),
        (["bench", "latency", "--picture", "x.png"], "so --picture would have no effect"),
        (["reproduce", "--address", "x"], "so --address would have no effect"),
        (["reproduce", "--list", "--data", "x"], "--list trains nothing, so --data would have no effect"),
        (["drive", "x", "--html", "y", "--noise", "0", "--seed", "3"], "so --seed would have no effect"),
        (["drive", "x", "--html", "y", "--trace", "z", "--road", "3"], "so --road would have no effect"),
        (["report", "x", "--collect", "y", "--artefact", "elastance"], "so --artefact would have no effect"),
    ],
)
def test_a_flag_without_effect_is_refused(arguments: list[str], message: str, tmp_path: Path, capsys: Any) -> None:
    out = ["--out", str(tmp_path / "run")] if arguments[0] == "train" else []
    assert main([*arguments, *out]) == 1
    assert message in capsys.readouterr().err
