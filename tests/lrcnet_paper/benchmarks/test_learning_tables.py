"""The page of measurements says what its record says."""

from pathlib import Path

import pytest

from lrcnet_paper import archive_sets
from lrcnet_paper.benchmarks import learning_archive as archive
from lrcnet_paper.benchmarks import learning_tables

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_written_from_its_record() -> None:
    results = learning_tables.read_record(DOCS / "benchmarks" / "learning.jsonl")
    written = (DOCS / "learning-measurements.md").read_text()
    assert written == learning_tables.make_page(results), "run `python tools/learning_page.py`"


def test_a_mean_over_fewer_seeds_says_so_and_a_missing_one_is_a_dash() -> None:
    results = {archive.Training("GunPoint", "GRU", 1e-3, seed): 50.0 + seed for seed in range(archive.SEEDS)}
    results[archive.Training("GunPoint", "LRCU-S", 1e-3, 3)] = 91.25
    usual = learning_tables.make_tables(results)[0]
    row = dict(zip(usual.columns, usual.rows[0], strict=True))
    assert (row["set"], row["GRU"], row["LRCU-S"], row["LSTM"]) == ("GunPoint", "52.0", "91.2 (1)", None)
    difference = dict(zip(usual.columns, usual.rows[-2], strict=True))
    assert (difference["LRCU-S"], difference["LSTM"]) == ("+39.2", "")


def test_the_best_rates_are_those_of_sets_with_every_rate() -> None:
    results = {
        archive.Training("GunPoint", layer, rate, 0): 60.0 + i
        for layer in learning_tables.RATE_LAYERS
        for i, rate in enumerate(archive.RATES)
    }
    results[archive.Training("Coffee", "GRU", 1e-3, 0)] = 70.0
    best = next(table for table in learning_tables.make_tables(results) if table.name == "best")
    assert best.rows[0] == ("GunPoint", *["64.0 at 0.03"] * len(learning_tables.RATE_LAYERS))
    assert [row[0] for row in best.rows[1:]] == [
        "mean, one rate for all sets",
        "mean, each set at its best rate",
    ]


@pytest.mark.parametrize("name", [*archive.SETS, *archive.HELD_OUT])
def test_the_shape_of_a_set_is_the_printed_one(name: str) -> None:
    if name in archive.SETS and archive_sets.find(name) is None:
        pytest.skip(f"{name} is in none of the installed packages; {archive_sets.INSTALL}")
    data = archive.load(name, 0)
    lengths = [int(n) for half in (data.train, data.test) for n in half.lengths]
    steps = f"{min(lengths)} to {max(lengths)}" if min(lengths) < max(lengths) else f"{max(lengths)}"
    assert learning_tables.SHAPES[name] == f"{steps} x {data.train.x.shape[-1]}"
