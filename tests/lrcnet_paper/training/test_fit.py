"""One run: the files it writes, the numbers it reports, and the mistakes it refuses."""

import contextlib
import csv
import json
import math

import pytest
import torch

import lrcnet
from lrcnet_paper.models import build, parameter_count
from lrcnet_paper.tasks import find
from lrcnet_paper.training import Result, RunSpec, run
from lrcnet_paper.training.checkpoint import BEST, LAST, PREVIOUS
from lrcnet_paper.training.fit import Fit
from lrcnet_paper.training.single_run import run_in

CLEAN = RunSpec("person", "a01-a04-clean", "lrcu-s", epochs=3, batch_size=4, samples=10, options={"units": 6})
ODE = RunSpec("neural-ode", "sinusoid", "lrc-s", iterations=120)


def rows(folder):
    with (folder / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_run_leaves_the_files_of_the_contract(tmp_path, person_data):
    result = run(CLEAN, tmp_path, person_data)
    folder = tmp_path / CLEAN.folder_name()
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "config.json", "environment.json", "metrics.csv", "timings.csv", "result.json", ".lock", LAST, PREVIOUS, BEST
    }  # fmt: skip
    assert Result.read(folder) == result
    assert result.status == "finished"
    assert result.parameters == parameter_count(build("lrcu-s", find("person"), units=6))
    assert [row["epoch"] for row in rows(folder)] == ["1", "2", "3"]
    config = json.loads((folder / "config.json").read_text())
    assert config["run"]["seed"] == 0
    assert config["resolved"]["optimizer"] == "rmsprop"
    assert config["resolved"]["parametrisation"] == "sigma-mu"
    assert any("sigma" in name for name in torch.load(folder / LAST, weights_only=True)["model"])


def test_the_reported_number_is_that_of_the_best_validation_epoch(tmp_path, person_data):
    result = run(CLEAN, tmp_path, person_data)
    history = rows(tmp_path / CLEAN.folder_name())
    best = max(history, key=lambda row: (float(row["validation_accuracy"]), -float(row["validation_loss"])))
    assert result.best_epoch == int(best["epoch"])
    assert result.metrics["validation_accuracy"] == float(best["validation_accuracy"])
    assert not any("test" in column for column in history[0]), "test data is looked at once, at the end"
    weights = torch.load(tmp_path / CLEAN.folder_name() / BEST, weights_only=True)["model"]
    network = build("lrcu-s", find("person", "a01-a04-clean"), units=6)
    network.load_state_dict(weights)
    test = find("person", "a01-a04-clean").load("test", person_data)
    x, dt, y = test[torch.arange(10) * len(test) // 10]
    with torch.no_grad():
        accuracy = (network(x, dt).argmax(-1) == y).double().mean().item()
    assert result.metrics["accuracy"] == pytest.approx(accuracy, abs=1e-12)


def test_the_faithful_protocol_reports_the_last_epoch(tmp_path, person_data):
    spec = CLEAN.with_(variant="a01-a04")
    result = run(spec, tmp_path, person_data)
    last = rows(tmp_path / spec.folder_name())[-1]
    assert result.best_epoch == 3
    assert result.metrics["accuracy"] == float(last["test_accuracy"])


@pytest.mark.parametrize("model", ["lrc-s", "neural-ode"])
def test_the_ode_task_reports_last_and_least_roll_out(tmp_path, model):
    spec = ODE.with_(model=model, iterations=20)
    result = run(spec, tmp_path)
    (row,) = rows(tmp_path / spec.folder_name())
    assert result.epochs == 20
    assert result.metrics["mean_absolute_error"] == float(row["test_mean_absolute_error"])
    assert result.metrics["mean_absolute_error_min"] == result.metrics["mean_absolute_error"]
    # The paper's other solver stands beside the model's own.
    assert ("mean_absolute_error_euler" in result.metrics) == (model == "neural-ode")
    assert ("mean_absolute_error_dopri5" in result.metrics) == (model != "neural-ode")


def test_the_marks_of_the_ode_task_are_taken_from_the_history():
    from lrcnet_paper.training.problems.trajectories import TrajectoryProblem

    problem = TrajectoryProblem.__new__(TrajectoryProblem)
    history = [{"iteration": n, "test_e": abs(n - 700) / 1000 if n != 800 else math.inf} for n in range(100, 2100, 100)]
    report = problem.report(None, history)
    assert report["e"] == 1.3
    assert (report["e_min"], report["e@1000"], report["e_min@1000"], report["e@2000"]) == (0.0, 0.3, 0.0, 1.3)
    assert "e@4000" not in report


def test_training_lowers_the_loss_and_keeps_the_constraints(tmp_path, person_data):
    spec = CLEAN.with_(epochs=12, learning_rate=0.02)
    run(spec, tmp_path, person_data)
    history = rows(tmp_path / spec.folder_name())
    assert float(history[-1]["train_loss"]) < 0.9 * float(history[0]["train_loss"])
    model = torch.load(tmp_path / spec.folder_name() / LAST, weights_only=True)["model"]
    for name in ("g", "g_l", "k_eps"):
        assert (model[f"layer.cells.0.{name}"] >= 0).all(), name


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(tmp_path, person_data):
    texts = []
    for out, seed in (("a", 0), ("b", 0), ("c", 1)):
        spec = CLEAN.with_(seed=seed)
        run(spec, tmp_path / out, person_data)
        texts.append((tmp_path / out / spec.folder_name() / "metrics.csv").read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    spec = ODE.with_(iterations=5)
    result = run(spec, tmp_path)
    monkeypatch.setattr(Fit, "run", lambda self: pytest.fail("ran again"))
    assert run(spec, tmp_path) == result


def test_a_continued_run_equals_one_that_was_long_from_the_start(tmp_path, person_data):
    run(CLEAN.with_(epochs=2), tmp_path / "a", person_data)
    longer = run(CLEAN.with_(epochs=4), tmp_path / "a", person_data)
    whole = run(CLEAN.with_(epochs=4), tmp_path / "b", person_data)
    assert longer.metrics == whole.metrics
    name = CLEAN.folder_name()
    assert (tmp_path / "a" / name / "metrics.csv").read_bytes() == (tmp_path / "b" / name / "metrics.csv").read_bytes()
    with pytest.raises(ValueError, match="has 4 epochs already, more than the 1 asked for"):
        run(CLEAN.with_(epochs=1), tmp_path / "a", person_data)


def test_a_folder_with_another_run_is_refused(tmp_path):
    run_in(tmp_path, ODE.with_(iterations=3))
    with pytest.raises(ValueError, match=r"holds another run \(seed 0 there, 7 here\); choose another folder"):
        run_in(tmp_path, ODE.with_(iterations=3, seed=7))


def test_the_wrong_unit_of_length_is_named(tmp_path):
    with pytest.raises(ValueError, match="neural-ode is counted in iterations, but epochs=3"):
        run(ODE.with_(iterations=None, epochs=3), tmp_path)


def test_a_nan_loss_stops_the_run_and_says_so(tmp_path, person_data, monkeypatch):
    from lrcnet_paper.training.problems import sequences

    spec = CLEAN.with_(epochs=5)
    original, calls = sequences.SequenceProblem.loss, []

    def loss(self, network, batch):
        calls.append(1)
        value = original(self, network, batch)
        return value * math.nan if len(calls) > 6 else value

    monkeypatch.setattr(sequences.SequenceProblem, "loss", loss)
    with pytest.raises(lrcnet.DivergenceError, match="lrcu-s seed 0: the loss became nan at step 7"):
        run(spec, tmp_path, person_data)
    folder = tmp_path / spec.folder_name()
    result = Result.read(folder)
    assert (result.status, result.metrics) == ("diverged", {})
    last = torch.load(folder / LAST, weights_only=True)
    assert last["done"] == result.epochs == len(rows(folder)) >= 1
    assert all(value.isfinite().all() for value in last["model"].values())
    with pytest.raises(lrcnet.DivergenceError, match="diverged after"):
        run(spec, tmp_path, person_data)


def test_weights_that_are_not_finite_are_never_saved(tmp_path, monkeypatch):
    from lrcnet_paper.training import fit
    from lrcnet_paper.training.problems import trajectories

    monkeypatch.setattr(trajectories, "EVERY", 2)
    monkeypatch.setattr(trajectories, "SHOWN_AT", (2, 4, 6))
    original = fit.train_steps

    def train_steps(fabric, problem, model, *rest, stop, **options):
        sums = original(fabric, problem, model, *rest, stop=stop, **options)
        if stop == 6:  # as a last step with a huge gradient would leave them
            next(model.parameters()).data.fill_(math.nan)
        return sums

    monkeypatch.setattr(fit, "train_steps", train_steps)
    spec = ODE.with_(iterations=8)
    with pytest.raises(lrcnet.DivergenceError, match="the weights stopped being finite in iteration 6; try a smaller"):
        run(spec, tmp_path)
    folder = tmp_path / spec.folder_name()
    last = torch.load(folder / LAST, weights_only=True)
    assert last["done"] == 4
    assert all(value.isfinite().all() for value in last["model"].values())
    # The errors before the divergence are kept.
    errors = [float(row["test_mean_absolute_error"]) for row in rows(folder)]
    result = Result.read(folder)
    assert (result.status, result.epochs) == ("diverged", 4)
    own = {name: value for name, value in result.metrics.items() if "dopri5" not in name}
    assert len(result.metrics) == 2 * len(own), "the same by the other solver"
    assert own == {
        "mean_absolute_error@2": errors[0],
        "mean_absolute_error_min@2": errors[0],
        "mean_absolute_error@4": errors[1],
        "mean_absolute_error_min@4": min(errors),
    }


def test_rows_are_logged_before_and_the_best_weights_read_after_they_are_saved(tmp_path, person_data, monkeypatch):
    from lightning.fabric import Fabric

    from lrcnet_paper.training import checkpoint, loggers

    happened = []
    for owner, name in ((checkpoint, "save_best"), (checkpoint, "save_last"), (checkpoint, "load_best")):
        note_calls(monkeypatch, owner, name, happened)
    note_calls(monkeypatch, Fabric, "barrier", happened)
    note_calls(monkeypatch, loggers.Loggers, "log", happened)
    run(CLEAN.with_(epochs=1), tmp_path, person_data)
    # A process that does not write meets the one that does at the barrier.
    assert happened == ["barrier", "log", "save_best", "save_last", "barrier", "load_best", "barrier"]


def note_calls(monkeypatch, owner, name, happened):
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *words, **more: (happened.append(name), original(*words, **more))[1])


def test_damaged_checkpoints_fall_back_or_say_so(tmp_path, person_data, caplog):
    spec = CLEAN.with_(epochs=2)
    run(spec, tmp_path / "whole", person_data)
    run(spec, tmp_path / "hurt", person_data)
    folder = tmp_path / "hurt" / spec.folder_name()
    (folder / "result.json").unlink()
    content = bytearray((folder / LAST).read_bytes())
    content[len(content) // 2] ^= 0xFF
    (folder / LAST).write_bytes(content)
    result = run(spec, tmp_path / "hurt", person_data)
    assert "last.ckpt" in caplog.text
    assert "resuming from previous.ckpt" in caplog.text
    assert result.metrics == Result.read(tmp_path / "whole" / spec.folder_name()).metrics

    (folder / "result.json").unlink()
    (folder / LAST).write_bytes(b"nonsense")
    (folder / PREVIOUS).write_bytes(content[:1000])
    with pytest.raises(RuntimeError, match=r"no checkpoint in .* can be read: last.ckpt .*delete the folder"):
        run(spec, tmp_path / "hurt", person_data)


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_a_flipped_byte_anywhere_is_noticed_or_harmless(tmp_path, cut):
    from lrcnet_paper.training.checkpoint import Progress, load_last, save_last

    network = torch.nn.Linear(40, 40)
    optimiser = torch.optim.Adam(network.parameters())
    save_last(tmp_path, network, optimiser, Progress())
    before = {name: value.clone() for name, value in network.state_dict().items()}
    content = bytearray((tmp_path / LAST).read_bytes())
    content[int(cut * len(content))] ^= 0x55
    (tmp_path / LAST).write_bytes(content)
    # Between the files of the archive there is padding, where a flipped byte changes nothing.
    with contextlib.suppress(RuntimeError):
        load_last(tmp_path, network, optimiser)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_clipping_and_schedule_change_the_run(tmp_path, person_data):
    plain = run(CLEAN.with_(epochs=2), tmp_path, person_data).metrics
    clipped = run(CLEAN.with_(epochs=2, clip=1e-3), tmp_path, person_data).metrics
    cosine = run(CLEAN.with_(epochs=2, schedule="cosine"), tmp_path, person_data).metrics
    assert len({plain["train_loss"], clipped["train_loss"], cosine["train_loss"]}) == 3
    with (tmp_path / CLEAN.with_(epochs=2, schedule="cosine").folder_name() / "metrics.csv").open() as file:
        rates = [float(row["learning_rate"]) for row in csv.DictReader(file)]
    assert 0 < rates[1] < rates[0] < 1e-3


def test_the_global_generator_is_left_alone(tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    run(ODE.with_(iterations=2), tmp_path)
    assert torch.equal(torch.rand(1), expected)


def test_a_run_stops_when_its_validation_has_stalled_and_counts_as_finished(tmp_path, monkeypatch):
    # At this rate nothing changes, so the first epoch stays the best one.
    spec = RunSpec("xor", "events", "lrcu-s", epochs=40, samples=8, learning_rate=1e-30, options={"units": 4})
    patience = find("xor").recipe.patience
    result = run(spec, tmp_path)
    assert (result.status, result.best_epoch, result.epochs) == ("finished", 1, 1 + patience)
    monkeypatch.setattr(Fit, "_train_to_next_evaluation", lambda *_: pytest.fail("the run has ended"))
    assert run(spec, tmp_path) == result
    # A run that is shorter than the patience is trained to its end.
    monkeypatch.undo()
    assert run(spec.with_(epochs=3, seed=1), tmp_path).epochs == 3
