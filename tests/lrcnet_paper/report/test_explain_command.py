"""`lrcnet explain --lipschitz` on run folders as training writes them."""

from pathlib import Path

import pytest
import torch

from lrcnet.cli import main
from lrcnet_paper.models import build
from lrcnet_paper.report.subject import TrainedSubject
from lrcnet_paper.tasks import find
from lrcnet_paper.training.atomic_files import write_json
from lrcnet_paper.training.checkpoint import save_best
from lrcnet_paper.training.spec import RunSpec


def run_folder(place: Path, model: str, solver: str = "", task: str = "person", variant: str = "coarse") -> Path:
    spec = RunSpec(task, variant, model, solver=solver, options={} if task == "neural-ode" else {"units": 6})
    network = build(model, find(task, variant), solver=solver, **spec.options)
    place.mkdir()
    write_json(place / "config.json", {"run": spec.as_dict(), "resolved": {}})
    save_best(place, network, 1)
    (place / "best.ckpt").rename(place / "last.ckpt")
    return place


def table(text: str) -> dict[str, str]:
    return {name.strip(): value.strip() for name, value in (line.split("  ", 1) for line in text.splitlines())}


def test_bounds_and_measured_value_of_an_lrcu_are_printed_in_order(tmp_path, capsys) -> None:
    assert main(["explain", str(run_folder(tmp_path / "run", "lrcu-s")), "--lipschitz"]) == 0
    rows = table(capsys.readouterr().out)
    bound, tighter, measured = (float(rows[n]) for n in ("bound", "tighter bound (ours)", "empirical value"))
    assert measured <= tighter <= bound
    assert float(rows["ratio bound / empirical"]) == pytest.approx(bound / measured, rel=1e-4)
    assert float(rows["ratio tighter / empirical"]) == pytest.approx(tighter / measured, rel=1e-4)
    assert rows["weights"] == "last.ckpt"


def test_unfoldings_and_data_are_named(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(TrainedSubject, "layer_inputs", lambda *_: torch.randn(4, 10, 7))
    place = run_folder(tmp_path / "run", "stc", "hybrid-6")
    assert main(["explain", str(place / "last.ckpt"), "--lipschitz", "--data", "anywhere"]) == 0
    rows = table(capsys.readouterr().out)
    assert "bound, over 6 unfoldings (ours)" in rows
    assert float(rows["empirical value over the data"]) <= float(rows["empirical value"])


def test_ltc_has_a_measured_value_and_the_reason_for_no_bound(tmp_path, capsys) -> None:
    assert main(["explain", str(run_folder(tmp_path / "run", "ltc")), "--lipschitz", "--inputs", "0", "1"]) == 0
    rows = table(capsys.readouterr().out)
    assert rows["bound"].startswith("none: the Lipschitz bound is proved for STC, LRC and LRCU")
    assert float(rows["empirical value"]) > 0


@pytest.mark.parametrize(
    ("model", "task", "variant", "words"),
    [
        ("lstm", "psmnist", "permuted", "no Lipschitz constant is defined here for a LSTM"),
        ("lrc-s", "neural-ode", "spiral", "but NeuralODE is a vector field"),
    ],
)
def test_other_models_get_one_line(model, task, variant, words, tmp_path, capsys) -> None:
    place = run_folder(tmp_path / "run", model, task=task, variant=variant)
    assert main(["explain", str(place), "--lipschitz"]) == 1
    output = capsys.readouterr().err
    assert words in output
    assert len(output.splitlines()) == 1


def test_bad_arguments_get_one_line(tmp_path, capsys) -> None:
    place = run_folder(tmp_path / "run", "lrcu-s")
    (place / "broken.ckpt").write_bytes(b"nothing")
    for arguments, words in (
        ([str(place)], "say what to explain: --lipschitz"),
        ([str(tmp_path), "--lipschitz"], "CHECKPOINT must be the folder of a trained network"),
        ([str(place / "broken.ckpt"), "--lipschitz"], "must hold the weights of this run, but cannot be read"),
        ([str(place / "none.ckpt"), "--lipschitz"], "must hold the weights of this run, but cannot be read"),
        ([str(place), "--lipschitz", "--data", "x", "--inputs", "0", "1"], "leave one of them out"),
        ([str(place), "--lipschitz", "--inputs", "1", "0"], "must not be empty"),
    ):
        assert main(["explain", *arguments]) == 1
        output = capsys.readouterr().err
        assert words in output
        assert len(output.splitlines()) == 1
