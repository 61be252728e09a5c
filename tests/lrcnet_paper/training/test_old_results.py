"""Older results, whose run stands in a label and a command line, keep their meaning."""

import json
import re
import shlex
from pathlib import Path

import pytest

from lrcnet_paper import tasks
from lrcnet_paper.results.collected import collect, read_collected
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.training import Result

RESULTS = Path(__file__).parents[3] / "results"
FILES = sorted(RESULTS.glob("*/*.json"))
NAME = re.compile(
    r"(?P<label>.+)_(?P<model>[^_]+)_(?P<budget>[^_]+)_(?P<epochs>\d+)_seed(?P<seed>\d+)(_(?P<digest>[0-9a-f]{8}))?"
)

OLD = {
    "task": "imdb",
    "variant": "text",
    "model": "lrcu-s",
    "seed": 2,
    "budget": "custom",
    "parameters": 7,
    "epochs": 3,
    "best_epoch": 2,
    "seconds_per_epoch": 1.5,
    "metrics": {"accuracy": 0.5},
    "status": "finished",
    "versions": {"torch": "2"},
    "machine": {"cores": 2},
    "command": "lrcnet train imdb --model lrcu-s --variant text --solver hybrid-6 --epochs 3 --batch-size 8 --lr 0.01 "
    "--clip 1.0 --schedule cosine --samples 9 --piece 4 --devices 2 --seed 2 --option units=8 "
    "--option parametrisation=ab",
}


def identity_in_command(command):
    """Read the identity of a run from its command line in the plainest way."""
    words = shlex.split(command)
    flags = dict(zip(words[3::2], words[4::2], strict=True))
    recipe = tasks.find(words[2], flags["--variant"]).recipe
    return {
        "task": words[2],
        "variant": flags["--variant"],
        "model": flags["--model"],
        "rate": float(flags.get("--lr", recipe.learning_rate)),
        "solver": flags.get("--solver", ""),
        "schedule": flags.get("--schedule", recipe.schedule),
        "seed": int(flags["--seed"]),
        "budget": flags["--budget"],
    }


def test_there_are_results_to_read():
    assert len(FILES) > 200


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_file_of_results_says_the_same_as_its_name_and_its_command(file):
    content = json.loads(file.read_text())
    result = read_collected(file).result
    spec = result.spec
    identity = {
        "task": spec.task,
        "variant": spec.variant,
        "model": spec.model,
        "rate": result.rate,
        "solver": spec.solver,
        "schedule": spec.schedule,
        "seed": spec.seed,
        "budget": spec.budget,
    }
    if "command" in content:
        assert identity == identity_in_command(content["command"])
        assert spec.command() == content["command"]
    name = NAME.fullmatch(file.stem)
    assert file.parent.name == spec.task
    assert (name["label"], name["model"], name["budget"]) == (spec.slug(), spec.model, spec.budget)
    assert (int(name["epochs"]), int(name["seed"])) == (result.epochs, spec.seed)
    assert name["digest"] == (spec.digest() if spec.options else None)
    assert result.unit == ("iteration" if spec.task == "neural-ode" else "epoch")


def test_every_setting_of_an_old_command_becomes_a_field():
    result = Result.from_dict(OLD)
    spec = result.spec
    assert (spec.solver, spec.epochs, spec.batch_size, spec.learning_rate, spec.clip) == ("hybrid-6", 3, 8, 0.01, 1.0)
    assert (spec.schedule, spec.samples, spec.piece, spec.devices, spec.nodes) == ("cosine", 9, 4, 2, 1)
    assert spec.options == {"parametrisation": "ab", "units": 8}
    assert (spec.seed, spec.budget, result.rate, result.unit, result.epochs) == (2, "custom", 0.01, "epoch", 3)
    assert result.metrics == {"accuracy": 0.5}


def test_an_old_run_folder_is_read(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps(OLD))
    assert Result.read(tmp_path) == Result.from_dict(OLD)


def test_collecting_an_old_file_writes_the_new_form_of_the_same_run(tmp_path):
    file = RESULTS / "person" / "coarse+lr0.01_gru_paper_100_seed0.json"
    run = read_collected(file)
    (written,) = collect([run], tmp_path)
    assert written.name == file.name
    content = json.loads(written.read_text())
    assert content["spec"]["learning_rate"] == 0.01
    assert "command" not in content
    assert read_runs(tmp_path) == [run]
