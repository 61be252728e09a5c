"""Sentences, titles and captions that artefacts write: each follows from the runs that it stands beside."""

from collections import Counter
from dataclasses import replace

import pytest

from lrcnet.pages.content import Table
from lrcnet_paper.artefacts import driving_runs, lane_keeping, loss_curves, scenes, setup, training_time
from lrcnet_paper.artefacts.classification import table as classification
from lrcnet_paper.artefacts.classification.claims import clear_differences
from lrcnet_paper.artefacts.driving_runs import EFFICIENCY, POLICIES, Model
from lrcnet_paper.artefacts.neural_ode import table as neural_ode
from lrcnet_paper.artefacts.neural_ode.factors import count_clear_factors
from lrcnet_paper.artefacts.neural_ode.figures import example_roll_outs
from lrcnet_paper.artefacts.neural_ode.rows import ADAPTIVE, LRC_S
from lrcnet_paper.report.assemble import ArtefactSection
from lrcnet_paper.report.summary import new_differences
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.results.interval import Interval
from lrcnet_paper.tasks.neural_ode import SYSTEMS
from tests.lrcnet_paper.artefacts import synthetic_runs
from tests.lrcnet_paper.artefacts.synthetic_runs import rows_of


def title_of(content, name):
    pictures = [part for part in (*content.pictures, *content.sensitivities) if not isinstance(part, Table)]
    return next(p for p in pictures if p.name == name).figure.get_suptitle().replace("\n", " ")


def table_of(content, name):
    return next(part for part in (*content.tables, *content.sensitivities) if part.name == name)


def test_no_text_has_marks_that_a_page_would_show_as_they_are(rendered):
    for name, content in rendered.items():
        parts = (*content.tables, *content.pictures, *content.sensitivities)
        texts = [part.note if isinstance(part, Table) else part.caption + part.details for part in parts]
        assert not any("`" in text for text in texts), f"{name}: texts are plain, a backtick is shown"


def test_training_times_are_a_median_and_a_range_and_no_ratio():
    seconds = {0: 2.0, 1: 2.5, 2: 9.0}
    runs = [
        FinishedRun(synthetic_runs.result("driving", "own-features", "lstm", seed=seed, epochs=100, seconds=time))
        for seed, time in seconds.items()
    ]
    table = training_time.render(runs).tables[0]
    row = next(row for row in rows_of(training_time.render(runs), "training-time") if row["model"] == "LSTM")
    assert row["ours (s), median over seeds"] == 2.5
    assert row["ours (s), range over seeds"] == "2 to 9"
    assert not any("×" in column for column in table.columns)
    assert "indications only" in table.note


def ode_runs(seeds=3, **choices):
    return [
        synthetic_runs.ode_run(system, model, seed, **choices)
        for system in SYSTEMS
        for model in ("lrc-s", "neural-ode")
        for seed in range(seeds)
    ]


def without_prediction(run):
    return replace(run, prediction={})


def test_one_seed_is_drawn_that_both_models_have_and_the_caption_names_it():
    runs = [
        # The Neural ODE lacks seed 0, and seed 2 has more points than seed 1; neither matters.
        without_prediction(run) if (run.result.seed, run.result.model) == (0, "neural-ode") else run
        for run in ode_runs()
    ]
    runs = [
        replace(run, prediction={name: values[::4] for name, values in run.prediction.items()})
        if run.result.seed == 1
        else run
        for run in runs
    ]
    drawn = example_roll_outs(neural_ode.find_groups(runs))
    assert {run.result.seed for run in drawn.values()} == {1}
    assert {row for _, row in drawn} == {LRC_S, ADAPTIVE}
    content = neural_ode.render(runs)
    assert "(seed 1, after 4000 iterations, each model by its own solver)" in content.pictures[0].caption
    assert "claims are judged after 2000 iterations" in content.pictures[0].caption
    for name in ("phase-portraits", "trajectories"):
        assert title_of(content, name).startswith("Seed 1 as an example, after 4000 iterations: ")


def test_learning_curves_are_summed_up_where_claims_are_judged():
    runs = []
    for run in ode_runs():
        good = run.result.variant == "spiral"
        metrics = {**run.result.metrics, "mean_absolute_error": 0.0, "mean_absolute_error@2000": 0.0 if good else 9.0}
        runs.append(replace(run, result=replace(run.result, metrics=metrics)))
    title = title_of(neural_ode.render(runs), "learning-curves")
    assert title.startswith("After 2000 iterations, when claims are judged, ")
    assert title.endswith("1 of 6 systems")
    short = title_of(neural_ode.render(ode_runs(1, iterations=1000, budget="quick")), "learning-curves")
    assert short.startswith("After 1000 iterations the mean error")


def test_one_slow_seed_does_not_change_the_time_of_an_iteration():
    runs = [
        replace(run, result=replace(run.result, seconds_per_epoch=(0.002, 0.003, 0.075)[run.result.seed]))
        for run in ode_runs()
    ]
    rows = rows_of(neural_ode.render(runs), "test-error")
    assert {row["ms per iteration, median of seeds"] for row in rows if row["seeds"]} == {3.0}


def test_a_decaying_rate_is_summed_up_by_the_systems_on_which_it_helps():
    def decayed(system, factor):
        run = synthetic_runs.ode_run(system, "lrc-s", 0)
        spec = run.result.spec.with_(schedule="cosine")
        last, least = run.result.metrics["mean_absolute_error"], run.result.metrics["mean_absolute_error_min"]
        metrics = {"mean_absolute_error": factor * last, "mean_absolute_error_min": factor * least}
        return replace(run, result=replace(run.result, spec=spec, metrics=metrics))

    decaying = [decayed("sinusoid", 2.0), decayed("spiral", 0.5), decayed("duffing", 0.5)]
    note = table_of(neural_ode.render([*ode_runs(1), *decaying]), "decaying-rate").note
    assert "below that of a constant rate on 2 of 3 systems (LRC-S, Euler)." in note
    assert "settles" not in note


def interval(low, high):
    return Interval((low + high) / 2, low, high, 3)


def test_the_intervals_that_exclude_one_are_counted_after_each_length():
    lasting = {1000: interval(0.1, 1.0), 2000: interval(0.2, 1.0), 4000: interval(0.3, 1.0)}
    passing = {1000: interval(0.1, 1.0), 2000: interval(-0.1, 1.0), 4000: interval(-1.0, -0.1)}
    assert count_clear_factors({"spiral": lasting, "duffing": passing}) == [
        "The 95 % interval of the factor between the errors excludes 1 on 2 of 2 systems after 1000 iterations, 1 of 2 "
        "after 2000 and 2 of 2 after 4000 (1 in favour of the Neural ODE); after each of them on Spiral."
    ]
    assert count_clear_factors({"spiral": {}}) == []


def test_the_section_says_that_the_length_was_chosen():
    lines = neural_ode.render(ode_runs()).differences
    assert "claims are judged after 2000. The 95 % interval of the factor between the errors excludes 1" in lines[0]
    assert neural_ode.render([]).differences[0].endswith("claims are judged after 2000.")


def person_runs(accuracies, variant="coarse", epochs=100):
    """Build the runs of person activity from model -> accuracies in percent, one per seed."""
    return [
        FinishedRun(
            synthetic_runs.result("person", variant, model, seed=seed, epochs=epochs, metrics={"accuracy": value / 100})
        )
        for model, values in accuracies.items()
        for seed, value in enumerate(values)
    ]


def test_gated_units_with_a_clear_difference_to_an_lrcu_are_named():
    def sentence(accuracies):
        return clear_differences(group_runs(person_runs(accuracies), "person"))

    assert sentence({"lrcu-s": (84, 85, 86), "lstm": (82, 83.1, 84), "gru": (83, 86, 85), "mgu": (87, 88.1, 89)}) == [
        "Of 3 comparisons of an LRCU with a gated unit, 2 have a 95 % interval that excludes 0: "
        "LRCU-S ahead of LSTM (+1.97 points, +1.82 to +2.11) and LRCU-S behind MGU (-3.03 points, -3.18 to -2.89)."
    ]
    assert sentence({"lrcu-s": (84, 85), "lstm": (85, 84)}) == [
        "Of 1 comparison of an LRCU with a gated unit, none has a 95 % interval that excludes 0."
    ]
    assert sentence({"lrcu-s": (84,), "lstm": (80,)}) == []
    long, short = person_runs({"lrcu-s": (84, 85)}), person_runs({"lstm": (80, 81.1)}, epochs=40)
    assert clear_differences(group_runs([*long, *short], "person")) == []


def test_the_best_model_is_named_with_the_certainty_of_its_lead():
    def finding(accuracies):
        groups = group_runs(person_runs(accuracies), "person")
        return classification._curves_finding(groups, "person", "coarse", "test")

    best = "Localization, coarse: after 100 epochs LRCU-S has the best test accuracy, 85.0 %"
    assert finding({"lrcu-s": (84, 85, 86), "lstm": (82, 83.1, 84)}) == best
    assert finding({"lrcu-s": (84, 85, 86), "lstm": (85, 85, 84)}) == (
        f"{best}; its lead over the second (LSTM, 84.7 %) is within the spread over seeds"
    )
    assert finding({"lrcu-s": (85,), "lstm": (80,)}).endswith("is from fewer than two common seeds")


def test_the_accuracies_of_the_faithful_and_of_the_clean_split_stand_beside_each_other():
    faithful = person_runs({"lrcu-s": (84, 85), "lstm": (82, 83), "gru": (90, 91)})
    clean = {"lrcu-s": (77, 78), "lstm": (74, 76)}
    note = table_of(classification.render([*faithful, *person_runs(clean, "coarse-clean")]), "person").note
    assert (
        "6,274 instead of 7,769 windows are for training, the models have 75.00 to 77.50 % instead of 82.50 to 84.50 %."
    ) in note
    assert "overlapping windows on both sides of the split" in note
    short = classification.render([*faithful, *person_runs(clean, "coarse-clean", epochs=40)])
    assert "On the clean split" not in table_of(short, "person").note


def test_a_figure_of_one_seed_mentions_no_band():
    def caption(seeds):
        runs = [synthetic_runs.classification_run("psmnist", "permuted", "lstm", seed, 5) for seed in range(seeds)]
        parts = classification.render(runs).sensitivities
        return next(part.caption for part in parts if part.name.startswith("learning-curves-psmnist"))

    assert caption(1) == "psMNIST, permuted: training loss and validation accuracy, one seed."
    assert caption(2).endswith("mean over seeds; the band reaches from the worst to the best seed.")


def test_tables_with_times_say_that_these_are_indications(rendered):
    for name, content in ((name, rendered[name]) for name in ("classification", "neural-ode")):
        for table in (part for part in (*content.tables, *content.sensitivities) if isinstance(part, Table)):
            timed = any(column.startswith(("s per", "ms per")) for column in table.columns)
            assert ("indications" in table.note) == timed, f"{name}: {table.name}"


def test_the_search_on_the_clean_split_is_not_called_independent(rendered):
    note = table_of(rendered["classification"], "rates").note
    assert "shares its sequences" in note
    assert "independent" not in note


def test_the_sign_of_the_nonlinear_system_is_stated_as_it_is_trained():
    line = next(line for line in neural_ode.DIFFERENCES if "0.33" in line)
    field = SYSTEMS["lotka-volterra-nonlinear"].field
    x, y = 2.0, 3.0
    assert field(x, y)[0] == pytest.approx(x * (1 - x) - 0.33 * x * y)
    assert "is the paper's, x' = x (1 - x) - 0.33 x y" in line


def test_losses_of_another_scale_are_not_drawn_beside_ours():
    runs = [
        synthetic_runs.driving_run({}, model, seed, variant="own-features")
        for model in EFFICIENCY.values()
        for seed in range(2)
    ]
    figure = loss_curves.render(runs).pictures[0].figure
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert not any("paper" in label for label in labels)
    assert all(len(set(line.get_ydata())) > 1 for axes in figure.axes for line in axes.get_lines())


def test_the_scenes_are_titled_by_policy_seed_and_distance():
    run = synthetic_runs.driving_run({}, Model("lrcu-s"), 2)
    run = replace(run, analyses={"scenes": {"predicted": [0.01, 0.0], "driver": [0.0, 0.0]}})
    # A curvature of 0.01 / m leads 25 ** 2 / 200 m to the side.
    assert scenes._scenes_finding(run) == (
        "LRCU-S, seed 2, as an example: after 25 m its paths lie 1.6 m beside the expert's on average, at most 3.1 m"
    )
    assert "no policy" in scenes._scenes_finding(None)


def short_policies(**choices):
    """Build policies as the budget `long` trains them."""
    settings = {"batch_size": 8, "piece": 16, "samples": 1280, "budget": "long", "clip": 1.0, **choices}
    results = [
        synthetic_runs.result(
            "driving", "own", model.name, seed=seed, epochs=25, options={"bfloat16": True}, **settings
        )
        for model in POLICIES
        for seed in range(3)
    ]
    return [FinishedRun(replace(one, updates=4000, metrics={"validation_weighted_loss": 1.0})) for one in results]


def test_policies_trained_end_to_end_list_their_own_differences():
    groups = driving_runs.find_groups(short_policies(), POLICIES)
    lines = driving_runs.end_to_end_differences(groups)
    text = " ".join(lines)
    for part in ("synthetic world", "4,000 updates in 25 epochs", "batches of 8 sequences of 16 frames",
                 "100 epochs, with batches of 32 sequences of 32 frames", "bfloat16", "norm of 1"):  # fmt: skip
        assert part in text
    # A page refers to the section that stated a sentence first, which must not be one about a shared head.
    assert not set(lines) & {*driving_runs.shared_head_differences(groups)}
    as_in_the_paper = [FinishedRun(synthetic_runs.result("driving", "own", "lstm", epochs=100))]
    # The paper does not give its number of updates, so that the length is stated even if the epochs are the paper's.
    _, length = driving_runs.end_to_end_differences(driving_runs.find_groups(as_in_the_paper, POLICIES))
    assert "trained for 100 epochs, with batches of 32 sequences of 32 frames" in length
    assert len(driving_runs.end_to_end_differences({})) == 1


def test_no_end_to_end_section_refers_to_the_differences_of_a_shared_head(rendered):
    end_to_end = ("lane-keeping", "attention", "activity")
    sections = [ArtefactSection(name, name, rendered[name]) for name in ("dynamics", "loss-curves", *end_to_end)]
    differences = new_differences(sections)
    for name in end_to_end:
        assert not any("dynamics" in line or "loss-curves" in line for line in differences[name])
    assert differences["activity"] == ["As in “lane-keeping”."]
    assert driving_runs.LOSSES in lane_keeping.render([]).differences


def test_the_set_up_says_what_was_trained_beside_the_protocol():
    runs = [
        synthetic_runs.classification_run("imdb", "text", "lstm", 0, 5),
        synthetic_runs.classification_run("psmnist", "permuted", "lstm", 0, 20),
        synthetic_runs.classification_run("psmnist", "permuted", "lrcu-s", 0, 20),
        synthetic_runs.classification_run("psmnist", "permuted", "gru", 0, 10),
        FinishedRun(synthetic_runs.result("psmnist", "permuted", "mgu", epochs=2, status="diverged")),
        FinishedRun(synthetic_runs.result("driving", "own-features", "lstm", epochs=100)),
        *short_policies(),
    ]
    content = setup.render(runs)

    def trained(task):
        return {row["variable"]: row["trained"] for row in rows_of(content, f"hyper-parameters-{task}")}

    assert trained("imdb")["epochs"] == "5"
    assert trained("psmnist")["epochs"] == "20 (2 runs), 10 (1 run)"
    assert trained("lane-keeping")["batch size"] == "8 (15 runs), 32 (1 run)"
    assert trained("lane-keeping")["sequence length"] == "16 (15 runs), 32 (1 run)"
    assert trained("lane-keeping")["epochs"] == "25 (15 runs), 100 (1 run)"
    assert trained("lane-keeping")["weight decay"] == "1e-06"
    assert set(trained("person").values()) == {None}
    row = next(row for row in rows_of(content, "hyper-parameters-imdb") if row["variable"] == "epochs")
    assert (row["paper"], row["our protocol"], row["protocol as in the paper"]) == ("30", "30", "yes")
    assert "25 epochs of 1280 pieces of 16 frames" in table_of(content, "hyper-parameters-lane-keeping").note


def test_iterations_are_counted_as_trained():
    counts = setup.trained_values(ode_runs(1), "neural-ode")
    assert counts["iterations"] == Counter({"4000": 12})
