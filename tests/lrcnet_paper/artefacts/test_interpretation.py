"""The artefacts of the interpretability section: numbers, verdicts, rules and the stored measurements."""

import json

import pytest
import torch

from lrcnet.pages import figures
from lrcnet_paper.artefacts import correlation, neuron_drives
from lrcnet_paper.artefacts.activity import cells as activity
from lrcnet_paper.artefacts.activity.figures import unpack_activity
from lrcnet_paper.artefacts.attention import similarity as attention
from lrcnet_paper.artefacts.attention.figures import pack_map, unpack_map
from lrcnet_paper.artefacts.policy_measurements import judge_order
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.results.estimate import mean_over_seeds
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.verdict import Conditions
from tests.lrcnet_paper.artefacts import synthetic_interpretation, synthetic_runs

MODELS = list(synthetic_interpretation.LEVELS)


def policy_runs(budget="paper", models=MODELS, seeds=3):
    variant = "own-sample" if budget == "smoke" else "own"
    return [
        synthetic_interpretation.add_analyses(
            FinishedRun(synthetic_runs.result("driving", variant, model, seed=seed, epochs=100, budget=budget))
        )
        for seed in range(seeds)
        for model in models
    ]


@pytest.fixture(scope="module")
def runs():
    return policy_runs()


@pytest.mark.parametrize("artefact", [attention, correlation, activity])
def test_everything_is_drawn_and_judged(artefact, runs):
    content = artefact.render(runs)
    assert not content.skipped
    assert {claim.verdict.word for claim in content.claims} <= {"agrees", "agrees, weaker"}
    assert all("in a synthetic world" in claim.verdict.conditions for claim in content.claims)
    for picture in content.pictures:
        assert "best.ckpt of driving own lrcu-s, seed 0, epoch 80, validation loss 0.14" in picture.caption


@pytest.mark.parametrize("artefact", [attention, correlation, activity])
def test_smoke_runs_give_no_verdict(artefact):
    content = artefact.render(policy_runs("smoke", seeds=1))
    assert {claim.verdict.word for claim in content.claims} == {"not measurable here"}
    assert content.pictures


@pytest.mark.parametrize("artefact", [attention, correlation, activity])
def test_some_of_the_models_are_drawn_and_claims_on_the_others_have_no_verdict(artefact):
    content = artefact.render(policy_runs(models=["lstm", "lrcu-s"]))
    assert content.pictures
    words = {claim.statement: claim.verdict.word for claim in content.claims}
    assert "not measurable here" in words.values()


def test_the_opposite_order_is_named_and_contradicts_nothing_on_other_data(monkeypatch):
    monkeypatch.setitem(synthetic_interpretation.LEVELS, "lrcu-s", 0.2)
    runs = policy_runs()
    claims = [c for c in attention.render(runs).claims if "LRCU-S" in c.statement]
    for claim in (*claims, *correlation.render(runs).claims):
        assert claim.verdict.word == "not measurable here"
        assert claim.verdict.conditions[-1] == "opposite order, but the data are not the paper's"


def test_an_order_without_numbers_of_the_paper_is_judged_by_its_side():
    first, second = (mean_over_seeds({0: level, 1: level + 0.01, 2: level - 0.01}) for level in (0.9, 0.5))
    assert judge_order((first, second), Conditions()).word == "agrees"
    assert judge_order((second, first), Conditions()).word == "contradicts"
    assert judge_order((second, first), Conditions(), larger_is_better=False).word == "agrees"
    assert judge_order((None, first), Conditions()).word == "not measurable here"


def test_measurements_of_a_run_are_small(runs):
    for run in runs:
        assert len(json.dumps(run.analyses)) < 60_000


def test_measuring_a_policy_again_gives_the_same_numbers():
    policy = Policy("gru")
    first, again = (attention.measure(policy, attention.SMOKE) for _ in range(2))
    assert first == again
    assert json.loads(json.dumps(first)) == first
    assert first["similarity"]["winter"]["0.2"]["count"] == 2
    driven = neuron_drives.drive_roads(policy, neuron_drives.SMOKE)
    correlations = correlation.measure(driven)
    assert len(correlations["summer"]["r"][0]) == 28
    measurement = activity.measure({season: drives[0] for season, drives in driven.items()})
    assert set(measurement["winter"]["cells"]) == set(activity.ROLES)
    assert json.loads(json.dumps(measurement)) == measurement


@pytest.mark.parametrize("artefact", [attention, correlation, activity])
def test_pictures_are_small_files(artefact, runs, tmp_path):
    for picture in artefact.render(runs).pictures:
        (file,) = figures.save(picture, tmp_path, ("svg",))
        assert file.stat().st_size < 400_000


def test_maps_and_activity_can_be_unpacked():
    mask = torch.rand(48, 160)
    small = torch.nn.functional.avg_pool2d(mask[None, None], 2)[0, 0]
    small = (small - small.min()) / (small.max() - small.min())
    assert abs(torch.from_numpy(unpack_map(pack_map(mask)).copy()) / 255 - small).max() < 0.01
    drive = synthetic_interpretation.drive(0.9, 4)
    packed = activity.measure({"summer": drive})["summer"]
    values = unpack_activity(packed["cells"]["cell 1"])
    assert len(values) == len(packed["x"]) == 301
    assert values.min() < 0.05
    assert values.max() > 0.95


def test_cells_turn_to_the_sides_that_the_rule_gives_them(runs):
    claim = activity.render(runs).claims[-1]
    assert claim.ours == "seed 0: left and right; seed 1: left and right; seed 2: left and right"
    assert claim.verdict.word == "agrees"


def test_a_very_short_drive_counts_only_if_there_is_no_longer_one():
    long, short = synthetic_interpretation.drive(0.9, 4), synthetic_interpretation.drive(0.9, 4)
    short = type(short)(short.x[:5], short.y[:5], short.curvature[:5], short.curvature[:5], short.activity[:5], False)
    assert len(correlation.measure({"summer": [long, short]})["summer"]["r"]) == 1
    assert len(correlation.measure({"summer": [short]})["summer"]["r"]) == 1
