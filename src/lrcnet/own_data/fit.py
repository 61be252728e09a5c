"""From a file to a trained and measured network: understand, split, train, compare.

`folder.py` writes the result, `report.py` draws it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lrcnet.data import Floats
from lrcnet.estimators import LiquidClassifier, LiquidForecaster, LiquidRegressor
from lrcnet.estimators.series import Series
from lrcnet.own_data.encoding import Readings
from lrcnet.own_data.measures import (
    Predictions,
    channel_weights,
    measure,
    scores,
    standard_error,
    standard_error_of_mean,
)
from lrcnet.own_data.rivals import boost, count_parameters, forecast_truth, guess, units_of_equal_lstm
from lrcnet.own_data.schema import Schema
from lrcnet.own_data.split import TEST_SHARE, Split, split
from lrcnet.pages.content import Table


@dataclass(frozen=True)
class Candidate:
    """A model with its measures on the test data, their standard error, and the scores of the test examples."""

    name: str
    parameters: int | None
    measures: dict[str, float]
    error: float
    scores: Floats


@dataclass(frozen=True)
class Fit:
    """A trained network, its rivals, and all that the report shows."""

    schema: Schema
    estimator: Any
    split: Split
    predictions: Predictions
    candidates: list[Candidate]
    weights: dict[str, float]
    lstm_history: list[dict[str, float]] = field(default_factory=list)

    @property
    def scale(self) -> Floats | None:
        """The unit of errors of a forecast: the standard deviation of each channel."""
        return np.array(self.estimator.preparation_.scale) if self.schema.task == "forecast" else None


def describe(schema: Schema, readings: Readings) -> list[str]:
    """Return lines that say what was understood of a table."""
    series = readings.series
    lengths = [len(one) for one in series.values]
    values = np.concatenate(series.values)
    source = f"{schema.layout} table" + ("" if schema.id is None else f", column {schema.id!r}")
    names = ", ".join(schema.channels[:8]) + (" ..." if len(schema.channels) > 8 else "")
    lines = [
        f"series    {len(series):,} ({source}), {min(lengths):,} to {max(lengths):,} readings, {sum(lengths):,} in all",
        f"channels  {len(schema.channels)}: {names}",
    ]
    if schema.left_out:
        lines.append(f"left out  {', '.join(f'{name} ({why})' for name, why in schema.left_out.items())}")
    missing = np.isnan(values).mean()
    filled = f"{missing:.1%} of the values; filled with the last value, and marked by a mask"
    lines.append(f"missing   {filled if missing else 'none'}")
    gaps = series.gaps()
    between = np.concatenate([one[1:] for one in gaps]) if gaps is not None else np.zeros(0)
    if len(between):
        unit = " s" if schema.dates else ""
        lines.append(
            f"gaps      median {np.median(between):.4g}{unit}, from {between.min():.4g} to {between.max():.4g}{unit}"
        )
    else:
        lines.append("gaps      none: readings count as evenly spaced")
    if schema.task == "forecast":
        lines.append("task      forecast of the next reading")
    else:
        every = "reading" if schema.per_reading else "series"
        lines.append(f"task      {schema.task} of column {schema.target!r}, one target per {every}")
    if schema.classes:
        whole = np.concatenate(readings.targets) if schema.per_reading else readings.targets
        shares = ", ".join(f"{name} {(whole == name).mean():.0%}" for name in schema.classes[:10])
        lines.append(f"classes   {len(schema.classes)}: {shares}{' ...' if len(schema.classes) > 10 else ''}")
    return lines


def make_estimator(schema: Schema, cell: str, **options: Any) -> Any:
    """Return the untrained estimator of a task."""
    if schema.task == "forecast":
        return LiquidForecaster(cell, **options)
    kind = LiquidClassifier if schema.task == "classification" else LiquidRegressor
    if schema.balanced:
        options = {**options, "class_weight": "balanced"}
    return kind(cell, per_reading=schema.per_reading, **options)


def train(estimator: Any, schema: Schema, training: Readings) -> Any:
    """Train an estimator on the training part."""
    series = training.series
    if schema.task == "forecast":
        return estimator.fit(series.values, times=series.times)
    return estimator.fit(series.values, training.targets, series.times)


def predict(estimator: Any, schema: Schema, parts: Split, values: list[Floats] | None = None) -> Predictions:
    """Predict the test part, with its own values or with others."""
    test = parts.test
    series = test.series if values is None else Series(values, test.series.times)
    if schema.task == "forecast":
        assert parts.starts is not None
        answers = estimator.forecast_readings(series)
        forecasts = [one[start - 1 : -1] for one, start in zip(answers, parts.starts, strict=True)]
        return Predictions(forecast_truth(parts), np.concatenate(forecasts))
    truth = np.concatenate(test.targets) if schema.per_reading else test.targets
    if schema.task == "regression":
        numbers = estimator.predict(series.values, series.times)
        return Predictions(truth, np.concatenate(list(numbers)) if schema.per_reading else numbers)
    probabilities = estimator.predict_proba(series.values, series.times)
    known = np.concatenate(list(probabilities)) if schema.per_reading else probabilities
    # A class may be missing from the training part, if every reading has one.
    shares = np.zeros((len(known), len(schema.classes)))
    shares[:, np.searchsorted(schema.classes, estimator.classes_)] = known
    return Predictions(np.searchsorted(schema.classes, truth), shares)


def series_of_examples(schema: Schema, parts: Split) -> Any:
    """Return the number of the series of each test example, (N,)."""
    lengths = [len(one) for one in parts.test.series.values]
    if parts.starts is not None:
        counts = [length - start for length, start in zip(lengths, parts.starts, strict=True)]
    else:
        counts = lengths if schema.per_reading else [1] * len(lengths)
    return np.repeat(np.arange(len(counts)), counts)


def fit(
    schema: Schema, readings: Readings, *, cell: str, seed: int, tell: Callable[[str], None], **options: Any
) -> Fit:
    """Train a network and its rivals on a part of the series, and measure all on the rest.

    Args:
        schema, readings: the table.
        cell: the network's layer by its name.
        seed: of the split, of the initial weights and of the order of batches.
        tell: called with a line about each step.
        options: of the estimators, such as units and epochs.
    """
    parts = split(readings, schema, seed)
    count = f"{len(parts.training.ids):,} series, measured on {len(parts.test.ids):,} others"
    if parts.starts is not None:
        count = f"the first {1 - TEST_SHARE:.0%} of each series, measured on the rest"
    tell(f"training on {count}")
    candidates: list[Candidate] = []
    estimator = make_estimator(schema, cell, random_state=seed, **options)
    train(estimator, schema, parts.training)
    scale = np.array(estimator.preparation_.scale) if schema.task == "forecast" else None

    series = series_of_examples(schema, parts)

    def judge(name: str, parameters: int | None, result: Predictions) -> Predictions:
        points = scores(schema, result, scale)
        error = standard_error(schema, points, series)
        candidates.append(Candidate(name, parameters, measure(schema, result, scale), error, points))
        return result

    size = count_parameters(estimator.module_)
    predictions = judge(f"{cell}, {estimator.units} units", size, predict(estimator, schema, parts))
    layer = estimator.module_.layer
    inputs = layer.input_size + int(layer.time_feature)
    units = units_of_equal_lstm(size, inputs, estimator.module_.outputs)
    tell(f"training an LSTM of {units} units beside it")
    lstm = make_estimator(schema, "lstm", random_state=seed, **{**options, "units": units})
    train(lstm, schema, parts.training)
    judge(f"LSTM, {units} units", count_parameters(lstm.module_), predict(lstm, schema, parts))
    tell("fitting gradient boosting to summary features")
    judge("gradient boosting on summary features", None, boost(schema, parts, seed))
    name, result = guess(schema, parts)
    judge(name, None, result)

    def with_values(values: list[Floats]) -> Predictions:
        return predict(estimator, schema, parts, values)

    weights = channel_weights(schema, parts.test.series.values, with_values, seed, scale)
    return Fit(schema, estimator, parts, predictions, candidates, weights, lstm.history_)


def comparison(result: Fit) -> Table:
    """Return the measures of all models as a table."""
    names = list(result.candidates[0].measures)
    rows = [(one.name, one.parameters, *(one.measures[name] for name in names), one.error) for one in result.candidates]
    unit = "Errors are in standard deviations of each channel." if result.schema.task == "forecast" else ""
    return Table(
        "comparison",
        f"On the {len(result.predictions.truth):,} test {'readings' if _counts_readings(result.schema) else 'series'}",
        ("model", "parameters", *names, f"standard error of {result.schema.main_measure[0]}"),
        rows,
        unit,
    )


def verdict(result: Fit) -> str:
    """Return a sentence that says whether a recurrent network is worth it."""
    own, lstm, trees, plain = result.candidates
    series = series_of_examples(result.schema, result.split)

    def gain(one: Candidate) -> float:
        """Return by how many standard errors of the difference the network is better than another model."""
        difference = own.scores - one.scores
        return float(np.nanmean(difference)) / (standard_error_of_mean(difference, series) or 1e-12)

    if gain(trees) < -2:
        return "Gradient boosting on summary features is clearly better: a recurrent network is not worth it here."
    if gain(plain) < 2:
        if _ranks_well(result):
            return (
                "One class is rare: the network tells the classes apart (see ROC AUC), but answers hardly better than "
                "the guess; use its probabilities with a threshold of your own, or fit with --balanced."
            )
        return (
            f"The network is not clearly better than the guess ({plain.name}): the data may not determine the target."
        )
    if gain(trees) < 2:
        return "Gradient boosting on summary features does as well within the noise; it is quicker to train."
    beside = gain(lstm)
    if beside < -2:
        return "A recurrent network is worth it, but the LSTM is clearly better than this one."
    other = "than the LSTM" if beside > 2 else "as good as the LSTM within the noise"
    return (
        "A recurrent network is worth it: it is clearly better than gradient boosting on summary features, and "
        f"{other}."
    )


def _ranks_well(result: Fit) -> bool:
    """Return whether one of two classes is rare, and the probabilities rank the series better than chance would."""
    area = result.candidates[0].measures.get("ROC AUC")
    if area is None or result.schema.per_reading or result.schema.balanced:
        return False
    first, second = np.bincount(result.predictions.truth, minlength=2)
    if 3 * min(first, second) > first + second:
        return False
    # The standard error of the area (Mann and Whitney) if the ranks were random.
    return bool(area - 0.5 > 2 * np.sqrt((first + second + 1) / (12 * first * second)))


def _counts_readings(schema: Schema) -> bool:
    return schema.per_reading or schema.task == "forecast"
