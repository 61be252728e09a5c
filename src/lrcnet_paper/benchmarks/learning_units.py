"""The comparison that chose the units of the letters: accuracy at Adam's rates of 1e-3 and 1e-2 on seven sets.

A unit multiplies the step of an optimiser such as Adam, so a candidate is trained as parametrisation="ab" with a rate
of its own for every letter. Seeds 0 to 2 screen the candidates, seeds 3 to 7 confirm those of `CONFIRMED`. Finished
trainings are appended to `learning-units.jsonl` in the working directory, and the same command continues after an
interruption; all of them take about 40 core-minutes.
"""

import json
import math
import statistics
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, threads
from lrcnet_paper.benchmarks import held_out_sets
from lrcnet_paper.benchmarks import learning_archive as archive

RECORD = Path("learning-units.jsonl")
SETS = ("ItalyPowerDemand", "JapaneseVowels", "GunPoint", *held_out_sets.TUNING)
RATES = (1e-3, 1e-2)
SCREENING, CONFIRMING = range(3), range(3, 8)

FORMER = {"a": 4, "b": 4, "g": 2, "k": 2, "g_l": 2, "o": 2, "p": 2, "k_eps": 2, "input_scale": 0.5, "input_shift": 0.5}
CANDIDATES: dict[str, dict[str, float]] = {
    "former units": FORMER,
    "all 1": {},
    "k 1": FORMER | {"k": 1},
    "a 1": FORMER | {"a": 1},
    "k 1, a 2": FORMER | {"k": 1, "a": 2},
    "k 1, a 2, b 2": FORMER | {"k": 1, "a": 2, "b": 2},
    "k, g, o 1": FORMER | {"k": 1, "g": 1, "g_l": 1, "o": 1},
    "half": {name: unit if name.startswith("input") else unit / 2 for name, unit in FORMER.items()},
}
"""name -> letter -> its unit, 1 if it is not listed."""
CONFIRMED = ("former units", "k 1", "a 1", "k 1, a 2")


class Trial(NamedTuple):
    """The identity of one training."""

    candidate: str
    set: str
    rate: float
    seed: int


def plan() -> Iterator[Trial]:
    """List the trainings, those that screen first."""
    for trial in product(CANDIDATES, SETS, RATES, SCREENING):
        yield Trial(*trial)
    for trial in product(CONFIRMED, SETS, RATES, CONFIRMING):
        yield Trial(*trial)


def train(trial: Trial) -> float:
    """Train an LRCU-S and return its accuracy in % on the test half."""
    torch.manual_seed(trial.seed)
    # All seeds see the same samples: the sets are drawn once.
    data = archive.load(trial.set, 0)
    layer = lrcnet.LRCU(data.train.x.shape[-1], archive.UNITS, batch_first=True, parametrisation="ab")
    network, units = archive.Network(layer, data.classes), CANDIDATES[trial.candidate]
    groups = [
        {"params": [parameter], "lr": trial.rate * units.get(name.rpartition(".")[-1], 1)}
        for name, parameter in network.named_parameters()
    ]
    archive.fit(network, archive.OPTIMISERS["Adam"](groups, lr=trial.rate), data)
    return archive.accuracy(network, data.test)


def measure() -> list[Measurement]:
    """Run the trainings that are not recorded yet, and return the means over the sets."""
    results = _read_record()
    with threads(1):
        for trial in plan():
            if trial not in results:
                results[trial] = train(trial)
                with RECORD.open("a") as file:
                    file.write(json.dumps([*trial, results[trial]]) + "\n")
    return summarise(results)


def summarise(results: dict[Trial, float]) -> list[Measurement]:
    """Return a candidate's mean over the sets, for each stage and rate and for both rates together: its score."""
    rows = []
    for (stage, seeds), name in product((("screening", SCREENING), ("confirming", CONFIRMING)), CANDIDATES):
        means = [_mean(results, name, rate, seeds) for rate in RATES]
        for rate, mean in zip(("1e-3", "1e-2", "score"), (*means, statistics.fmean(means)), strict=True):
            if not math.isnan(mean):
                rows.append(Measurement(f"{stage}, {name}: {rate}", mean, "%"))
    return rows


def _mean(results: dict[Trial, float], candidate: str, rate: float, seeds: range) -> float:
    trials = [Trial(candidate, name, rate, seed) for name, seed in product(SETS, seeds)]
    return statistics.fmean(results[trial] for trial in trials) if all(t in results for t in trials) else math.nan


def _read_record() -> dict[Trial, float]:
    rows = map(json.loads, RECORD.read_text().splitlines()) if RECORD.exists() else ()
    return {Trial(*row[:-1]): row[-1] for row in rows}
