"""The tables of `lrcnet bench learning-archive`: every layer beside a GRU, at each rate, at its best, by optimiser."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from lrcnet.pages.content import Cell, Table
from lrcnet.pages.tables import to_markdown
from lrcnet_paper import archive_sets
from lrcnet_paper.benchmarks import learning_archive as archive

SHAPES = {
    "ItalyPowerDemand": "24 x 1",
    "JapaneseVowels": "7 to 29 x 12",
    "FingerMovements": "50 x 28",
    "BasicMotions": "100 x 6",
    "GunPoint": "150 x 1",
    "ArrowHead": "251 x 1",
    "Coffee": "286 x 1",
    "PickupGestureWiimoteZ": "29 to 361 x 1",
    "HandMovementDirection": "400 x 10",
    "OSULeaf": "427 x 1",
    "ACSF1": "1460 x 1",
    "Recall": "40 x 5",
    "Adding": "30 x 2",
    "BreastCancer": "30 x 1",
    "Iris": "4 x 1",
    "CylinderBellFunnel": "128 x 1",
    "Autoregression": "50 x 1",
    "Chirp": "64 x 1",
    "EventOrder": "40 x 2",
    "Strokes": "40 x 2",
    "Spirals": "40 x 2",
    "Lorenz": "60 x 1",
    "LinearSystems": "30 x 12",
    "Gestures": "50 x 3",
}
"""set -> steps x channels; a test compares them with the sets that are installed."""
LEARNED = 90.0
"""A GRU above this accuracy in % has learned a set."""
PAPER = "LRCU-S, paper"
NAMES = {PAPER: 'LRCU-S, init="paper"'}
RATE_LAYERS = archive.AT_ALL_RATES

HEAD = """# Learning: every measurement

How liquid layers learn at ordinary rates, beside `torch.nn.GRU` and `torch.nn.LSTM`. [Training liquid
networks](learning.md) says what follows from these numbers. Each network has {units} units and a linear read-out of its
last output, and is trained for {updates} updates of {batch} sequences: few, so that slow learning shows. A number
is the mean test accuracy (%) over {seeds} seeds; where fewer are finished, their number stands beside it.

    {install}    # for their data files only
    lrcnet bench learning-archive                 # about six core-hours; continues after an interruption

[learning.jsonl](benchmarks/learning.jsonl) has every training; the command continues from a copy of it in the working
directory. `python tools/learning_page.py` writes this page from it.

![Accuracy over the learning rate of Adam: LRCU with both initial values, GRU and LSTM](images/learning.png)
"""

Results = dict[archive.Training, float]


def read_record(path: Path) -> Results:
    """Read the trainings of a record, without those of former defaults."""
    rows = (json.loads(line) for line in path.read_text().splitlines())
    return {archive.Training(*row[:-1]): row[-1] for row in rows if row[1] in archive.LAYERS}


def make_page(results: Results) -> str:
    """Return the page in Markdown."""
    head = HEAD.format(
        units=archive.UNITS,
        updates=archive.UPDATES,
        batch=archive.BATCH,
        seeds=archive.SEEDS,
        install=archive_sets.INSTALL,
    )
    return "\n\n".join([head.rstrip(), *(to_markdown(table) for table in make_tables(results))]) + "\n"


def make_tables(results: Results) -> list[Table]:
    """Return the tables of all comparisons."""
    return [
        _usual_rate(results),
        _held_out(results),
        _best_rates(results, archive.SETS, RATE_LAYERS, "The best rate of Adam for each layer"),
        _best_rates(results, archive.HELD_OUT, ("GRU", "LRCU-S"), "The best rate of Adam on held-out sets"),
        _all_rates(results),
        _optimisers(results),
    ]


def _usual_rate(results: Results) -> Table:
    layers = list(archive.LAYERS)
    sets = [name for name in archive.SETS if not math.isnan(_mean(results, name, "GRU"))]
    rows: list[tuple[Cell, ...]] = [
        (name, SHAPES[name], *(_cell(results, name, layer) for layer in layers)) for name in sets
    ]
    return Table(
        "usual",
        f"All layers at Adam's usual rate of {archive.USUAL_RATE:g}",
        ("set", "steps x channels", *(NAMES.get(layer, layer) for layer in layers)),
        [*rows, *_difference_rows(results, sets, layers)],
        note="Differences are paired set by set; their interval is Student's over the sets.",
    )


def _difference_rows(results: Results, sets: Sequence[str], layers: Sequence[str]) -> list[tuple[Cell, ...]]:
    means: list[Cell] = ["mean difference to the GRU", ""]
    intervals: list[Cell] = ["its 95 % interval", ""]
    for layer in layers:
        pairs = [(_mean(results, name, layer), _mean(results, name, "GRU")) for name in sets]
        pairs = [pair for pair in pairs if not math.isnan(sum(pair))]
        if layer == "GRU" or not pairs:
            means.append("")
            intervals.append("")
            continue
        mean, half = archive.paired_difference(pairs)
        means.append(f"{mean:+.1f}")
        intervals.append(f"{mean - half:+.1f} to {mean + half:+.1f}")
    return [tuple(means), tuple(intervals)]


def _held_out(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    pairs = {}
    for name in archive.HELD_OUT:
        ours, gru = _mean(results, name, "LRCU-S"), _mean(results, name, "GRU")
        if not math.isnan(ours + gru):
            pairs[name] = (ours, gru)
            cells = (_cell(results, name, layer) for layer in ("GRU", "LRCU-S"))
            rows.append((name, SHAPES[name], *cells, f"{ours - gru:+.1f}"))
    learned = [pair for pair in pairs.values() if pair[1] > LEARNED]
    groups = {f"{len(pairs)} sets": list(pairs.values()), f"the {len(learned)} that the GRU has learned": learned}
    for title, group in groups.items():
        if group:
            mean, half = archive.paired_difference(group)
            interval = f"{mean:+.1f} ({mean - half:+.1f} to {mean + half:+.1f})"
            rows.append((f"mean difference, 95 % interval: {title}", "", "", "", interval))
    return Table(
        "held-out",
        f"Sets on which no default was chosen, Adam {archive.USUAL_RATE:g}",
        ("set", "steps x channels", "GRU", "LRCU-S", "difference"),
        rows,
        note="Every seed draws other samples or another split. Tables of scikit-learn are read as sequences with one "
        f"feature per step; the other sets are generated. A GRU above {LEARNED:g} % has learned a set.",
    )


def _best_rates(results: Results, choice: Sequence[str], layers: Sequence[str], title: str) -> Table:
    """Return the best rate of each layer on the sets that have results of all layers at every rate."""
    means = {
        (name, layer, rate): _mean(results, name, layer, rate)
        for name in choice
        for layer in layers
        for rate in archive.RATES
    }
    sets = [
        name
        for name in choice
        if not any(math.isnan(means[name, layer, rate]) for layer in layers for rate in archive.RATES)
    ]
    best = {
        (name, layer): max((means[name, layer, rate], rate) for rate in archive.RATES)
        for name in sets
        for layer in layers
    }
    rows: list[tuple[Cell, ...]] = [
        (name, *("{:.1f} at {:g}".format(*best[name, layer]) for layer in layers)) for name in sets
    ]
    if sets:
        overall = {
            layer: max((fmean(means[name, layer, rate] for name in sets), rate) for rate in archive.RATES)
            for layer in layers
        }
        rows.append(("mean, one rate for all sets", *("{:.1f} at {:g}".format(*overall[layer]) for layer in layers)))
        each = (f"{fmean(best[name, layer][0] for name in sets):.1f}" for layer in layers)
        rows.append(("mean, each set at its best rate", *each))
    columns = ("set", *(NAMES.get(layer, layer) for layer in layers))
    note = f"Best of {', '.join(f'{rate:g}' for rate in archive.RATES)} by test accuracy."
    return Table("best", title, columns, rows, note=note)


def _all_rates(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, NAMES.get(layer, layer), *(_cell(results, name, layer, rate) for rate in archive.RATES))
        for name in archive.SETS
        for layer in RATE_LAYERS
        if sum(not math.isnan(_mean(results, name, layer, rate)) for rate in archive.RATES) > 1
    ]
    columns = ("set", "layer", *(f"{rate:g}" for rate in archive.RATES))
    return Table("rates", "Accuracy over the rate of Adam", columns, rows, row_headers=2)


def _optimisers(results: Results) -> Table:
    choices = [("Adam", archive.USUAL_RATE)]
    choices += [(name, rate) for name, rates in archive.OTHER_OPTIMISERS.items() for rate in rates]
    layers = ("GRU", "LRCU-S", PAPER)
    rows: list[tuple[Cell, ...]] = [
        (
            f"{optimiser} {rate:g}",
            *(_cell(results, name, layer, rate, optimiser) for name in archive.OPTIMISER_SETS for layer in layers),
        )
        for optimiser, rate in choices
    ]
    columns = (f"{name}: {NAMES.get(layer, layer)}" for name in archive.OPTIMISER_SETS for layer in layers)
    note = "SGD has a momentum of 0.9."
    return Table("optimisers", "Other optimisers", ("optimiser and rate", *columns), rows, note=note)


def _mean(results: Results, name: str, layer: str, rate: float = archive.USUAL_RATE, optimiser: str = "Adam") -> float:
    return archive.mean_accuracy(results, name, layer, rate, optimiser)


def _cell(results: Results, name: str, layer: str, rate: float = archive.USUAL_RATE, optimiser: str = "Adam") -> Cell:
    mean = _mean(results, name, layer, rate, optimiser)
    if math.isnan(mean):
        return None
    seeds = range(archive.SEEDS)
    count = sum(archive.Training(name, layer, rate, seed, optimiser) in results for seed in seeds)
    return f"{mean:.1f}" if count == archive.SEEDS else f"{mean:.1f} ({count})"
