"""`lrcnet export`: files, flags and errors, through the command's own module."""

import argparse
from pathlib import Path

import pytest

import lrcnet
from lrcnet.commands import export


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    export.configure(parser)
    return export.run(parser.parse_args(arguments))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(lrcnet.Classifier(lrcnet.LRCU(3, 5, time_scale=60.0), 5, 2).save(tmp_path / "model"))


def test_c_source_and_its_cost(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "my-net.c"
    assert run("c", folder, "--out", str(out), "--int16") == 0
    assert "bytes of weights" in capsys.readouterr().out
    assert "void my_net_step(my_net_state *state, const float x[3], float dt" in (tmp_path / "my-net.h").read_text()
    assert run("c", folder, "--out", str(out), "--no-dt", "--own-exp") == 0
    assert "const float x[3], float y[2]" in (tmp_path / "my-net.h").read_text()


def test_the_header_names_the_channels_and_the_classes_of_a_fitted_model(tmp_path: Path) -> None:
    extra = {
        "channels": ["rate", "ward=*/ A"],
        "mask": True,
        "own_data": {"classes": ["sick", "well"], "schema": {"task": "classification", "target": "label"}},
    }
    model = lrcnet.Classifier(lrcnet.LRCU(4, 5), 5, 2)
    assert run("c", str(model.save(tmp_path / "model", extra)), "--out", str(tmp_path / "net.c")) == 0
    header = (tmp_path / "net.h").read_text()
    for line in (
        "x[0]: rate\n",
        "x[1]: ward=* / A\n",
        "x[2]: 1 if rate was measured, else 0",
        "y[1]: logit of class well",
    ):
        assert line in header


@pytest.mark.slow
def test_onnx_files(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags in ([], ["--stream"], ["--no-dt"]):
        assert run("onnx", folder, "--out", str(tmp_path / "net.onnx"), *flags) == 0
        assert "wrote" in capsys.readouterr().out


def test_flags_of_the_other_format_are_refused(folder: str, tmp_path: Path) -> None:
    for arguments in (["onnx", folder, "--out", "net.onnx", "--int16"], ["c", folder, "--out", "net.c", "--stream"]):
        with pytest.raises(SystemExit):
            run(*arguments)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must hold config\.json"):
        run("c", str(tmp_path), "--out", str(tmp_path / "net.c"))
    assert list(tmp_path.iterdir()) == []
