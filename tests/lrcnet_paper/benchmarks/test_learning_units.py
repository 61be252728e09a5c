"""The comparison behind the units of the letters: its record is complete, and the library uses the unit that won."""

from pathlib import Path

import pytest

from lrcnet.circuit import LETTERS
from lrcnet_paper.benchmarks import learning_units

CHOSEN = "k 1, a 2"


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> dict[learning_units.Trial, float]:
    monkeypatch.chdir(Path(__file__).parents[3] / "docs" / "benchmarks")
    return learning_units._read_record()


def test_the_library_uses_the_units_of_the_chosen_candidate() -> None:
    chosen = learning_units.CANDIDATES[CHOSEN]
    assert {name: letter.unit for name, letter in LETTERS.items()} == {name: chosen.get(name, 1) for name in LETTERS}


def test_every_planned_training_is_recorded(results: dict[learning_units.Trial, float]) -> None:
    assert set(learning_units.plan()) == set(results)


def test_the_chosen_candidate_wins_by_the_declared_rule(results: dict[learning_units.Trial, float]) -> None:
    values = {row.what: row.value for row in learning_units.summarise(results)}
    score = {name: values[f"screening, {name}: score"] for name in learning_units.CANDIDATES}
    best = sorted(score, key=score.__getitem__)[-2:]
    assert max(best, key=lambda name: values[f"confirming, {name}: score"]) == CHOSEN
    for what, least in (("score", 0.0), ("1e-3", -0.5)):
        assert values[f"confirming, {CHOSEN}: {what}"] > values[f"confirming, former units: {what}"] + least
