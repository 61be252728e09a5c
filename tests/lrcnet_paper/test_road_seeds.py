"""Roads of different purposes never meet, and stored results keep their roads."""

import itertools

import pytest

from lrcnet_paper import road_seeds
from lrcnet_paper.road_seeds import RANGES, first_seeds, split_roads


def test_no_road_serves_two_purposes() -> None:
    for (one, first), (other, second) in itertools.combinations(RANGES.items(), 2):
        assert first.stop <= second.start or second.stop <= first.start, f"{one} and {other} share roads"


def test_every_range_is_listed_and_has_a_purpose_of_its_own() -> None:
    defined = [value for name, value in vars(road_seeds).items() if isinstance(value, range)]
    assert sorted(map(id, defined)) == sorted(map(id, RANGES.values()))


def test_the_numbers_are_those_of_the_stored_results() -> None:
    assert {purpose: seeds.start for purpose, seeds in RANGES.items()} == {
        "training": 0,
        "validation": 10_000_000,
        "test": 20_000_000,
        "attention scenes": 21_000_000,
        "attention examples": 22_000_000,
        "neuron drives": 23_000_000,
        "closed loop": 50_000_000,
        "other worlds": 60_000_000,
    }
    assert road_seeds.EXAMPLE_ROAD == 22_000_017


def test_splits_share_no_road() -> None:
    roads = split_roads(100, 20, 20)
    assert [len(part) for part in roads.values()] == [100, 20, 20]
    assert len({road for part in roads.values() for road in part}) == 140


def test_a_split_cannot_run_into_the_roads_of_another_purpose() -> None:
    with pytest.raises(ValueError, match="count must be at most 1000000"):
        first_seeds(road_seeds.TEST, 10**6 + 1)
