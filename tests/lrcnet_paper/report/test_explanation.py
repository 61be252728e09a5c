"""`lrcnet explain --html` on run folders as training writes them: the content of the page, and its refusals."""

import json
import re

import pytest
import torch

from lrcnet.cli import main
from lrcnet_paper.models import build
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.report import policy_view
from lrcnet_paper.results.provenance import format_provenance, provenance_of
from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.task import Samples, Task
from lrcnet_paper.training.atomic_files import write_json
from lrcnet_paper.training.checkpoint import save_best
from lrcnet_paper.training.spec import RunSpec
from lrcnet_paper.training.trained_network import load_trained


def run_folder(place, task, variant, model, *, done=3, budget="smoke", options=None, seed=0):
    """Write the run folder of a tiny network, as training would."""
    schedule = find(task, variant).recipe.schedule
    spec = RunSpec(task, variant, model, budget=budget, schedule=schedule, options=options or {})
    torch.manual_seed(seed)
    network = build(model, find(task, variant), **spec.options)
    place.mkdir()
    write_json(place / "config.json", {"run": spec.as_dict(), "resolved": {}})
    (place / "metrics.csv").write_text(f"epoch,validation_loss\n{done},0.25\n")
    save_best(place, network, done)
    if find(task, variant).recipe.reported == "last":
        (place / "best.ckpt").rename(place / "last.ckpt")
    return place


@pytest.fixture(scope="module")
def small_split():
    """Sequences like those of person activity, in which the fifth label begins and ends."""
    torch.manual_seed(1)
    y = torch.randint(0, 7, (12, 4)).repeat_interleave(8, 1)
    return Samples(torch.randn(12, 32, 7), None, y)


@pytest.fixture(scope="module")
def person_page(tmp_path_factory, small_split):
    place = tmp_path_factory.mktemp("person")
    run = run_folder(place / "run", "person", "coarse", "lrcu-s", options={"units": 6})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Task, "load", lambda self, split, data=None: small_split)
        assert main(["explain", str(run), "--data", "here", "--html", str(place / "page.html")]) == 0
    return place / "page.html"


@pytest.fixture(scope="module")
def policy_page(tmp_path_factory):
    place = tmp_path_factory.mktemp("policy")
    run = run_folder(place / "run", "driving", "own-sample", "lrcu-s")
    assert main(["explain", str(run), "--html", str(place / "page.html")]) == 0
    return place / "page.html"


def test_a_sequence_models_page_ranks_sensors_neurons_and_time_constants(person_page):
    html = person_page.read_text(encoding="utf-8")
    for words in ("chest&#x27;s tag", "falling", "time constant", "rank-biserial correlation", "Written by"):
        assert words in html
    assert 'id="trace"' in html
    assert 'id="shares"' in html
    assert 'id="marks"' in html


def test_a_sequence_models_page_shows_its_test_sequences_on_one_axis(person_page, small_split):
    html = person_page.read_text(encoding="utf-8")
    assert "LRCU-S</b>: accuracy" in html
    data = json.loads(re.search(r'id="data">(.*?)</script>', html).group(1))
    (model,) = data["models"]
    assert model["classes"][4] == "falling"
    assert [quantity["key"] for quantity in model["quantities"]] == [
        *("state", "forget", "update", "elastance", "time_constant")
    ]
    assert model["sequences"][0]["truth"] == small_split.y[0].tolist()
    assert data["inputs"][0][0][2]["name"] == "chest's tag"


def test_two_runs_of_one_task_stand_side_by_side(tmp_path, small_split, monkeypatch, capsys):
    first, second = (
        run_folder(tmp_path / model, "person", "coarse", model, options={"units": 6}) for model in ("lrcu-s", "lstm")
    )
    monkeypatch.setattr(Task, "load", lambda self, split, data=None: small_split)
    page = tmp_path / "page.html"
    assert main(["explain", str(first), str(second), "--data", "here", "--html", str(page)]) == 0
    assert "LSTM (B)</b>: accuracy" in page.read_text(encoding="utf-8")
    policy = run_folder(tmp_path / "policy", "driving", "own-sample", "gru")
    assert main(["explain", str(first), str(policy), "--data", "here", "--html", str(page)]) == 1
    assert "pass two runs of one task" in capsys.readouterr().err
    assert main(["explain", str(first), str(second), "--lipschitz"]) == 1
    assert "add --html FILE, or leave one out" in capsys.readouterr().err


def test_a_policys_page_has_every_section(policy_page):
    html = policy_page.read_text(encoding="utf-8")
    for name in ("looks", "noise", "activity", "correlation", "shares"):
        assert f'<section id="{name}">' in html
        assert f'href="#{name}"' in html
    assert "integrated gradients" in html


def test_a_policys_page_shows_its_answers_to_the_experts_drives(policy_page):
    html = policy_page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', html).group(1))
    assert data["names"] == ["summer, road 1", "winter, road 1"]
    assert all(picture.startswith("data:image/webp;base64,") for picture in data["pictures"])
    (model,) = data["models"]
    assert (model["probabilities"], model["target"], model["units"]) == (False, "the expert's", 19)
    for part, season in zip(model["sequences"], ("summer", "winter"), strict=True):
        shown = policy_view.drives(None, smoke=True)
        k = shown.names.index(f"{season}, road 1")
        policy = load_trained(policy_page.parent / "run").network.eval()
        with torch.no_grad():
            curvature = policy(shown.frames[k : k + 1])[0]
        answers = torch.tensor(part["answers"]["values"])[:, 0]
        torch.testing.assert_close(answers, curvature, atol=1e-4, rtol=0)
        torch.testing.assert_close(torch.tensor(part["target"]), shown.curvature[k].float(), atol=1e-4, rtol=0)
    assert "inside the recurrence" in html


def test_two_policies_stand_side_by_side_with_the_features_of_their_own_convolutions(tmp_path, policy_page):
    other = run_folder(tmp_path / "lstm", "driving", "own-sample", "lstm", seed=1)
    page = tmp_path / "page.html"
    assert main(["explain", str(policy_page.parent / "run"), str(other), "--html", str(page)]) == 0
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8")).group(1))
    assert [model["name"] for model in data["models"]] == ["LRCU-S (A)", "LSTM (B)"]
    assert len(data["inputs"]) == 2


@pytest.mark.parametrize("name", ["person_page", "policy_page"])
def test_every_picture_and_the_page_name_their_weights(name, request):
    html = request.getfixturevalue(name).read_text(encoding="utf-8")
    weights = "best.ckpt of driving own-sample lrcu-s" if name == "policy_page" else "last.ckpt of person coarse lrcu-s"
    assert f"Weights: {weights}, seed 0, epoch 3, validation loss 0.25" in html
    captions = re.findall(r"<figure\b.*?</figure>", html, re.S)
    assert captions
    for figure in captions:
        # A heat map has it inside, as drawn letters; the others have it in their caption.
        assert weights in figure or "of all units" in figure


@pytest.mark.parametrize("name", ["person_page", "policy_page"])
def test_the_pages_load_nothing_from_elsewhere(name, request):
    html = request.getfixturevalue(name).read_text(encoding="utf-8")
    assert html.count("<script") == 3, "the page's own data and programs"
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_a_users_own_recording_is_looked_at(tmp_path):
    from lrcnet_paper.driving import record

    record(tmp_path / "drive", [5], season="summer", length=15.0)
    run = run_folder(tmp_path / "run", "driving", "own-sample", "gru")
    page = tmp_path / "page.html"
    assert main(["explain", str(run), "--data", str(tmp_path / "drive"), "--samples", "2", "--html", str(page)]) == 0
    assert "A view (recording)" in page.read_text(encoding="utf-8")


def test_untrained_weights_are_refused_outside_the_smoke_budget(tmp_path, capsys):
    run = run_folder(tmp_path / "run", "driving", "own", "lrcu-s", done=0, budget="quick")
    assert main(["explain", str(run), "--html", str(tmp_path / "page.html")]) == 1
    error = capsys.readouterr().err
    assert "best.ckpt must hold trained weights, but these were trained for 0 epochs; train the network first" in error
    assert len(error.splitlines()) == 1
    for name in ("attention", "correlation", "activity"):
        from lrcnet_paper import artefacts as paper

        with pytest.raises(ValueError, match="must hold trained weights"):
            paper.load(name).analyse(run)


def test_a_network_without_time_gets_one_line(tmp_path, capsys):
    run = run_folder(tmp_path / "run", "neural-ode", "spiral", "lrc-s")
    assert main(["explain", str(run), "--html", str(tmp_path / "page.html")]) == 1
    assert "lrc-s on neural-ode is neither: it has no input over time" in capsys.readouterr().err


def test_a_provenance_ends_with_its_loss(tmp_path):
    run = run_folder(tmp_path / "run", "driving", "own-sample", "mgu")
    trained = load_trained(run)
    assert isinstance(trained.network, Policy)
    assert format_provenance(provenance_of(trained)).endswith("seed 0, epoch 3, validation loss 0.25")
    (run / "metrics.csv").unlink()
    assert format_provenance(provenance_of(trained)).endswith("loss unknown")
