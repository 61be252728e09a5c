"""Models to compare with: an LSTM of equal size, gradient boosting on summary features, and a guess without a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from lrcnet.data import Array, Floats, fill_missing
from lrcnet.estimators.series import Series
from lrcnet.own_data.measures import Predictions
from lrcnet.own_data.schema import Schema
from lrcnet.own_data.split import Split

LAGS = 5
# More rows than this make the trees slower, not better.
MOST_ROWS = 20_000


def count_parameters(model: Any) -> int:
    """Return the number of values that training changes."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def units_of_equal_lstm(parameters: int, inputs: int, outputs: int) -> int:
    """Return the number of units with which an LSTM and its read-out come nearest to a number of parameters."""

    def size(units: int) -> int:
        return 4 * units * (inputs + units + 2) + outputs * (units + 1)

    return min(range(1, 1025), key=lambda units: abs(size(units) - parameters))


def boost(schema: Schema, split: Split, seed: int) -> Predictions:
    """Fit gradient boosting to the training data and predict the test data."""
    rng = np.random.default_rng(seed)
    training, test = split.training, split.test
    if schema.task == "forecast":
        return _boost_forecasts(split, seed, rng)
    features = _features_per_reading if schema.per_reading else _summaries
    x, x_test = features(training.series), features(test.series)
    y, truth = (np.concatenate(r.targets) if schema.per_reading else r.targets for r in (training, test))
    rows = rng.permutation(len(x))[:MOST_ROWS]
    if schema.task == "regression":
        tree = HistGradientBoostingRegressor(random_state=seed, min_samples_leaf=_leaf(rows)).fit(x[rows], y[rows])
        return Predictions(truth, tree.predict(x_test))
    weights = "balanced" if schema.balanced else None
    model = HistGradientBoostingClassifier(random_state=seed, class_weight=weights, min_samples_leaf=_leaf(rows))
    model.fit(x[rows], y[rows])
    shares = np.zeros((len(x_test), len(schema.classes)))
    shares[:, np.searchsorted(schema.classes, model.classes_)] = model.predict_proba(x_test)
    return Predictions(np.searchsorted(schema.classes, truth), shares)


def _leaf(rows: Array) -> int:
    """Return the least number of rows in a leaf: scikit-learn's 20 leave a tree of few rows no split at all."""
    return int(np.clip(len(rows) // 20, 2, 20))


def guess(schema: Schema, split: Split) -> tuple[str, Predictions]:
    """Return the name and the predictions of the best guess without a model."""
    if schema.task == "forecast":
        truth, parts = forecast_truth(split), []
        for one, start in zip(split.test.series.values, split.starts or [], strict=True):
            parts.append(fill_missing(one, _mean(one))[0][start - 1 : -1])
        return "the last reading again", Predictions(truth, np.concatenate(parts))
    known, truth = (
        np.concatenate(r.targets) if schema.per_reading else r.targets for r in (split.training, split.test)
    )
    if schema.task == "regression":
        return "always the mean", Predictions(truth, np.full(len(truth), known.mean()))
    counts = np.array([(known == name).mean() for name in schema.classes])
    codes = np.searchsorted(schema.classes, truth)
    return "always the most frequent class", Predictions(codes, np.tile(counts, (len(truth), 1)))


def forecast_truth(split: Split) -> Floats:
    """Return the readings (N, channels) that are to be forecast."""
    assert split.starts is not None
    return np.concatenate([one[start:] for one, start in zip(split.test.series.values, split.starts, strict=True)])


def _summaries(series: Series) -> Array:
    """Return features (series, features): moments, ends and slope of each channel, missing share, length, gaps."""
    rows = []
    gaps = series.gaps()
    for i, one in enumerate(series.values):
        filled, measured = fill_missing(one, _mean(one))
        steps = np.arange(len(one)) - (len(one) - 1) / 2
        slope = steps @ filled / max(float(steps @ steps), 1.0)
        parts = [_mean(filled), filled.std(0), filled.min(0), filled.max(0), filled[0], filled[-1], slope]
        extra = [len(one), 0.0 if gaps is None else gaps[i].sum(), 0.0 if gaps is None else np.median(gaps[i])]
        rows.append(np.concatenate([*parts, 1 - measured.mean(0), extra]))
    return np.stack(rows)


def _features_per_reading(series: Series) -> Array:
    """Return features (readings, features): this reading, the one before, the mean so far, the gap, the number."""
    rows = []
    gaps = series.gaps()
    for i, one in enumerate(series.values):
        filled, measured = fill_missing(one, _mean(one))
        before = np.concatenate([filled[:1], filled[:-1]])
        numbers = np.arange(1, len(one) + 1)[:, None]
        gap = np.zeros((len(one), 1)) if gaps is None else gaps[i][:, None]
        rows.append(np.concatenate([filled, before, filled.cumsum(0) / numbers, measured, gap, numbers], 1))
    return np.concatenate(rows)


def _boost_forecasts(split: Split, seed: int, rng: np.random.Generator) -> Predictions:
    x, y, last = _lags(split.training.series, [1] * len(split.training.series))
    x_test, _, last_test = _lags(split.test.series, split.starts or [])
    predicted = np.array(last_test)
    for channel in range(y.shape[1]):
        known = rng.permutation(np.flatnonzero(~np.isnan(y[:, channel])))[:MOST_ROWS]
        if len(known):
            model = HistGradientBoostingRegressor(random_state=seed, min_samples_leaf=_leaf(known))
            model.fit(x[known], (y - last)[known, channel])
            predicted[:, channel] += model.predict(x_test)
    return Predictions(forecast_truth(split), predicted)


def _lags(series: Series, starts: list[int]) -> tuple[Array, Array, Array]:
    """Return features of the readings before each reading from `starts` on, the reading, and the last one before it."""
    features, targets, last = [], [], []
    gaps = series.gaps()
    for i, (one, start) in enumerate(zip(series.values, starts, strict=True)):
        filled, _ = fill_missing(one, _mean(one))
        padded = np.concatenate([np.repeat(filled[:1], LAGS, 0), filled])
        columns = [padded[LAGS - lag : LAGS - lag + len(one)] for lag in range(1, LAGS + 1)]
        columns.append(np.zeros((len(one), 1)) if gaps is None else gaps[i][:, None])
        features.append(np.concatenate(columns, 1)[start:])
        targets.append(one[start:])
        last.append(columns[0][start:])
    return np.concatenate(features), np.concatenate(targets), np.concatenate(last)


def _mean(values: Floats) -> Floats:
    """Return the mean of each channel's known values; 0 without any."""
    known = ~np.isnan(values)
    mean: Floats = np.where(known, values, 0).sum(0) / np.maximum(known.sum(0), 1)
    return mean
