"""`lrcnet drive`: one line about the drive, one page, and one clear sentence for each refusal."""

import sys
from pathlib import Path

import pytest
import torch
from synthetic_drives import smoke_policy

from lrcnet.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        return smoke_policy(tmp_path_factory.mktemp("policy"), patch)


def refusal(capsys, *words):
    """Return the sentence with which a command line is refused."""
    assert main(["drive", *map(str, words)]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("lrcnet drive: ")
    assert printed.count("\n") == 1
    return printed


def test_it_drives_and_writes_a_page(folder, tmp_path, capsys):
    page = tmp_path / "deep" / "drive.html"
    words = ["drive", str(folder), "--season", "winter", "--noise", "0.1", "--length", "6", "--html", str(page)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("arrived after ")
    assert "MB)" in printed
    assert page.read_text().startswith("<!doctype html>")
    first = page.read_bytes()
    assert main(words) == 0
    assert page.read_bytes() == first, "the same drive gives the same page"


def test_a_crash_is_no_error(folder, tmp_path, capsys):
    torch.manual_seed(0)
    path = tmp_path / folder.name
    path.mkdir()
    for file in folder.iterdir():
        if file.is_file():
            (path / file.name).write_bytes(file.read_bytes())
    content = torch.load(path / "best.ckpt", weights_only=True)
    # Steers hard to the left, whatever it sees.
    content["model"]["head.bias"].fill_(5.0)
    torch.save(content, path / "best.ckpt")
    page = tmp_path / "crash.html"
    assert main(["drive", str(path), "--html", str(page), "--no-attention"]) == 0
    assert "after" in (printed := capsys.readouterr().out)
    assert printed.startswith(("left the road", "turned away from the road"))
    assert 'class="crash"' in page.read_text()


def test_the_last_step_allowed_ends_it(folder, tmp_path, capsys):
    assert main(["drive", str(folder), "--steps", "5", "--html", str(tmp_path / "a.html")]) == 0
    assert capsys.readouterr().out.startswith("still on the road after ")


@pytest.mark.parametrize("world", ["carracing", pytest.param("vista", marks=pytest.mark.slow)])
def test_the_worlds_from_elsewhere_are_driven_too(folder, tmp_path, capsys, monkeypatch, world):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "driving"))
    from needs import needs_world

    needs_world(world)
    page = tmp_path / "drive.html"
    assert main(["drive", str(folder), "--world", world, "--length", "10", "--steps", "12", "--html", str(page)]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert {"carracing": "CarRacing, road", "vista": "VISTA, road"}[world] in page.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--world", "moon"], "world must be one of own, vista, carracing, but is 'moon'"),
        (["--season", "spring"], "season must be one of summer, winter, but is 'spring'"),
        (["--noise", "-0.1"], "noise is a variance, so it must be at least 0, but is -0.1"),
        (["--noise", "nan"], "must be at least 0, but is nan"),
        (["--steps", "0"], "steps must be at least 1, but is 0"),
        (["--length", "0.5"], "1 m"),
    ],
)
def test_impossible_arguments_are_refused_in_one_sentence(folder, tmp_path, capsys, words, sentence):
    page = tmp_path / "drive.html"
    assert sentence in refusal(capsys, folder, "--html", page, *words)
    assert not page.exists()


def test_a_folder_without_a_run_is_refused(tmp_path, capsys):
    assert "must be a run's folder" in refusal(capsys, tmp_path, "--html", tmp_path / "a.html")


def test_another_network_is_refused(tmp_path, capsys):
    from lrcnet_paper import training

    spec = training.RunSpec("neural-ode", "spiral", "lrc-s", iterations=1, budget="smoke")
    training.run(spec, tmp_path)
    printed = refusal(capsys, tmp_path / spec.folder_name(), "--html", tmp_path / "a.html")
    assert "must be a driving policy, but this is lrc-s trained on neural-ode" in printed


def test_untrained_weights_are_refused_outside_the_smoke_budget(folder, tmp_path, capsys):
    import json

    config = json.loads((folder / "config.json").read_text())
    config["run"]["budget"] = "quick"
    (tmp_path / "config.json").write_text(json.dumps(config))
    content = torch.load(folder / "best.ckpt", weights_only=True)
    torch.save({**content, "done": 0}, tmp_path / "best.ckpt")
    assert "must hold trained weights" in refusal(capsys, tmp_path, "--html", tmp_path / "a.html")


def test_a_missing_library_is_reported(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pip install 'lrcnet[driving]'" in refusal(capsys, folder, "--html", tmp_path / "a.html")


def test_a_world_that_is_not_installed_is_reported(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    for name in ("gymnasium.envs.box2d", "gymnasium.envs.box2d.car_racing", "gymnasium.envs.box2d.car_dynamics"):
        monkeypatch.setitem(sys.modules, name, None)
    printed = refusal(capsys, folder, "--world", "carracing", "--html", tmp_path / "a.html")
    assert "pip install" in printed
