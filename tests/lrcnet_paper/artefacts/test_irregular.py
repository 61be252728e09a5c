"""The artefact of irregular sampling: every sentence follows the numbers, and no run vanishes without a word."""

from dataclasses import replace
from pathlib import Path

import pytest

from lrcnet_paper import artefacts
from lrcnet_paper.artefacts.irregular import rates
from lrcnet_paper.artefacts.irregular.figure import share_scores
from lrcnet_paper.artefacts.irregular.runs import (
    BENCHMARKS,
    FIGURE,
    FIGURE_BENCHMARK,
    FURTHER,
    HEADLINE,
    PICKED,
    plan_runs,
    plan_search,
)
from lrcnet_paper.artefacts.irregular.scarce import scarce_rows, share_table
from lrcnet_paper.artefacts.irregular.table import REPEATED
from lrcnet_paper.models import build, parameter_count
from lrcnet_paper.models.padded import PADDED
from lrcnet_paper.report.assemble import current_runs
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.tasks import find
from tests.lrcnet_paper.artefacts import synthetic_runs
from tests.lrcnet_paper.artefacts.synthetic_runs import rows_of

PROJECT = Path(__file__).parents[3]


def finish(spec, value=None, epochs=5):
    """Return a finished run of a planned one, or one that diverged if it has no value."""
    given = {"seed": spec.seed, "learning_rate": spec.learning_rate, "budget": spec.budget, "options": spec.options}
    metric = find(spec.task, spec.variant).metric
    metrics = {} if value is None else {metric: value}
    one = synthetic_runs.result(spec.task, spec.variant, spec.model, metrics=metrics, **given)
    return FinishedRun(replace(one, spec=spec, epochs=epochs, status="diverged" if value is None else "finished"))


def planned(task, models=None):
    """Return the runs of a task's table or figure at the paper budget, three seeds."""
    length = {**BENCHMARKS, FIGURE: FIGURE_BENCHMARK}[task].epochs
    own = [spec for spec in plan_runs("paper", 3) if spec.task == task and spec.epochs == length]
    return [spec for spec in own if models is None or spec.model in models]


def render(runs):
    return artefacts.load("irregular").render(runs)


def search_run(rate, losses, length):
    one = synthetic_runs.result("xor", "events", "cfc", options={"parameters": 10_000}, learning_rate=rate)
    history = {"epoch": list(range(1, len(losses) + 1)), "validation_loss": losses}
    return FinishedRun(replace(one, spec=one.spec.with_(epochs=length), epochs=len(losses)), history)


def test_a_rate_is_picked_by_the_first_tenth_once_all_were_tried():
    runs = [search_run(1e-3, [0.7, 0.6], 4), search_run(3e-3, [0.7, 0.5], 4), search_run(1e-2, [0.9] * 5 + [0.1], 40)]
    assert rates.pick_rates(runs) == {("xor", "cfc"): 3e-3}
    assert rates.pick_rates(runs[:2]) == {}


def test_a_run_is_of_the_search_if_it_is_short_or_its_rate_was_not_picked(monkeypatch):
    monkeypatch.setattr(rates, "PICKED", {("xor", "cfc"): 3e-3})
    assert rates.is_search(search_run(3e-3, [0.7], 4))
    assert not rates.is_search(search_run(3e-3, [0.7], 40))
    assert not rates.is_search(search_run(3e-3, [0.7], None))
    assert rates.is_search(search_run(1e-2, [0.7], 40))
    monkeypatch.setattr(rates, "PICKED", {})
    assert not rates.is_search(search_run(1e-2, [0.7], 40))


def test_a_run_that_diverges_in_its_first_epochs_stays_in_its_table():
    runs = [finish(spec, 0.8 if spec.seed else None, epochs=1) for spec in planned("physionet", ["lrc-s", "torch-gru"])]
    runs += [finish(spec, epochs=2) for spec in planned("physionet", ["ltc"])]
    rows = [row for row in rows_of(render(runs), "physionet") if row["source"] == "ours"]
    values = {row["model"]: row["test AUC (%)"] for row in rows}
    assert values["LRC-S"].to_text() == "80.0 ± 0.0 (1 NaN)"
    assert values["LTC"] == "3 NaN"
    assert list(values)[-1] == "LTC"


def test_the_picked_rates_are_those_of_the_collected_searches():
    picked = rates.pick_rates(current_runs(read_runs(PROJECT / "results")))
    assert picked
    assert picked == {pair: PICKED[pair] for pair in picked}


def test_the_note_counts_the_rates_at_the_edge_of_the_search():
    picked = {("xor", "cfc"): 1e-2, ("xor", "ltc"): 1e-2, ("xor", "lrc-s"): 3e-3, ("thinned", "cfc"): 1e-3}
    assert rates.describe_edges(picked) == (
        " The largest of the three rates was picked for 2 of 3 models on Event-based XOR, so a larger one might do "
        "better. The smallest of the three rates was picked for 1 of 1 models on Thinned oscillations, so a smaller "
        "one might do better."
    )
    assert rates.describe_edges({("xor", "lrc-s"): 3e-3}) == ""
    losses = {1e-3: [0.7], 3e-3: [0.5], 1e-2: [0.4]}
    table = rates.rate_table([search_run(rate, values, 4) for rate, values in losses.items()])[0]
    assert "The largest of the three rates was picked for 1 of 1 models on Event-based XOR" in table.note


def test_every_searched_rate_but_the_picked_one_is_planned_for_todays_gru_d():
    specs = [spec for spec in plan_search() if (spec.task, spec.model) == ("physionet", "gru-d")]
    assert {spec.learning_rate for spec in specs} | {PICKED["physionet", "gru-d"]} == set(BENCHMARKS["physionet"].rates)


FOLDS = {0: 0.02, 1: -0.01, 2: -0.01}
"""Seed -> what its fold adds to every model's score."""


def test_further_models_come_last_and_the_note_says_which_folds_were_run():
    runs = [finish(spec, (0.9 if spec.model in FURTHER else 0.8) + FOLDS[spec.seed]) for spec in planned("physionet")]
    content = render(runs)
    ours = [row for row in rows_of(content, "physionet") if row["source"] == "ours"]
    assert [row["model"].endswith("(further model)") for row in ours] == [False] * len(HEADLINE) + [True] * len(FURTHER)
    note = next(table for table in content.tables if table.name == "physionet").note
    assert "each further seed has the next fold, so that the first 3 of 5 folds are used" in note
    assert "Adam, batches of 128, at most 30 epochs at the paper budget; a run stops after 5 epochs" in note
    assert "Ours minus published, in points: " in note
    assert "GRU-D −1.8" in note
    assert "Further models have one seed, are listed last and are not compared." in note


def sentence(values, task="physionet"):
    """Return the sentence of a task, from model -> value without the fold's part."""
    runs = [finish(spec, values[spec.model] + FOLDS[spec.seed]) for spec in planned(task, values)]
    return {row["data"]: row["in our runs"] for row in rows_of(render(runs), "which-model")}[
        "irregular readings with missing values"
    ]


def test_the_best_lrc_is_compared_with_the_best_other_model_in_pairs_of_folds():
    """The spread over folds hides a difference that every fold shows."""
    assert sentence({"lrc-s": 0.81, "lrcu-s": 0.70, "torch-gru": 0.80, "ltc": 0.75}) == (
        "On PhysioNet 2012, LRC-S (81.0 ± 1.7) has the best mean of 4 models, and the best other model is GRU (torch) "
        "(80.0 ± 1.7): the LRC leads by 1.0 points (paired over 3 folds: +1.0 points, 95 % interval +1.0 to +1.0)."
    )


def test_a_difference_whose_interval_contains_0_is_no_lead():
    noisy = {"lrc-s": (0.88, 0.79, 0.79), "torch-gru": (0.80, 0.80, 0.80)}
    runs = [finish(spec, noisy[spec.model][spec.seed]) for spec in planned("physionet", noisy)]
    text = rows_of(render(runs), "which-model")[1]["in our runs"]
    assert "LRC-S (82.0 ± 5.2) has the best mean of 2 models" in text
    assert "the difference is within the spread (paired over 3 folds: +2.0 points" in text
    assert "leads" not in text


def test_lrcs_whose_gap_is_the_step_are_named_where_they_are_behind_every_input():
    behind = "The LRCs whose gap is the step are behind every model whose gap is an input: LRC-S (70.0 ± 1.7)."
    assert behind in sentence({"lrc-s": 0.70, "lrcu-s": 0.71, "torch-gru": 0.80, "ltc": 0.75})
    assert "behind every" not in sentence({"lrc-s": 0.72, "lrcu-s": 0.71, "torch-gru": 0.80, "ltc": 0.75})


def test_a_loss_of_the_best_lrc_is_said_plainly():
    text = sentence({"lrc-s": 0.70, "lrcu-s": 0.71, "torch-gru": 0.80, "ltc": 0.75})
    assert "GRU (torch) (80.0 ± 1.7) has the best mean of 4 models" in text
    assert "the best LRC is LRCU-S (71.0 ± 1.7), number 3" in text
    assert "the LRC loses by 9.0 points (paired over 3 folds: -9.0 points" in text


def thinned_runs(known, unknown, noise=0.0):
    """Return runs on thinned oscillations from model -> accuracy with and without gaps."""
    values = {"": known, "none": unknown}
    specs = planned("thinned", known)
    return [finish(s, values[s.options.get("gaps", "")][s.model] + noise * (s.seed - 1)) for s in specs]


def thinned(known, unknown, noise=0.0):
    return share_scores(thinned_runs(known, unknown, noise))


def test_the_sentence_on_scarce_readings_names_the_models_and_the_reason():
    known = {"lrcu-s": 0.60, "lrc-s": 0.44, "diagonal-lrc": 0.35, "lrc-ssm": 0.50, "torch-gru": 0.62}
    unknown = dict.fromkeys(known, 0.34)
    rows = scarce_rows(thinned(known, unknown, noise=0.01))
    assert [name for name, _ in rows] == ["60 % of the readings are dropped", "90 % of the readings are dropped"]
    text = rows[1][1]
    assert "GRU (torch) (62.0 ± 1.0) has the best mean of 5 models" in text
    assert "the best LRC is LRCU-S (60.0 ± 1.0), number 2: the LRC loses by 2.0 points" in text
    assert "Diagonal LRC gains least from knowing the gaps (+1.0 points), then LRC-S (+10.0), LrcSSM (+16.0)" in text
    assert "For Diagonal LRC, LRC-S and LrcSSM a gap is the step. A likely reason" in text
    assert "not the only reason" not in text
    mixed = scarce_rows(thinned({**known, "lrc-ssm": 0.61}, unknown))[1][1]
    assert "For Diagonal LRC and LRC-S a gap is the step" in mixed
    assert "For LrcSSM it is the step too, so this is not the only reason." in mixed


def test_no_reason_is_given_where_the_step_gains_as_much_as_the_input():
    known = {"lrcu-s": 0.60, "lrc-s": 0.58, "torch-gru": 0.5}
    text = scarce_rows(thinned(known, dict.fromkeys(known, 0.4)))[0][1]
    assert "LRC-S gains least from knowing the gaps (+18.0 points), then LRCU-S (+20.0)." in text
    assert "the LRC leads by 10.0 points" in text
    assert "decay" not in text
    assert scarce_rows({}) == [
        ("readings become scarce", "Thinned oscillations have no finished runs of both LRCs and other models yet.")
    ]


def test_the_numbers_of_the_figure_are_a_table_too():
    known, unknown = {"lrcu-s": 0.60, "gru-d": 0.55}, {"lrcu-s": 0.40, "gru-d": 0.30}
    content = render(thinned_runs(known, unknown, 0.01))
    rows = rows_of(content, "thinned")
    assert [(row["model"], row["gap as"], str(row["90 % dropped"]), row["seeds"]) for row in rows] == [
        ("LRCU-S", "input", "60.0 ± 1.0", "3"),
        ("LRCU-S", "unknown", "40.0 ± 1.0", "3"),
        ("GRU-D", "step and input", "55.0 ± 1.0", "3"),
        ("GRU-D", "unknown", "30.0 ± 1.0", "3"),
    ]
    assert set(rows[0]) >= {f"{share} % dropped" for share in (0, 30, 60, 80, 90)}
    assert content.sensitivities[0].name == "thinned", "directly below the figure"
    assert share_table({}) == []


def test_the_table_says_that_gru_d_takes_the_gaps_of_events_twice():
    content = render(synthetic_runs.beyond_runs())
    uses = {
        task: next(row["gap as"] for row in rows_of(content, task) if row["model"] == "GRU-D")
        for task in ("xor", "physionet")
    }
    assert uses == {"xor": "step and input", "physionet": "step"}


def test_a_table_without_any_row_is_left_out():
    content = render([])
    assert [table.name for table in content.tables] == ["which-model", "xor", "physionet"]
    assert "scores on Event-based MNIST: no finished run" in content.skipped


def test_the_differences_name_the_models_that_read_the_mean_of_their_outputs():
    assert {model for model, entry in PADDED.items() if entry.pooling == "mean"} == {"lrc-ssm"}
    assert any(text.startswith("LrcSSM: the label is read from the mean") for text in render([]).differences)


def test_the_docs_say_how_many_test_streams_of_xor_occur_in_training():
    def streams(split):
        samples = find("xor").load(split)
        runs = (samples.gaps * samples.rows[:, 0]).tolist()
        return [tuple(runs[a : a + n]) for a, n in zip(samples.starts.tolist(), samples.lengths.tolist(), strict=True)]

    seen = set(streams("train"))
    count = sum(stream in seen for stream in streams("test"))
    text = (PROJECT / "docs" / "long.md").read_text(encoding="utf-8")
    assert f"Of the 10,000 test streams of `xor`, {count:,} ({count / 100:.1f} %) also occur" in text
    assert REPEATED.startswith(f"{count / 100:.1f} % of the test streams")
    assert "first three of five folds" in text


@pytest.mark.parametrize("task", BENCHMARKS)
def test_networks_of_a_table_have_equally_many_parameters(task):
    benchmark = BENCHMARKS[task]
    for model in HEADLINE:
        network = build(model, find(task, benchmark.variants[0]), parameters=benchmark.parameters)
        assert parameter_count(network) == pytest.approx(benchmark.parameters, rel=0.03)
