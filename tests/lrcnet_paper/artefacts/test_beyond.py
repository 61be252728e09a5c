"""The artefacts beyond the paper: no verdicts, published numbers marked as such, sentences that follow the numbers."""

from dataclasses import replace
from pathlib import Path

import pytest

from lrcnet_paper import artefacts
from lrcnet_paper.artefacts.beyond import PUBLISHED
from lrcnet_paper.artefacts.irregular import rates
from lrcnet_paper.artefacts.irregular.figure import describe_gains, mean_gains, share_scores
from lrcnet_paper.artefacts.irregular.runs import BENCHMARKS, HEADLINE, PICKED, plan_runs, plan_search
from lrcnet_paper.models import build, parameter_count
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.tasks import find
from tests.lrcnet_paper.artefacts import synthetic_runs
from tests.lrcnet_paper.artefacts.synthetic_runs import rows_of

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize("name", ["long", "irregular"])
def test_nothing_is_judged_and_published_numbers_say_so(name, rendered):
    content = rendered[name]
    assert not content.claims
    sources = {row["source"] for table in content.tables[-2:] for row in rows_of(content, table.name)}
    assert sources <= {"ours", PUBLISHED}
    assert {row["source"] for row in rows_of(content, content.tables[1].name)} == {"ours", PUBLISHED}


def test_there_are_five_sentences_and_they_follow_the_numbers(rendered):
    rows = rows_of(rendered["irregular"], "which-model")
    assert len(rows) == 5
    runs = synthetic_runs.beyond_runs()

    def xor_sentence(model):
        better = [
            replace(run, result=replace(run.result, metrics={"accuracy": 0.99}))
            if (run.result.task, run.result.model) == ("xor", model)
            else run
            for run in runs
        ]
        return rows_of(artefacts.load("irregular").render(better), "which-model")[0]["in our runs"]

    assert "the LRC leads by" in xor_sentence("lrcu-s")
    assert "the LRC loses by" in xor_sentence("torch-gru")


def test_the_figure_says_from_which_share_on_gaps_matter():
    runs = [run for run in synthetic_runs.beyond_runs() if run.result.task == "thinned"]
    curves = share_scores(runs)
    gains = mean_gains(curves)
    assert gains[0] < 5 < gains[60] < gains[90]
    assert "once 60 % of the readings are dropped" in describe_gains(curves)
    assert "gains less than 5 points" in describe_gains(share_scores([r for r in runs if r.result.variant == "drop-0"]))


def search_run(rate, losses, epochs=None):
    spec = next(spec for spec in [*plan_search(), *plan_runs("paper", 1)] if (spec.task, spec.model) == ("xor", "cfc"))
    one = synthetic_runs.result("xor", "events", "cfc", options=spec.options, learning_rate=rate)
    history = {"epoch": list(range(1, len(losses) + 1)), "validation_loss": losses}
    return FinishedRun(replace(one, epochs=epochs or len(losses)), history)


def test_a_rate_is_picked_by_the_first_tenth_once_all_were_tried():
    runs = [search_run(1e-3, [0.7, 0.6]), search_run(3e-3, [0.7, 0.5]), search_run(1e-2, [0.9] * 5 + [0.1])]
    assert rates.pick_rates(runs) == {("xor", "cfc"): 3e-3}
    assert rates.pick_rates(runs[:2]) == {}
    assert [rates.is_search(run) for run in runs] == [True, True, False]


def test_the_picked_rates_are_those_of_the_collected_searches():
    picked = rates.pick_rates(read_runs(RESULTS))
    assert {pair: PICKED[pair] for pair in picked if pair in PICKED} == {p: r for p, r in picked.items() if p in PICKED}


@pytest.mark.parametrize("task", BENCHMARKS)
def test_networks_of_a_table_have_equally_many_parameters(task):
    benchmark = BENCHMARKS[task]
    for model in HEADLINE:
        network = build(model, find(task, benchmark.variants[0]), parameters=benchmark.parameters)
        assert parameter_count(network) == pytest.approx(benchmark.parameters, rel=0.03)
