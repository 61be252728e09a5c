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
    assert printed.startswith("LRCU-S, winter, noise 0.1: arrived after ")
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
    assert main(["drive", str(path), "--html", str(page), "--no-attention", "--season", "summer", "--noise", "0"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(("LRCU-S, summer, noise 0: left the road", "LRCU-S, summer, noise 0: turned away from"))
    assert '"crashed":true' in page.read_text()


def test_the_last_step_allowed_ends_it(folder, tmp_path, capsys):
    assert main(["drive", str(folder), "--steps", "5", "--html", str(tmp_path / "a.html")]) == 0
    printed = capsys.readouterr()
    assert printed.out.count(": still on the road after ") == 10, "five levels of noise in two seasons"
    assert "driving, 10 drives" in printed.err


@pytest.mark.parametrize("world", ["carracing", pytest.param("vista", marks=pytest.mark.slow)])
def test_the_worlds_from_elsewhere_are_driven_too(folder, tmp_path, capsys, monkeypatch, world):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "driving"))
    from needs import needs_world

    needs_world(world)
    page = tmp_path / "drive.html"
    words = ["--world", world, "--length", "10", "--steps", "12", "--season", "summer", "--noise", "0"]
    assert main(["drive", str(folder), *words, "--html", str(page)]) == 0
    assert capsys.readouterr().out.count("\n") == 2
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
        (["--noise", "0.1", "0.1"], "each level of noise must be given once, but they are 0.1, 0.1"),
        (["--clip", "0", "1"], "without --gif or --mp4 there is no film, so --clip would have no effect"),
    ],
)
def test_impossible_arguments_are_refused_in_one_sentence(folder, tmp_path, capsys, words, sentence):
    page = tmp_path / "drive.html"
    assert sentence in refusal(capsys, folder, "--html", page, *words)
    assert not page.exists()


def test_two_policies_drive_side_by_side_and_become_films(folder, tmp_path, capsys):
    from PIL import Image

    gif, mp4 = tmp_path / "drive.gif", tmp_path / "drive.mp4"
    words = ["drive", str(folder), str(folder), "--length", "5", "--gif", str(gif), "--mp4", str(mp4)]
    assert main(words) == 0
    assert capsys.readouterr().out.count("summer, noise 0: ") == 2, "a film shows one season without noise"
    with Image.open(gif) as film:
        assert film.n_frames > 2
        assert film.size[0] == 640
        assert film.info["loop"] == 0
    assert mp4.read_bytes()[4:8] == b"ftyp"


def test_a_clip_is_a_part_of_the_film(folder, tmp_path, capsys):
    from PIL import Image

    lengths = []
    for clip in ([], ["--clip", "0.1", "0.3"]):
        assert main(["drive", str(folder), "--length", "8", "--gif", str(tmp_path / "a.gif"), *clip]) == 0
        with Image.open(tmp_path / "a.gif") as film:
            lengths.append(film.n_frames)
    assert lengths[1] < lengths[0]
    capsys.readouterr()
    assert main(["drive", str(folder), "--length", "8", "--gif", str(tmp_path / "b.gif"), "--clip", "90", "99"]) == 1
    assert "a clip must begin before its end and within the drive" in capsys.readouterr().err


def test_a_film_without_ffmpeg_says_what_to_install(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert "pip install 'lrcnet[film]', or write a GIF" in refusal(capsys, folder, "--mp4", tmp_path / "a.mp4")


def test_without_a_file_to_write_nothing_is_driven(folder, capsys):
    assert "say what to write: --html FILE for a page" in refusal(capsys, folder)


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
    assert main(["drive", str(folder), "--world", "carracing", "--html", str(tmp_path / "a.html")]) == 1
    assert "pip install" in capsys.readouterr().err.splitlines()[-1]
