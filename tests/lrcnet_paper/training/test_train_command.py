"""`lrcnet train`: its output, and one line for every mistake."""

import sys

import pytest

from lrcnet.cli import main

SHORT = ["train", "neural-ode", "--model", "lrc-s", "--iterations", "3", "--quiet"]


def test_a_run_prints_its_numbers_and_the_same_command_again_reads_them(tmp_path, capsys):
    command = [*SHORT, "--out", str(tmp_path / "run")]
    assert main(command) == 0
    first = capsys.readouterr().out
    assert "mean_absolute_error " in first
    assert "1,426 parameters" in first
    assert "\nmean absolute error " in first, "the reported metric"
    assert f", in {tmp_path / 'run'}\nnext: lrcnet report {tmp_path} --html" in first
    assert main(command) == 0
    again = capsys.readouterr().out
    assert again.replace("this run was finished before; nothing was trained\n", "") == first
    assert again != first


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--model", "rnn"], "model must be one of"),
        (["--variant", "pendulum"], "variant of neural-ode must be one of"),
        (["--solver", "hybrid-1"], "solver"),
        (["--resume"], "--resume needs a run to continue"),
        (["--option", "units"], "--option must be NAME=VALUE"),
        (["--option", "colour=red"], "colour"),
        (["--search-lr", "--lr", "1"], "leave one of them out"),
        (["--search-lr"], "needs a validation split"),
        (["--search-lr", "--resume"], "but --resume was given; leave it out"),
        (["--search-lr", "--no-resume"], "but --no-resume was given; leave it out"),
        (["--lr", "-1"], "learning_rate must be finite and above 0"),
        (["--devices", "0"], "devices must be at least 1"),
    ],
)
def test_mistakes_get_one_line(tmp_path, capsys, more, word):
    assert main([*SHORT, "--out", str(tmp_path / "run"), *more]) == 1
    error = capsys.readouterr().err
    assert error.startswith("lrcnet train: ")
    assert word in error
    assert error.count("\n") == 1


def test_an_existing_run_is_refused_when_asked_to(tmp_path, capsys):
    command = [*SHORT, "--out", str(tmp_path / "run")]
    assert main(command) == 0
    assert main([*command, "--no-resume"]) == 1
    assert "there is a run in" in capsys.readouterr().err
    assert main([*command, "--seed", "5"]) == 1
    assert "holds another run (seed 0 there, 5 here)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "flags", "extra"), [("lightning.fabric", [], "train"), ("tensorboard", ["--tensorboard"], "tensorboard")]
)
def test_a_missing_extra_is_named(tmp_path, capsys, monkeypatch, module, flags, extra):
    blocked = [module, "tensorboardX"] if module == "tensorboard" else [module]
    if module == "tensorboard":
        monkeypatch.setattr("lightning.fabric.loggers.tensorboard._TENSORBOARD_AVAILABLE", False)
        monkeypatch.setattr("lightning.fabric.loggers.tensorboard._TENSORBOARDX_AVAILABLE", False)
    for name in blocked:
        monkeypatch.setitem(sys.modules, name, None)
    assert main([*SHORT, "--out", str(tmp_path / "run"), *flags]) == 1
    assert f"lrcnet[{extra}]" in capsys.readouterr().err


def test_the_search_takes_the_rate_of_least_validation_loss(tmp_path, capsys, person_data):
    command = [
        "train", "person", "--variant", "a01-a04-clean", "--model", "gru", "--epochs", "2", "--samples", "8",
        "--batch-size", "4", "--option", "units=4", "--search-lr", "--quiet", "--data", str(person_data),
        "--out", str(tmp_path),
    ]  # fmt: skip
    assert main(command) == 0
    printed = capsys.readouterr().out
    rates = [line.split() for line in printed.splitlines() if line.startswith("learning rate")]
    losses = {words[2].rstrip(":"): float(words[-1]) for words in rates}
    assert list(losses) == ["0.0001", "0.001", "0.01"]
    best = next(float(line.split()[-1]) for line in printed.splitlines() if line.startswith("validation_loss"))
    assert best == pytest.approx(min(losses.values()), abs=1e-3)


def test_help_needs_nothing_heavy():
    import subprocess

    code = (
        "import sys; from lrcnet.cli import main\n"
        "try: main(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'lightning', 'ray', 'tensorboard', 'wandb', 'mlflow'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
