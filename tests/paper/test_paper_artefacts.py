"""Laws that every artefact obeys, and the particular numbers of some; new ones in ARTEFACTS are picked up."""

import pytest
import synthetic_runs

from lrcnet import liquid, paper, tasks
from lrcnet.paper import classification, elastance, neural_ode, palette, setup
from lrcnet.paper.artefact import BUDGETS, Rendered, Table
from lrcnet.paper.classification_runs import SOLVERS
from lrcnet.paper.finished import Finished
from lrcnet.training.spec import RunSpec

# Artefacts with a claim that is judged without training.
NEEDS_NO_RUN = {"dynamics"}


@pytest.fixture(scope="module")
def all_runs(tmp_path_factory):
    return synthetic_runs.whole_paper() + synthetic_runs.driving_runs(tmp_path_factory.mktemp("driving"))


@pytest.fixture(scope="module")
def rendered(all_runs):
    return {name: paper.load(name).render(all_runs) for name in paper.ARTEFACTS}


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError, match="elastance, architecture, classification"):
        paper.load("nonsense")


@pytest.mark.parametrize("name", paper.ARTEFACTS)
def test_every_artefact_keeps_the_contract(name):
    artefact = paper.load(name)
    assert artefact.TITLE
    assert artefact.CLAIMED
    with pytest.raises(ValueError, match="smoke, quick, paper"):
        artefact.runs("forever")


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", paper.ARTEFACTS)
def test_every_run_names_a_task_a_variant_and_a_model_that_exist(name, budget):
    from lrcnet import models

    specs = paper.load(name).runs(budget)
    assert len(set(specs)) == len(specs), "a run is planned twice"
    for spec in specs:
        assert isinstance(spec, RunSpec)
        assert spec.budget == budget
        assert spec.model in models.MODELS
        tasks.find(spec.task, spec.variant)
        if spec.solver:
            models.parse_solver(spec.solver)


@pytest.mark.parametrize("name", paper.ARTEFACTS)
def test_seeds_multiply_the_runs(name):
    artefact = paper.load(name)
    assert len(artefact.runs("quick", 4)) == 4 * len(artefact.runs("quick", 1))


@pytest.mark.parametrize("name", paper.ARTEFACTS)
def test_every_artefact_is_drawn_from_synthetic_runs(name, rendered):
    found = rendered[name]
    assert isinstance(found, Rendered)
    assert found.tables
    assert not found.skipped
    for picture in found.pictures:
        assert picture.alt
        assert picture.caption
        assert picture.figure.axes, "an empty figure"
    names = [part.name for part in (*found.tables, *found.pictures)]
    assert len({part.name for part in found.tables}) == len(found.tables)
    assert len({part.name for part in found.pictures}) == len(found.pictures)
    assert all(name == name.lower() and " " not in name for name in names)


@pytest.mark.parametrize("name", paper.ARTEFACTS)
def test_every_artefact_is_drawn_without_any_run(name):
    found = paper.load(name).render([])
    assert found.tables
    if paper.load(name).runs("quick"):
        assert found.skipped, "a picture that cannot be drawn must say why"
        judged = [claim for claim in found.claims if claim.ours == "–" or name not in NEEDS_NO_RUN]
        assert {claim.verdict.word for claim in judged} <= {"open"}


@pytest.mark.parametrize("name", paper.ARTEFACTS)
def test_every_drawn_axis_has_labels(name, rendered):
    for picture in rendered[name].pictures:
        for axes in picture.figure.axes:
            if axes.axison and axes.get_xticklabels() and axes.xaxis.get_tick_params().get("labelbottom", True):
                assert axes.get_xlabel(), f"{picture.name} has an axis without a label"


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="must have 2 cells"):
        Table("t", "T", ("a", "b"), [("only one",)])


def test_the_elastance_drawn_is_the_one_that_cells_use(monkeypatch):
    monkeypatch.setattr(liquid, "elastance_gate", lambda name, w, *letters: 2 + 0 * w)
    assert elastance.render([]).claims[0].verdict.word == "refuted"


def test_the_papers_hyper_parameters_are_the_codes_own():
    for task, claimed in setup.CLAIMED["hyper-parameters"].items():
        ours = setup.hyper_parameters(task)
        assert claimed.keys() <= ours.keys()
        for name in claimed:
            assert str(ours[name]) in str(claimed[name]).split("/"), f"{name} of {task}"


def test_the_conv_head_is_the_papers():
    assert setup.conv_head() == list(setup.CLAIMED["conv-head"])


@pytest.mark.parametrize(
    ("task", "model", "count"),
    # By the formulas of the cells: 5 m^2 + 5 m n + 5 m + 2 n (+ m) and the linear head; see PROTOCOLS for the cell.
    [("person", "lrcu-a", 5 * 64**2 + 5 * 64 * 7 + 5 * 64 + 2 * 7 + 65 * 7),
     ("person", "lrcu-s", 5 * 64**2 + 5 * 64 * 7 + 6 * 64 + 2 * 7 + 65 * 7),
     ("psmnist", "lrcu-s", 5 * 64**2 + 5 * 64 + 6 * 64 + 2 + 65 * 10),
     ("imdb", "lstm", 400 * (64 + 100 + 2) + 101),
     ("lane-keeping", "mgu", 2 * 38 * (64 + 38 + 1))],
)  # fmt: skip
def test_parameters_are_counted_exactly(task, model, count):
    assert setup.parameter_counts(task, model)[0] == count


def test_parameter_counts_lie_near_the_papers():
    for task, row in setup.CLAIMED["parameters"].items():
        for model, thousands in row.items():
            assert 0.9 < setup.parameter_counts(task, model)[0] / (1000 * thousands) < 1.5


def test_counting_parameters_leaves_random_numbers_alone():
    import torch

    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    setup.parameter_counts.__wrapped__("person", "gru")
    assert torch.equal(before, torch.random.get_rng_state())


def rows_of(found, name):
    table = next(table for table in found.tables if table.name == name)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_budgets_are_never_mixed_in_one_cell():
    runs = [
        synthetic_runs.classification_run("person", "coarse", "lstm", seed, epochs, budget)
        for seed, (epochs, budget) in enumerate([(100, "paper"), (100, "paper"), (40, "paper"), (10, "quick")])
    ]
    rows = rows_of(classification.render(runs), "person")
    assert [(row["epochs"], row["seeds"]) for row in rows] == [("100 of 100", 2), ("40 of 100", 1)]


def test_data_and_length_are_named_in_verdicts():
    runs = [synthetic_runs.classification_run("person", "coarse", "lrcu-s", 0, 40)]
    verdict = rows_of(classification.render(runs), "person")[0]["verdict"]
    assert verdict.conditions == ("on coarse data", "40 of 100 epochs", "1 seed")


def test_a_diverged_run_is_counted_with_its_siblings(rendered):
    row = next(row for row in rows_of(rendered["classification"], "psmnist") if row["model"] == "MGU")
    assert (row["seeds"], row["ours"].seeds, row["ours"].diverged) == (2, 1, 1)
    claim = next(claim for claim in rendered["classification"].claims if "NaN" in claim.statement)
    assert (claim.ours, claim.verdict.word) == ("1 of 2 runs", "reproduced")


def test_a_model_of_which_every_run_diverged_is_shown_as_nan():
    runs = [Finished(synthetic_runs.result("psmnist", "permuted", "mgu", status="diverged", epochs=4))]
    row = rows_of(classification.render(runs), "psmnist")[0]
    assert row["ours"] == "NaN"
    assert "every run diverged" in row["verdict"].conditions


def test_lengths_that_differ_leave_the_comparison_open(rendered):
    claim = next(c for c in rendered["classification"].claims if "psMNIST: LRCU-S is ahead of GRU" in c.statement)
    assert claim.verdict.word == "open"


def test_solvers_stand_beside_the_lrcu(rendered):
    rows = rows_of(rendered["classification"], "solvers")
    assert [row["model"] for row in rows] == ["LRCU-S", "LRC-S", "LRC-S", "LRC-S"]
    assert {row["solver and steps"] for row in rows[1:]} == set(SOLVERS)


def test_rates_have_a_table_of_their_own_and_stay_out_of_the_others(all_runs, rendered):
    without = [run for run in all_runs if "+lr" not in run.result.variant]
    plain, found = classification.render(without), rendered["classification"]
    assert "rates" not in [table.name for table in plain.tables]
    for name in ("person", "solvers"):
        assert rows_of(found, name) == rows_of(plain, name)
    assert found.claims[: len(plain.claims)] == plain.claims
    rows = rows_of(found, "rates")
    assert [row["rate"] for row in rows[:3]] == ["0.0001", "0.001", "0.01"]
    assert {row["rate"] for row in rows if row["search"]} == {"0.01"}
    assert all(row["accuracy, faithful split"].seeds == 3 for row in rows)
    added = found.claims[len(plain.claims) :]
    assert added
    assert all("each at its searched rate" in claim.statement for claim in added)


def test_a_rate_is_picked_by_validation_loss_of_common_seeds_once_all_were_tried():
    rates = {"lr0.0001": 0.9, "": 0.6, "lr0.01": 0.7}
    runs = synthetic_runs.rate_runs("coarse", "gru", rates)

    def picked(kept):
        rows = rows_of(classification.render(kept), "rates")
        return [row["rate"] for row in rows if row["search"]]

    assert picked(runs) == ["0.0001"]
    # The seeds that only one rate has must not decide: here they are its bad ones.
    bad = synthetic_runs.rate_runs("coarse", "gru", {"lr0.0001": 0.2}, seeds=8)
    assert picked([*runs, *bad[6:]]) == ["0.0001"]
    untried = [run for run in runs if run.result.variant != "coarse-clean"]
    assert picked(untried) == []
    lost = synthetic_runs.result("person", "coarse-clean+lr0.01", "gru", status="diverged", epochs=3)
    others = [run for run in runs if run.result.variant != "coarse-clean+lr0.01"]
    assert picked([*others, Finished(lost)]) == ["0.0001"]


def test_the_ode_verdict_is_on_two_thousand_iterations(all_runs):
    rows = rows_of(neural_ode.render(all_runs), "test-error")
    assert {row["iteration"] for row in rows} == {2000}
    assert all(row["verdict"] is None for row in rows if row["model"] == "LRC-A")


def test_a_short_ode_run_says_so():
    runs = [synthetic_runs.ode_run("spiral", "lrc-s", 0, iterations=1000, budget="quick")]
    row = next(r for r in rows_of(neural_ode.render(runs), "test-error") if r["system"] == "Spiral")
    assert row["verdict"].conditions == ("1000 of 2000 iterations", "1 seed")


def test_drives_in_other_worlds_say_how_they_ended(rendered):
    rows = rows_of(rendered["other-worlds"], "other-worlds")
    assert {row["world"] for row in rows} == {"vista", "carracing"}
    assert {row["noise 0.1"] for row in rows} == {"1 of 3 arrived; left the road after 90, 80"}
    assert {row["noise 0.2"] for row in rows} == {None}


def test_a_decaying_rate_has_a_table_of_its_own_and_stays_out_of_the_others(all_runs):
    metrics = {"mean_absolute_error": 0.0123, "mean_absolute_error_min": 0.01, "mean_absolute_error@2000": 0.0123}
    decayed = [
        synthetic_runs.result(
            "neural-ode", "lotka-volterra-periodic+cosine", "lrc-s", seed=seed, epochs=4000, metrics=metrics
        )
        for seed in range(3)
    ]
    without, found = neural_ode.render(all_runs), neural_ode.render([*all_runs, *(Finished(r) for r in decayed)])
    assert rows_of(found, "test-error") == rows_of(without, "test-error")
    rows = {row["learning rate"]: row for row in rows_of(found, "decaying-rate")}
    assert set(rows) == {"constant", "cosine"}
    assert rows["cosine"]["last"].mean == pytest.approx(0.0123)
    assert [table.name for table in without.tables] == ["test-error", "lengths"]


def test_every_colour_can_be_seen_on_the_light_and_on_the_dark_page():
    for look in palette.LOOKS.values():
        for background in (palette.PAPER, palette.DARK_PAPER):
            assert palette.contrast(look.colour, background) >= 3
    assert palette.contrast(palette.INK, palette.PAPER) >= 7


def test_models_of_one_figure_differ_by_more_than_colour():
    for models in (classification.MODELS, neural_ode.MODELS):
        looks = [palette.look(model) for model in models]
        for attribute in ("colour", "dashes", "marker"):
            assert len({getattr(look, attribute) for look in looks}) == len(looks)


def test_drawing_leaves_matplotlibs_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    elastance.render([])
    assert dict(matplotlib.rcParams) == before
