"""Every form in which series may come: arrays, lists, tables, with times, missing values and targets per reading."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import lrcnet
from lrcnet.estimators import LiquidClassifier, LiquidForecaster, LiquidRegressor
from lrcnet.estimators.wirings import WIRINGS
from lrcnet.export import generate_c

FAST: Any = {"units": 6, "epochs": 4, "random_state": 0}
rng = np.random.default_rng(0)


def series(count: int = 24) -> tuple[list[Any], list[Any], Any]:
    """Return series of unequal length and two channels, their times, and classes."""
    y = np.arange(count) % 2
    lengths = rng.integers(3, 9, count)
    values = [rng.normal(size=(length, 2)) + 3 * label for length, label in zip(lengths, y, strict=True)]
    times = [np.cumsum(rng.uniform(0.1, 2, length)) for length in lengths]
    return values, times, y


def table(values: list[Any], times: list[Any], y: Any) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"id": f"s{i}", "time": t, "a": x[:, 0], "b": x[:, 1], "label": y[i]})
        for i, (x, t) in enumerate(zip(values, times, strict=True))
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("cell", lrcnet.LAYERS)
def test_every_layer_takes_irregular_series_by_its_name(cell: str) -> None:
    values, times, y = series()
    estimator = LiquidClassifier(cell, **FAST).fit(values, y, times)
    assert estimator.predict_proba(values, times).shape == (24, 2)


@pytest.mark.parametrize("cell", ["lrc", "cfc"])
def test_a_wiring_sets_the_units(cell: str) -> None:
    values, times, y = series()
    wiring = lrcnet.wirings.AutoNCP(12, 3)
    estimator = LiquidClassifier(cell, layer_options={"wiring": wiring}, epochs=2, random_state=0)
    estimator.fit(values, y, times)
    assert estimator.module_.layer.hidden_size == 12
    assert estimator.module_.width == 3
    assert estimator.predict(values, times).shape == (24,)


@pytest.mark.parametrize("name", WIRINGS)
def test_a_wiring_by_name_has_the_units_and_can_be_searched(name: str) -> None:
    values, times, y = series()
    estimator = LiquidClassifier("lrc", units=12, layer_options={"wiring": name}, epochs=2, random_state=0)
    layer = clone(estimator).fit(values, y, times).module_.layer
    assert layer.wiring.units == 12
    assert layer.cells[0].output_size == (3 if name == "auto-ncp" else 12)


def test_an_unknown_wiring_gets_the_valid_names() -> None:
    with pytest.raises(ValueError, match="wiring must be one of auto-ncp, fully-connected, random, but is 'ncp'"):
        LiquidClassifier(layer_options={"wiring": "ncp"}).fit(np.zeros((4, 3, 1)), [0, 1, 0, 1])


def test_times_of_arrays_are_named_by_series_and_reading() -> None:
    with pytest.raises(ValueError, match=r"^the times of series 1 must increase .*, but reading 3 repeats"):
        LiquidClassifier().fit(np.zeros((2, 3, 1)), [0, 1], [[0, 1, 2], [0, 1, 1]])


def test_times_come_with_new_series_if_they_came_in_training() -> None:
    values, times, y = series()
    with pytest.raises(ValueError, match="trained with times of readings, but none are given now; pass times too"):
        LiquidClassifier(**FAST).fit(values, y, times).predict(values)
    with pytest.raises(ValueError, match="trained without times of readings, but some are given now; leave them out"):
        LiquidClassifier(**FAST).fit(values, y).predict(values, times)


def test_a_fitted_estimator_is_exported_and_streams_as_it_is() -> None:
    values, times, y = series()
    estimator = LiquidClassifier(**FAST)
    with pytest.raises(ValueError, match="needs a fitted estimator of lrcnet, but this LiquidClassifier"):
        generate_c(estimator)
    estimator.fit(values, y, times)
    assert generate_c(estimator).source == generate_c(estimator.module_).source
    stream = lrcnet.Stream(estimator)
    answers = [stream(reading, moment) for reading, moment in zip(values[0], times[0], strict=True)]
    shares = torch.softmax(answers[-1], -1).numpy()
    np.testing.assert_allclose(shares, estimator.predict_proba(values[:1], times[:1])[0], atol=1e-5)


def test_a_long_table_equals_a_list_of_arrays() -> None:
    values, times, y = series()
    frame = table(values, times, y)
    by_list = LiquidClassifier(**FAST).fit(values, y, times)
    columns: Any = {"id_column": "id", "time_column": "time"}
    by_table = LiquidClassifier(**columns, **FAST).fit(frame, "label")
    np.testing.assert_array_equal(by_table.predict_proba(frame), by_list.predict_proba(values, times))
    assert by_table.score(frame, "label") == by_list.score(values, y, times=times)
    np.testing.assert_array_equal(by_table.predict(frame.drop(columns="label")), by_table.predict(frame))


def test_two_dimensions_mean_one_channel() -> None:
    X = rng.normal(size=(24, 7))
    y = X.mean(1)
    flat, deep = LiquidRegressor(**FAST).fit(X, y), LiquidRegressor(**FAST).fit(X[:, :, None], y)
    np.testing.assert_array_equal(flat.predict(X), deep.predict(X[:, :, None]))


def test_the_unit_of_values_and_times_does_not_matter() -> None:
    values, times, y = series(40)
    options = FAST | {"epochs": 15}
    plain = LiquidClassifier(**options).fit(values, y, times)
    other = LiquidClassifier(**options).fit([1000 + 64 * x for x in values], y, [4096 * t for t in times])
    assert plain.score(values, y, times=times) > 0.9
    assert other.score([1000 + 64 * x for x in values], y, times=[4096 * t for t in times]) > 0.9
    assert other.preparation_.time_scale == pytest.approx(4096 * plain.preparation_.time_scale)


def test_dates_are_times() -> None:
    values, times, y = series()
    dates = [np.datetime64("2024-01-01") + (1000 * t).astype("timedelta64[ms]") for t in times]
    estimator = LiquidClassifier(**FAST).fit(values, y, dates)
    assert estimator.preparation_.time_scale == pytest.approx(
        np.median(np.concatenate([np.diff(t) for t in times])), rel=1e-2
    )


@pytest.mark.parametrize("cell", ["lrcu", "gru"])
def test_missing_values_are_masked_and_filled(cell: str) -> None:
    """Whether a value is missing is all that tells the classes apart."""
    values = rng.normal(size=(60, 10, 2))
    y = np.arange(60) % 2
    values[y == 1] = np.where(rng.random((30, 10, 2)) < 0.5, np.nan, values[y == 1])
    estimator = LiquidClassifier(cell, units=8, epochs=40, random_state=0).fit(values, y)
    assert estimator.preparation_.mask
    assert estimator.module_.layer.input_size == 4
    assert estimator.score(values, y) > 0.9
    assert np.isfinite(estimator.predict_proba(np.full((1, 10, 2), np.nan))).all()


def test_targets_per_reading() -> None:
    values, times, _ = series(30)
    labels = [np.where(x[:, 0] > np.median(np.concatenate(values)[:, 0]), "high", "low") for x in values]
    tagger = LiquidClassifier(per_reading=True, units=8, epochs=30, random_state=0).fit(values, labels, times)
    predictions = tagger.predict(values, times)
    assert [len(one) for one in predictions] == [len(one) for one in values]
    assert tagger.score(values, labels, times=times) > 0.85
    numbers = [x[:, 0] * 10 for x in values]
    regressor = LiquidRegressor(per_reading=True, units=8, epochs=60, random_state=0).fit(values, numbers)
    assert regressor.score(values, numbers) > 0.8


def test_forecasts_at_given_times() -> None:
    times = [np.cumsum(rng.uniform(0.5, 1.5, 30)) for _ in range(40)]
    phases = rng.uniform(0, 6, 40)
    waves = [np.sin(t + phase)[:, None] * 5 + 100 for t, phase in zip(times, phases, strict=True)]
    forecaster = LiquidForecaster(steps=3, units=16, epochs=60, random_state=0).fit(waves, times=times)
    assert forecaster.score(waves, times=times) > 0.8
    at = np.stack([t[-1] + [0.7, 1.4, 2.1] for t in times])
    forecasts = forecaster.predict(waves, times=times, at=at)
    assert forecasts.shape == (40, 3, 1)
    truth = np.sin(at + phases[:, None]) * 5 + 100
    assert np.abs(forecasts[:, 0, 0] - truth[:, 0]).mean() < 1.5
    assert forecaster.predict(waves, times=times).shape == (40, 3, 1)


def test_long_series_are_trained_in_windows() -> None:
    wave = np.sin(np.arange(1000) / 5)[None, :, None]
    forecaster = LiquidForecaster(window=50, **FAST).fit(wave)
    assert forecaster.score(wave) > 0.5


def test_partial_results_while_training() -> None:
    values, times, y = series()
    seen: list[tuple[int, float]] = []

    def watch(estimator: Any, record: dict[str, float]) -> None:
        seen.append((len(estimator.history_), estimator.score(values, y, times=times)))

    LiquidClassifier(callback=watch, **FAST).fit(values, y, times)
    assert [count for count, _ in seen] == [1, 2, 3, 4]


def test_an_interrupted_training_leaves_a_network_that_predicts() -> None:
    values, _, y = series()

    def interrupt(estimator: Any, record: dict[str, float]) -> None:
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    estimator = LiquidClassifier(callback=interrupt, **FAST)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(values, y)
    assert len(estimator.history_) == 2
    assert estimator.predict(values).shape == (24,)


def test_training_stops_early_with_the_weights_of_the_best_epoch() -> None:
    X, y = rng.normal(size=(60, 5, 1)), np.arange(60) % 2
    estimator = LiquidClassifier(units=8, epochs=200, patience=5, random_state=0).fit(X, y)
    losses = [record["validation_loss"] for record in estimator.history_]
    assert len(losses) < 200
    assert len(losses) - 1 - int(np.argmin(losses)) <= 5


def test_class_weights_shift_the_decision() -> None:
    X = rng.normal(size=(100, 5, 1))
    y = (np.arange(100) < 10).astype(int)
    rare: Any = {"units": 4, "epochs": 15, "random_state": 0}
    plain = LiquidClassifier(**rare).fit(X, y).predict_proba(X)[:, 1].mean()
    balanced = LiquidClassifier(class_weight="balanced", **rare).fit(X, y).predict_proba(X)[:, 1].mean()
    assert plain < 0.25 < balanced


VALUES, TIMES, LABELS = series(6)
BAD: list[tuple[Any, str]] = [
    (lambda: LiquidClassifier("lrcx").fit(VALUES, LABELS), "cell must be one of ltc, stc, lrc, lrcu"),
    (lambda: LiquidClassifier().fit(VALUES, [1] * 6), "at least two classes, but has one class only"),
    (lambda: LiquidRegressor().fit(VALUES, [1, 2, 3, 4, 5, np.nan]), "target 5 is NaN or infinity"),
    (lambda: LiquidClassifier().fit(VALUES, LABELS[:-1]), "6 series and 5"),
    (lambda: LiquidClassifier().fit([*VALUES[:-1], VALUES[-1][:, :1]], LABELS), r"some have \[1, 2\]"),
    (lambda: LiquidClassifier().fit([*VALUES[:-1], np.full((3, 2), np.inf)], LABELS), "series 5 has an infinite value"),
    (lambda: LiquidClassifier().fit(VALUES, LABELS, TIMES[:-1]), "each of 6 series, but for 5"),
    (
        lambda: LiquidClassifier().fit(VALUES, LABELS, [*TIMES[:-1], TIMES[-1][::-1]]),
        "2 is earlier than reading 1",
    ),
    (lambda: LiquidClassifier().fit(VALUES, LABELS, [*TIMES[:-1], 0 * TIMES[-1]]), "repeats the time of reading 1"),
    (lambda: LiquidClassifier().fit(VALUES, "label"), "id_column is None"),
    (lambda: LiquidClassifier("gru", time_feature=False, epochs=1).fit(VALUES, LABELS, TIMES), "time_feature=True"),
    (
        lambda: LiquidClassifier(**FAST).fit(VALUES, LABELS).predict(VALUES, TIMES),
        "trained without times of readings, but some are given now",
    ),
    (lambda: LiquidClassifier(**FAST).fit(VALUES, LABELS).predict([v[:, :1] for v in VALUES]), "2 channels as in"),
    (lambda: LiquidForecaster().fit([np.ones((1, 1))]), "at least two readings"),
    (lambda: LiquidClassifier(validation_share=1.5).fit(VALUES, LABELS), "validation_share must be"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
