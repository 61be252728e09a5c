"""The artefacts of the interpretability section: numbers, verdicts, rules and the stored measurements."""

import json
from dataclasses import replace

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
            FinishedRun(synthetic_runs.result("driving", one, model, seed=seed, epochs=100, budget=budget))
        )
        for one in (variant, f"{variant}-features")
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
        assert "best.ckpt" not in picture.caption
        weights = "best.ckpt of driving own lrcu-s, seed 0, epoch 80, validation loss 0.14"
        assert weights in picture.details or picture.name == "regions"


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
    claims = [*attention.render(runs).claims, *correlation.render(runs).claims]
    for claim in (claim for claim in claims if "LRCU-S" in claim.statement):
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
    assert first["similarity"]["winter"]["normalised"]["0.2"]["count"] == 2
    driven = neuron_drives.drive_roads(policy, neuron_drives.SMOKE)
    correlations = correlation.measure(driven)
    assert len(correlations["summer"]["r_within"][0][0]) == 28
    shares = first["regions"]["winter"]["attention"]
    assert abs(sum(shares.values()) - 1) < 1e-6
    measurement = activity.measure(driven["winter"][0])
    assert set(measurement["cells"]) == set(activity.ROLES)
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
    packed = activity.measure(drive)
    cell = packed["cells"]["cell 1"]
    values = unpack_activity(cell)
    assert len(values) == len(packed["x"]) == 301
    indices = torch.linspace(0, 599, 301).round().long()
    truth = ((drive.activity[indices, 0] - cell["rest"]) / cell["scale"]).clamp(-1, 1)
    assert (torch.from_numpy(values.copy()) - truth).abs().max() < 0.01
    # A twentieth of the drive lies beyond the percentile that sets the scale.
    beyond = ((drive.activity[:, 0] - cell["rest"]).abs() > cell["scale"]).float().mean()
    assert 0.03 < beyond < 0.07


def test_cells_turn_to_the_sides_that_the_rule_gives_them(runs):
    claim = activity.render(runs).claims[-1]
    assert claim.ours == "seed 0: left and right; seed 1: left and right; seed 2: left and right"
    assert claim.verdict.word == "agrees"


def title_of(content):
    return content.pictures[0].figure.get_suptitle().replace("\n", " ")


def cut(drive, steps):
    """Return the beginning of a drive, which then crashed."""
    return type(drive)(*(getattr(drive, n)[:steps] for n in ("x", "y", "curvature", "road_curvature", "activity")),
                       False, drive.road)  # fmt: skip


def with_drives(runs, model, drives):
    """Return the runs with other drives of one model, the same in all seasons."""
    changed = []
    for run in runs:
        if model in (run.result.model, None) and "activity" in run.analyses:
            driven = dict.fromkeys(activity.SEASONS, drives)
            new = {**run.analyses["activity"], **synthetic_interpretation.measured_activity(driven)}
            own = {**run.analyses["correlation"], **correlation.measure(driven)}
            run = replace(run, analyses={**run.analyses, "activity": new, "correlation": own})
        changed.append(run)
    return changed


def with_crash(runs, model, steps):
    """Return the runs with the drives of one model cut after some steps."""
    return with_drives(runs, model, [cut(synthetic_interpretation.drive(0.5, 9), steps)])


def test_policies_are_compared_on_the_first_road_on_which_all_of_them_arrive(runs):
    whole, crash = synthetic_interpretation.drive(0.5, 9), cut(synthetic_interpretation.drive(0.5, 9), 500)
    mixed = with_drives(with_drives(runs, None, [whole, whole, whole]), "gru", [crash, whole, whole])
    content = activity.render(mixed)
    assert "of road 2 in summer" in content.tables[0].note
    assert {row[8] for row in content.tables[0].rows} == {"3 of 3"}
    assert title_of(content) == "Seed 0 as an example: 5 of 5 drives in summer arrive; over all seeds 15 of 15 do"
    # Without such a road, it is the one that all follow furthest, and only as far as all of them do.
    short = cut(whole, 200)
    content = activity.render(with_drives(with_drives(runs, None, [whole, whole]), "gru", [short, crash]))
    assert "800 m of road 2 in summer" in content.tables[0].note


def test_attention_is_judged_by_noise_on_the_normalised_frame_and_tabulated_for_pixels_too(runs):
    content = attention.render(runs)
    normalised, pixels = content.tables[0].rows[0][1], content.sensitivities[0].rows[0][1]
    assert normalised.mean - pixels.mean == pytest.approx(0.2, abs=0.05)


def test_policies_are_compared_over_the_stretch_that_all_of_them_drove(runs):
    whole = activity.render(runs)
    assert "1000 m" in whole.tables[0].note or "950 m" in whole.tables[0].note
    crashed = with_crash(runs, "gru", 200)
    content = activity.render(crashed)
    assert "300 m of road 1 in summer" in content.tables[0].note
    swings = {row[0]: row[6] for row in content.tables[0].rows if row[1] == "summer"}
    lstm = next(r for r in crashed if r.result.model == "lstm" and "activity" in r.analyses)
    assert swings["LSTM"].by_seed[0][1] == lstm.analyses["activity"]["summer"][0]["swings"][5]
    assert {row[8] for row in content.tables[0].rows if row[0] == "GRU"} == {"0 of 3"}
    closed = next(t for t in correlation.render(crashed).sensitivities if t.name == "closed-loop-correlation")
    assert "300 m in summer" in closed.note


def test_a_stretch_that_is_too_short_is_not_compared(runs):
    content = activity.render(with_crash(runs, "gru", 40))
    assert [claim.verdict.word for claim in content.claims[:2]] == ["not measurable here"] * 2


def test_a_crash_and_the_road_beyond_it_are_drawn(runs):
    content = activity.render(with_crash(runs, "gru", 200))
    figure = content.pictures[0].figure
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["start", "arrived", "crashed", "road, not driven"]
    assert title_of(content) == "Seed 0 as an example: 4 of 5 drives in summer arrive; over all seeds 12 of 15 do"


def test_the_title_of_one_seed_counts_the_drives_of_all_seeds_too(runs):
    crashed = with_crash(runs, "gru", 200)
    content = activity.render(
        [run if run.result.seed == 0 else other for run, other in zip(runs, crashed, strict=True)]
    )
    assert title_of(content) == "Seed 0 as an example: 5 of 5 drives in summer arrive; over all seeds 13 of 15 do"


def test_a_grid_of_one_frame_and_seed_gives_no_verdict(runs):
    for picture in attention.render(runs).pictures:
        if picture.name.startswith("grid"):
            title = picture.figure.get_suptitle()
            assert title.startswith("Seed 0 as an example: ")
            assert "least" not in title


def test_correlations_in_the_closed_loop_are_tabulated_for_several_models_only(runs):
    one = [run for run in runs if run.result.variant == "own-features" or run.result.model == "lrcu-s"]
    assert [part.name for part in correlation.render(runs).sensitivities] == ["closed-loop-correlation"]
    assert not correlation.render(one).sensitivities


def test_both_lrcus_are_judged_by_the_correlation_of_their_neurons(runs):
    statements = [claim.statement for claim in correlation.render(runs).claims]
    assert [(s.split(":")[0], s.split()[3]) for s in statements] == [
        ("Summer", "LRCU-A"), ("Summer", "LRCU-S"), ("Winter", "LRCU-A"), ("Winter", "LRCU-S"),
    ]  # fmt: skip


def test_correlations_are_uncertain_over_seeds_not_over_neurons(runs):
    row = correlation.render(runs).tables[0].rows[-1]
    over_neurons, over_seeds = row[2], row[3]
    assert over_neurons.mean == pytest.approx(over_seeds.mean)
    assert over_seeds.std < over_neurons.std
    assert len(over_seeds.by_seed) == 3


def test_attention_by_region_is_judged_in_the_papers_words(runs):
    claims = {c.statement: c for c in attention.render(runs).claims}
    assert claims["Summer: LRCU-S attends to the horizon more than any gated unit."].verdict.word == "agrees"
    assert claims["Attention shifts to the roadside in winter, over all models."].verdict.word == "agrees"
    table = next(t for t in attention.render(runs).tables if t.name == "regions")
    # The paper has most of the attention of every model but the LSTM on the road; a share of the frame cannot be paired
    # with another model's, so it is compared with the rest of the frame.
    road = next(claim for statement, claim in claims.items() if "on the road" in statement)
    assert road.verdict.word == "agrees"
    assert road.ours.endswith("elsewhere")
    on_road = {row[0]: row[3].mean for row in table.rows if row[0] in ("GRU", "MGU", "LRCU-A", "LRCU-S")}
    assert f"here {sum(share > 0.5 for share in on_road.values())} of 4 such models" in table.note
    assert f"({min(on_road, key=on_road.get)} {100 * min(on_road.values()):.0f} % to " in table.note
    for row in table.rows[:-1]:
        assert sum(cell.mean for cell in row[1:5]) == pytest.approx(1.0)
