"""Laws that every artefact in ARTEFACTS obeys, and numbers of particular artefacts."""

import re

import pytest

from lrcnet import liquid
from lrcnet.pages import palette
from lrcnet.pages.content import Table
from lrcnet_paper import artefacts, tasks
from lrcnet_paper.artefacts import elastance, setup
from lrcnet_paper.artefacts.artefact import Rendered
from lrcnet_paper.artefacts.classification import table as classification
from lrcnet_paper.artefacts.classification.rates import describe_searches, search_rates
from lrcnet_paper.artefacts.classification.runs import SOLVER_CHANGES
from lrcnet_paper.artefacts.neural_ode import table as neural_ode
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.results.verdict import WORDS
from lrcnet_paper.training.budgets import BUDGETS
from lrcnet_paper.training.spec import RunSpec
from tests.lrcnet_paper.artefacts import synthetic_runs
from tests.lrcnet_paper.artefacts.synthetic_runs import rows_of

# Artefacts with a claim that can be judged without training.
NEEDS_NO_RUN = {"dynamics"}


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError, match="elastance, architecture, classification"):
        artefacts.load("nonsense")


@pytest.mark.parametrize("name", artefacts.ARTEFACTS)
def test_every_artefact_keeps_the_contract(name):
    artefact = artefacts.load(name)
    assert isinstance(artefact, artefacts.Artefact)
    functions = [artefact.runs, artefact.render]
    if isinstance(artefact, artefacts.MeasuringArtefact):
        functions += [artefact.wants, artefact.analyse]
    assert all(callable(function) for function in functions)
    assert artefact.title
    assert artefact.claimed
    with pytest.raises(ValueError, match="smoke, quick, paper"):
        artefact.runs("forever")


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", artefacts.ARTEFACTS)
def test_every_run_names_a_task_a_variant_and_a_model_that_exist(name, budget):
    from lrcnet_paper import models

    specs = artefacts.load(name).runs(budget)
    assert len(set(specs)) == len(specs), "a run is planned twice"
    for spec in specs:
        assert isinstance(spec, RunSpec)
        assert spec.budget == budget
        assert spec.model in models.MODELS
        tasks.find(spec.task, spec.variant)
        if spec.solver:
            models.parse_solver(spec.solver)


@pytest.mark.parametrize("name", artefacts.ARTEFACTS)
def test_seeds_multiply_the_runs(name):
    artefact = artefacts.load(name)
    assert len(artefact.runs("quick", 4)) == 4 * len(artefact.runs("quick", 1))


@pytest.mark.parametrize("name", artefacts.ARTEFACTS)
def test_every_artefact_is_drawn_from_synthetic_runs(name, rendered):
    content = rendered[name]
    assert isinstance(content, Rendered)
    assert content.tables or content.skipped
    assert not content.skipped
    for picture in content.pictures:
        assert picture.alt
        assert picture.caption
        assert picture.figure.axes, "an empty figure"
    names = [part.name for part in (*content.tables, *content.pictures)]
    assert len({part.name for part in content.tables}) == len(content.tables)
    assert len({part.name for part in content.pictures}) == len(content.pictures)
    assert all(name == name.lower() and " " not in name for name in names)


@pytest.mark.parametrize("name", artefacts.ARTEFACTS)
def test_every_artefact_is_drawn_without_any_run(name):
    content = artefacts.load(name).render([])
    assert content.tables or content.skipped
    if artefacts.load(name).runs("quick"):
        assert content.skipped, "a picture that cannot be drawn must say why"
        judged = [claim for claim in content.claims if claim.ours == "–" or name not in NEEDS_NO_RUN]
        assert {claim.verdict.word for claim in judged} <= {"not measurable here"}


@pytest.mark.parametrize("name", artefacts.ARTEFACTS)
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
    assert elastance.render([]).claims[0].verdict.word == "contradicts"


def test_the_code_has_the_hyper_parameters_of_the_paper():
    for task, claimed in setup.CLAIMED["hyper-parameters"].items():
        ours = setup.hyper_parameters(task)
        assert claimed.keys() <= ours.keys()
        for name in claimed:
            assert str(ours[name]) in str(claimed[name]).split("/"), f"{name} of {task}"


def test_the_code_has_the_convolutional_head_of_the_paper():
    assert setup.conv_head() == list(setup.CLAIMED["conv-head"])


@pytest.mark.parametrize(
    ("task", "model", "count"),
    # A liquid cell has 5 m^2 + 5 m n + 5 m + 2 n parameters (and m more if symmetric); the linear head comes on top.
    [("person", "lrcu-a", 5 * 64**2 + 5 * 64 * 7 + 5 * 64 + 2 * 7 + 65 * 7),
     ("person", "lrcu-s", 5 * 64**2 + 5 * 64 * 7 + 6 * 64 + 2 * 7 + 65 * 7),
     ("psmnist", "lrcu-s", 5 * 64**2 + 5 * 64 + 6 * 64 + 2 + 65 * 10),
     ("imdb", "lstm", 400 * (64 + 100 + 2) + 101),
     ("lane-keeping", "mgu", 2 * 38 * (64 + 38 + 1))],
)  # fmt: skip
def test_parameters_are_counted_exactly(task, model, count):
    assert setup.parameter_counts(task, model)[0] == count


def test_parameter_counts_are_near_those_of_the_paper():
    for task, row in setup.CLAIMED["parameters"].items():
        for model, thousands in row.items():
            assert 0.9 < setup.parameter_counts(task, model)[0] / (1000 * thousands) < 1.5


def test_counting_parameters_leaves_random_numbers_alone():
    import torch

    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    setup.parameter_counts.__wrapped__("person", "gru")
    assert torch.equal(before, torch.random.get_rng_state())


def test_budgets_are_never_mixed_in_one_cell():
    runs = [
        synthetic_runs.classification_run("person", "coarse", "lstm", seed, epochs, budget)
        for seed, (epochs, budget) in enumerate([(100, "paper"), (100, "paper"), (40, "paper"), (10, "quick")])
    ]
    rows = rows_of(classification.render(runs), "person")
    assert [(row["epochs"], row["seeds"]) for row in rows] == [("100 of 100", 2), ("40 of 100", 1)]


def test_data_and_length_are_named_in_verdicts():
    runs = [synthetic_runs.classification_run("person", "coarse", model, 0, 40) for model in ("lrcu-s", "lstm")]
    verdict = classification.render(runs).claims[0].verdict
    assert verdict.word == "not measurable here"
    assert verdict.conditions == ("on coarse data", "40 of 100 epochs", "1 seed in common")
    assert verdict.others == ("against GRU, MGU: not measured",)


def test_claims_are_judged_on_one_variant_only(all_runs, rendered):
    claims = [claim for claim in rendered["classification"].claims if claim.statement.startswith("Localization")]
    assert len(claims) == 2
    coarse = [run for run in all_runs if run.result.variant in ("coarse", "text", "permuted")]
    assert classification.render(coarse).claims == rendered["classification"].claims
    assert {row["variant"] for row in rows_of(rendered["classification"], "person")} == {"coarse"}
    other = rows_of(rendered["classification"], "person-other-data")
    assert {row["variant"] for row in other} == {"a01-a04", "a01-a04-clean"}


def test_runs_with_other_initial_values_stay_out_of_the_papers_rows(all_runs, rendered):
    options = {"init": "balanced", "parametrisation": "scaled"}
    ours = [
        synthetic_runs.classification_run("person", "coarse", "lrcu-s", seed, 100, centre=0.99, options=options)
        for seed in range(3)
    ]
    content = classification.render([*all_runs, *ours])
    assert content.claims == rendered["classification"].claims
    assert rows_of(content, "person") == rows_of(rendered["classification"], "person")
    rows = rows_of(content, "initial-values")
    assert [row["initial values"] for row in rows] == ["library", "paper"]
    assert rows[0]["accuracy"].mean > 98


def test_initial_values_of_runs_of_different_lengths_are_compared_after_equally_many_epochs():
    options = {"init": "balanced", "parametrisation": "scaled"}
    paper, library = (
        synthetic_runs.classification_run("psmnist", "permuted", "lrcu-s", 0, epochs, centre=0.8, **choices)
        for epochs, choices in ((20, {}), (5, {"options": options}))
    )
    content = classification.render([paper, library])
    table = next(part for part in content.sensitivities if part.name == "initial-values")
    best = [100 * max(run.history["validation_accuracy"][:5]) for run in (library, paper)]
    assert best[0] > best[1] + 1
    assert (
        f"psMNIST, LRCU-S: after 5 epochs of each, the best validation accuracy is {best[0]:.1f} % from the library's "
        f"initial values and {best[1]:.1f} % from the paper's."
    ) in table.note


def test_a_diverged_run_is_counted_with_its_siblings(rendered):
    row = next(row for row in rows_of(rendered["classification"], "psmnist") if row["model"] == "MGU")
    assert (row["seeds"], row["ours"].seeds, row["ours"].diverged) == (2, 1, 1)
    claim = next(claim for claim in rendered["classification"].claims if "NaN" in claim.statement)
    assert (claim.ours, claim.verdict.word) == ("1 of 2 runs", "agrees")


def test_a_model_is_shown_as_nan_if_every_run_diverged():
    runs = [FinishedRun(synthetic_runs.result("psmnist", "permuted", "mgu", status="diverged", epochs=4))]
    row = rows_of(classification.render(runs), "psmnist")[0]
    assert row["ours"] == "NaN"


def test_lengths_that_differ_leave_the_comparison_open(rendered):
    claim = next(c for c in rendered["classification"].claims if "psMNIST: LRCU-S is ahead of" in c.statement)
    assert claim.verdict.word == "not measurable here"
    assert any("different numbers of epochs" in note for note in claim.verdict.others)


def test_curves_of_different_lengths_are_compared_at_equal_epochs_and_times():
    runs = [
        synthetic_runs.classification_run("psmnist", "permuted", "lstm", 0, 20, centre=0.9, seconds=900.0),
        synthetic_runs.classification_run("psmnist", "permuted", "gru", 0, 10, centre=0.82, seconds=60.0),
        synthetic_runs.classification_run("psmnist", "permuted", "lrcu-a", 0, 20, centre=0.85, seconds=120.0),
    ]
    finding = classification._curves_finding(group_runs(runs, "psmnist"), "psmnist", "permuted", "validation")
    # The LSTM has had no epoch after 10 minutes, and two after 40.
    assert re.fullmatch(
        r"psMNIST, permuted, one seed\. After 10 epochs of each model, LSTM \(8\d\.\d %\) leads\. "
        r"After 10 min of each model, GRU \(\d+\.\d %\) leads\. "
        r"After 40 min of each of the 2 models trained longest, LRCU-A \(8\d\.\d %\) leads\.",
        finding,
    )


def test_solvers_are_listed_below_the_lrcu(rendered):
    rows = rows_of(rendered["classification"], "solvers")
    assert [row["model"] for row in rows] == ["LRCU-S", "LRC-S", "LRC-S", "LRC-S"]
    assert {row["solver and steps"] for row in rows[1:]} == set(SOLVER_CHANGES)


def test_solvers_and_rates_are_compared_after_equal_numbers_of_epochs():
    long, short = (
        synthetic_runs.classification_run("person", "a01-a04", model, 0, epochs, centre=0.8, **choices)
        for model, epochs, choices in (
            ("lrcu-s", 20, {}),
            ("lrc-s", 5, {"solver": "hybrid-1"}),
        )
    )
    other_rate = synthetic_runs.classification_run("person", "a01-a04", "lrcu-s", 0, 5, centre=0.8, learning_rate=1e-2)
    page = classification.render([long, short, other_rate])
    epochs, accuracies = long.curve("test_accuracy")
    early = 100 * accuracies[epochs.index(5)]
    assert early < 100 * long.result.metrics["accuracy"]
    solvers, rates = rows_of(page, "solvers"), rows_of(page, "rates")
    assert [row["epochs"].split()[0] for row in solvers] == ["5"] * 2
    assert [row["epochs, faithful split"].split()[0] for row in rates] == ["5"] * 2
    assert solvers[0]["ours"].mean == rates[0]["accuracy, faithful split"].mean == pytest.approx(early)
    assert solvers[1]["ours"].mean == pytest.approx(100 * short.result.metrics["accuracy"])


def test_rates_have_a_table_of_their_own_and_stay_out_of_the_others(all_runs, rendered):
    without = [run for run in all_runs if run.result.spec.learning_rate is None]
    plain, with_rates = classification.render(without), rendered["classification"]
    assert "rates" not in [part.name for part in plain.sensitivities]
    for name in ("person", "solvers"):
        assert rows_of(with_rates, name) == rows_of(plain, name)
    assert with_rates.claims == plain.claims
    rows = rows_of(with_rates, "rates")
    assert [row["rate"] for row in rows[:3]] == ["0.0001", "0.001", "0.01"]
    assert {row["rate"] for row in rows if row["search"]} == {"0.01"}
    assert all(row["accuracy, faithful split"].seeds == 3 for row in rows)


def test_a_rate_is_picked_by_validation_loss_of_common_seeds_once_all_were_tried():
    rates = {1e-4: 0.9, None: 0.6, 1e-2: 0.7}
    runs = synthetic_runs.rate_runs("coarse", "gru", rates)

    def chosen_rates(subset):
        rows = rows_of(classification.render(subset), "rates")
        return [row["rate"] for row in rows if row["search"]]

    assert chosen_rates(runs) == ["0.0001"]
    # Seeds that only one rate has must not decide the search; here they are bad ones.
    bad = synthetic_runs.rate_runs("coarse", "gru", {1e-4: 0.2}, seeds=8)
    assert chosen_rates([*runs, *bad[6:]]) == ["0.0001"]
    untried = [run for run in runs if run.result.variant != "coarse-clean" or run.result.spec.change]
    assert chosen_rates(untried) == []
    lost = synthetic_runs.result("person", "coarse-clean", "gru", learning_rate=1e-2, status="diverged", epochs=3)
    others = [run for run in runs if run.result.variant != "coarse-clean" or run.result.rate != 1e-2]
    assert chosen_rates([*others, FinishedRun(lost)]) == ["0.0001"]


def test_each_number_of_a_rate_has_its_own_seeds():
    rates = {1e-4: 0.6, None: 0.7, 1e-2: 0.8}
    runs = synthetic_runs.rate_runs("coarse", "gru", rates)
    # The largest rate was tried with one seed on the clean split.
    runs = [r for r in runs if (r.result.variant, r.result.rate) != ("coarse-clean", 1e-2) or r.result.seed == 0]
    content = classification.render(runs)
    rows = rows_of(content, "rates")
    assert [row["seeds of the three numbers"] for row in rows] == ["1, 3, 3", "1, 3, 3", "1, 1, 3"]
    assert [row["validation loss, clean split"].seeds for row in rows] == [1, 1, 1]


def test_searches_are_counted_by_model_and_data():
    few = synthetic_runs.rate_runs("coarse", "gru", {1e-4: 0.6, None: 0.7, 1e-2: 0.8}, seeds=1)
    many = synthetic_runs.rate_runs("a01-a04", "gru", {1e-4: 0.6, None: 0.7, 1e-2: 0.8})
    smallest = synthetic_runs.rate_runs("a01-a04", "mgu", {1e-4: 0.8, None: 0.7, 1e-2: 0.6})
    groups = group_runs([*few, *many, *smallest], "person")
    assert describe_searches(search_rates(groups)) == (
        "2 of 3 searches by validation loss (GRU and MGU on a01-a04 and coarse) pick a rate of 0.01, 1 of them by a "
        "single seed"
    )
    assert describe_searches([]) == "No search over the three rates is complete yet"


def test_factors_by_length_are_those_of_the_claims_and_have_no_verdict(all_runs):
    content = neural_ode.render(all_runs)
    rows = {row["system"]: row for row in rows_of(content, "factors")}
    for claim in content.claims:
        row = rows[claim.statement.partition(":")[0]]
        factor, low, high = re.findall(r"[\d.e+-]+", row["2000 iterations"].replace(" to ", " "))
        assert claim.verdict.certainty == f"3 seeds; a factor of {factor}, 95 % interval {low} to {high}"
        assert row["seeds"] == "3"
    assert not any(word in str(cell) for row in rows.values() for cell in row.values() for word in WORDS)


def test_factors_are_listed_for_the_lengths_that_were_reached():
    runs = [
        synthetic_runs.ode_run("spiral", model, seed, iterations=1000, budget="quick")
        for model in ("lrc-s", "neural-ode")
        for seed in range(2)
    ]
    row = next(row for row in rows_of(neural_ode.render(runs), "factors") if row["system"] == "Spiral")
    assert row["1000 iterations"]
    assert row["2000 iterations"] is row["4000 iterations"] is None
    assert row["seeds"] == "2"
    assert "factors" not in [part.name for part in neural_ode.render(runs[:1]).sensitivities]


def test_ode_runs_are_judged_after_two_thousand_iterations(all_runs):
    rows = rows_of(neural_ode.render(all_runs), "test-error")
    assert {row["iteration"] for row in rows} == {2000}


def test_each_ode_model_is_judged_by_its_own_solver(all_runs):
    content = neural_ode.render(all_runs)
    rows = [row for row in rows_of(content, "test-error") if row["system"] == "Spiral"]
    assert [row["model and its solver"] for row in rows] == [
        "LRC-S, Euler",
        "LRC-A, Euler",
        "Neural ODE, Dormand-Prince",
        "Neural ODE, Euler",
    ]
    claim = next(claim for claim in content.claims if claim.statement.startswith("Spiral"))
    assert claim.ours == f"{rows[0]['ours, own solver']} against {rows[2]['ours, own solver']}"
    same = rows_of(content, "same-solver")
    assert [row["solver of both"] for row in same[:2]] == ["Euler", "Dormand-Prince"]


def test_the_verdict_on_a_short_ode_run_names_its_length():
    models = ("lrc-s", "neural-ode")
    runs = [synthetic_runs.ode_run("spiral", model, 0, iterations=1000, budget="quick") for model in models]
    claim = next(c for c in neural_ode.render(runs).claims if c.statement.startswith("Spiral"))
    assert claim.verdict.conditions == ("1000 of 2000 iterations", "1 seed in common")


def test_the_table_of_other_worlds_says_how_drives_ended(rendered):
    rows = rows_of(rendered["other-worlds"], "other-worlds")
    assert {row["world"] for row in rows} == {"vista", "carracing"}
    assert {row["noise 0.1"] for row in rows} == {"1 of 3 arrived; left the road after 90, 80 m"}
    assert {row["noise 0.2"] for row in rows} == {None}


def test_a_decaying_rate_has_a_table_of_its_own_and_stays_out_of_the_others(all_runs):
    metrics = {"mean_absolute_error": 0.0123, "mean_absolute_error_min": 0.01, "mean_absolute_error@2000": 0.0123}
    decayed = [
        synthetic_runs.result(
            "neural-ode",
            "lotka-volterra-periodic",
            "lrc-s",
            schedule="cosine",
            seed=seed,
            epochs=4000,
            metrics=metrics,
        )
        for seed in range(3)
    ]
    without = neural_ode.render(all_runs)
    with_decay = neural_ode.render([*all_runs, *(FinishedRun(r) for r in decayed)])
    assert rows_of(with_decay, "test-error") == rows_of(without, "test-error")
    rows = {row["learning rate"]: row for row in rows_of(with_decay, "decaying-rate")}
    assert set(rows) == {"constant", "cosine"}
    assert rows["cosine"]["last"].mean == pytest.approx(0.0123)
    assert "decaying-rate" not in [part.name for part in without.sensitivities]


def test_a_colour_means_one_model_in_a_report():
    reported = ("lrc-s", "lrc-a", "lstm", "gru", "mgu", "neural-ode", "ltc", "stc")
    assert len({palette.model_style(model).colour for model in reported}) == len(reported)
    assert palette.model_style("lrcu-s").colour == palette.model_style("lrc-s").colour


def test_every_colour_can_be_seen_on_the_light_and_on_the_dark_page():
    for style in palette.MODEL_STYLES.values():
        for background in (palette.PAPER, palette.DARK_PAPER):
            assert palette.contrast(style.colour, background) >= 3
    assert palette.contrast(palette.INK, palette.PAPER) >= 7


def test_models_of_one_figure_differ_by_more_than_colour():
    for models in (classification.MODELS, ("lrc-s", "lrc-a", "neural-ode")):
        styles = [palette.model_style(model) for model in models]
        for attribute in ("colour", "dashes", "marker"):
            assert len({getattr(style, attribute) for style in styles}) == len(styles)


def test_drawing_leaves_matplotlibs_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    elastance.render([])
    assert dict(matplotlib.rcParams) == before
