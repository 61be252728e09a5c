"""Measures of predictions: their standard errors, which count series rather than readings, and calibration."""

from dataclasses import replace

import numpy as np
import pytest

from lrcnet.own_data.measures import (
    Predictions,
    calibration,
    measure,
    scores,
    standard_error,
    standard_error_of_mean,
)
from lrcnet.own_data.schema import Schema

CLASSES = Schema("long", "classification", False, "id", None, "y", False, ["x"], classes=["a", "b", "c"])
NUMBERS = replace(CLASSES, task="regression", classes=[])


def random_classes(count: int = 200) -> Predictions:
    rng = np.random.default_rng(0)
    return Predictions(rng.choice(3, count, p=[0.7, 0.2, 0.1]), rng.dirichlet(np.ones(3), count))


def test_series_of_equal_length_count_as_their_means() -> None:
    values = np.random.default_rng(0).normal(size=(12, 50)) + np.arange(12)[:, None]
    expected = values.mean(1).std(ddof=1) / np.sqrt(12)
    assert standard_error_of_mean(values.ravel(), np.repeat(np.arange(12), 50)) == pytest.approx(expected)


def test_repeated_readings_do_not_make_a_measure_surer() -> None:
    values, series = np.random.default_rng(0).normal(size=30), np.arange(30)
    once = standard_error_of_mean(values, series)
    assert standard_error_of_mean(np.repeat(values, 100), np.repeat(series, 100)) == pytest.approx(once)
    assert once == pytest.approx(values.std(ddof=1) / np.sqrt(30))


def test_a_single_series_counts_its_readings_and_unknown_values_count_nothing() -> None:
    values = np.random.default_rng(0).normal(size=(40, 1))
    alone = standard_error_of_mean(values, np.zeros(40, int))
    assert alone == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    with_gap = np.concatenate([values, np.full((5, 1), np.nan)])
    assert standard_error_of_mean(with_gap, np.arange(45)) == pytest.approx(
        standard_error_of_mean(values, np.arange(40)), rel=0.02
    )


@pytest.mark.parametrize("balanced", [False, True])
def test_the_mean_score_is_the_main_measure(balanced: bool) -> None:
    schema, result = replace(CLASSES, balanced=balanced), random_classes()
    assert scores(schema, result).mean() == pytest.approx(measure(schema, result)[schema.main_measure[0]])


def test_the_standard_error_of_a_root_mean_square_is_its_spread_over_many_samples() -> None:
    rng = np.random.default_rng(0)
    samples = [Predictions(np.zeros(400), rng.normal(size=400)) for _ in range(300)]
    roots = [measure(NUMBERS, one)["RMSE"] for one in samples]
    error = standard_error(NUMBERS, scores(NUMBERS, samples[0]), np.arange(400))
    assert error == pytest.approx(np.std(roots), rel=0.2)


def test_calibrated_probabilities_lie_on_the_diagonal_in_groups_of_equal_size() -> None:
    rng = np.random.default_rng(0)
    sure = rng.uniform(0.5, 1, 20_000)
    truth = (rng.random(20_000) > sure).astype(int)
    points = calibration(Predictions(truth, np.stack([sure, 1 - sure], 1)))
    assert len(points) == 10
    for probability, share, error in points:
        assert abs(share - probability) < 4 * error
    assert len(calibration(random_classes(35))) == 3
