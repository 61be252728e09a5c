"""The models that a network is compared with: each must be able to win."""

import numpy as np

from lrcnet.estimators.series import Series
from lrcnet.own_data.encoding import Readings
from lrcnet.own_data.rivals import boost, guess, units_of_equal_lstm
from lrcnet.own_data.schema import Schema
from lrcnet.own_data.split import split

CLASSES = Schema("long", "classification", False, "id", None, "y", False, ["x"], classes=["a", "b"])


def test_gradient_boosting_learns_from_few_series() -> None:
    rng = np.random.default_rng(0)
    targets = np.array(["a", "b"] * 15)
    values = [rng.normal(size=(8, 1)) + 3 * (name == "b") for name in targets]
    parts = split(Readings(Series(values, None), [str(i) for i in range(30)], None, targets), CLASSES, seed=0)
    result = boost(CLASSES, parts, seed=0)
    assert (result.predicted.argmax(1) == result.truth).all()


def test_a_channel_that_a_series_never_measures_is_no_problem() -> None:
    values = [np.stack([np.arange(20.0), np.full(20, np.nan)], -1), np.random.default_rng(0).normal(size=(20, 2))]
    schema = Schema("long", "forecast", False, "id", None, None, False, ["x", "y"])
    parts = split(Readings(Series(values, None), ["0", "1"], None, None), schema, seed=0)
    for result in (boost(schema, parts, seed=0), guess(schema, parts)[1]):
        assert np.isfinite(result.predicted).all()
        assert np.isnan(result.truth).any()


def test_an_lstm_of_equal_size_has_nearly_as_many_parameters() -> None:
    units = units_of_equal_lstm(6352, 6, 4)
    assert abs(4 * units * (6 + units + 2) + 4 * (units + 1) - 6352) < 4 * (6 + 2 * units + 3) + 4
