"""Protocols: runs of an older experiment stay readable and are never mixed with today's."""

from pathlib import Path

import pytest

from lrcnet_paper.report.assemble import current_runs
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.training.protocols import FIRST, SECOND, current_protocol, reasons_out_of_date
from lrcnet_paper.training.spec import RunSpec

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize(
    ("task", "variant", "model", "protocol"),
    [
        ("neural-ode", "spiral", "lrc-s", SECOND),
        ("person", "coarse", "gru", SECOND),
        ("imdb", "text", "mgu", SECOND),
        ("driving", "own", "lstm", SECOND),
        ("physionet", "fold-1", "gru-d", SECOND),
        ("thinned", "drop-60", "gru-d", SECOND),
        ("xor", "events", "gru-d", SECOND),
        ("event-mnist", "events", "gru-d", SECOND),
        ("thinned", "drop-60", "torch-gru", FIRST),
        ("person", "coarse", "lrcu-s", FIRST),
        ("imdb", "text", "lstm", FIRST),
    ],
)
def test_only_experiments_that_changed_have_the_second_protocol(task, variant, model, protocol):
    spec = RunSpec(task, variant, model)
    assert spec.protocol == current_protocol(task, model) == protocol
    assert reasons_out_of_date(task, model, protocol) == []
    old = RunSpec.from_dict({"task": task, "variant": variant, "model": model})
    assert old.protocol == FIRST
    assert bool(reasons_out_of_date(task, model, old.protocol)) == (protocol == SECOND)
    assert (old.folder_name() == spec.folder_name()) == (protocol == FIRST)


def test_a_run_keeps_its_protocol_when_it_is_written_and_read():
    spec = RunSpec("neural-ode", "spiral", "lrc-s")
    assert RunSpec.from_dict(spec.as_dict()) == spec
    old = spec.with_(protocol=FIRST)
    assert RunSpec.from_dict(old.as_dict()) == old
    assert old != spec


def test_stored_results_of_the_first_gru_d_are_out_of_date_and_those_of_its_rivals_are_not():
    runs = [run for run in read_runs(RESULTS) if run.result.task in ("physionet", "thinned", "xor", "event-mnist")]
    outdated = [run for run in runs if run not in current_runs(runs)]
    assert outdated == [run for run in runs if (run.result.model, run.result.spec.protocol) == ("gru-d", FIRST)] != []
    assert any("first event" in reason for reason in reasons_out_of_date("thinned", "gru-d", FIRST))
    assert not any("first event" in reason for reason in reasons_out_of_date("physionet", "gru-d", FIRST))


def test_every_stored_result_can_be_read():
    runs = read_runs(RESULTS)
    assert runs
    assert {run.result.spec.protocol for run in runs} <= {FIRST, SECOND}
