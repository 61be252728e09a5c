"""The artefacts beyond the paper: no verdicts, published numbers marked as such, sentences that follow the numbers."""

from dataclasses import replace

import pytest

from lrcnet_paper import artefacts
from lrcnet_paper.artefacts.beyond import PUBLISHED
from lrcnet_paper.artefacts.irregular.figure import describe_gains, draw_shares, mean_gains, share_scores
from tests.lrcnet_paper.artefacts import synthetic_runs
from tests.lrcnet_paper.artefacts.synthetic_runs import rows_of


@pytest.mark.parametrize("name", ["long", "irregular"])
def test_nothing_is_judged_and_published_numbers_say_so(name, rendered):
    content = rendered[name]
    assert not content.claims
    sources = {row["source"] for table in content.tables[-2:] for row in rows_of(content, table.name)}
    assert sources <= {"ours", PUBLISHED}
    assert {row["source"] for row in rows_of(content, content.tables[1].name)} == {"ours", PUBLISHED}


def test_there_are_six_sentences_and_they_follow_the_numbers(rendered):
    rows = rows_of(rendered["irregular"], "which-model")
    assert len(rows) == 6
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


def test_a_panel_without_a_model_is_not_drawn():
    runs = [run for run in synthetic_runs.beyond_runs() if run.result.task == "thinned"]
    models = sorted({run.result.model for run in runs})[:5]
    figure = draw_shares(share_scores([run for run in runs if run.result.model in models])).figure
    assert sum(axes.get_visible() for axes in figure.axes) == len(models)
