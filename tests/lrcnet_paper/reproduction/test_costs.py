"""The cost of planned runs, which is printed before a budget starts."""

import pytest
import torch

from lrcnet_paper.reproduction import costs, pipeline
from lrcnet_paper.training.spec import RunSpec


def test_steps_are_counted_in_the_unit_of_the_task():
    assert costs.count_steps(RunSpec("neural-ode", "spiral", "lrc-s", iterations=400)) == 400
    # 7,769 windows in batches of 128 are 61 updates an epoch.
    assert costs.count_steps(RunSpec("person", "coarse", "gru")) == 6100
    assert costs.count_steps(RunSpec("person", "coarse", "gru", epochs=3, samples=200)) == 6
    assert costs.count_steps(RunSpec("person", "a01-a04", "gru")) == 680 * 9 >= 6100


def test_runs_of_one_kind_share_a_pilot(monkeypatch):
    timed = []
    monkeypatch.setattr(costs, "time_step", lambda spec, data: timed.append(spec.model) or 0.9)
    specs = [
        RunSpec("neural-ode", "spiral", model, seed=seed, iterations=2000)
        for seed in range(2)
        for model in ("lrc-s", "neural-ode")
    ]
    lines = []
    pipeline.report_costs(specs, None, lines.append)
    assert sorted(timed) == ["lrc-s", "neural-ode"]
    assert lines == [
        "cost of neural-ode spiral lrc-s: 2 runs, about 1 core-hours",
        "cost of neural-ode spiral neural-ode: 2 runs, about 1 core-hours",
        "cost of all 4 runs: about 2 core-hours of training",
    ]


@pytest.mark.parametrize(
    ("spec", "threads", "expected"),
    [
        (RunSpec("xor", "events", "lstm"), None, 1),
        (RunSpec("xor", "events", "lstm"), 3, 3),
        (RunSpec("person", "coarse", "lstm"), None, 2),
    ],
)
def test_a_pilot_has_the_threads_of_its_run(spec, threads, expected, monkeypatch):
    monkeypatch.setattr(costs, "time_step", lambda spec, data: float(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (cost,) = costs.estimate_costs([spec], threads=threads)
    finally:
        torch.set_num_threads(before)
    assert cost.hours == expected * costs.count_steps(spec) / 3600


@pytest.mark.parametrize("model", ["lrc-s", "neural-ode"])
def test_a_pilot_takes_time(model):
    assert 0 < costs.time_step(RunSpec("neural-ode", "spiral", model)) < 60
