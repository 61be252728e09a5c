"""Predictions beside the truth, and their measures: accuracy, errors, calibration, and the weight of each channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from lrcnet.data import Array, Floats
from lrcnet.own_data.schema import Schema


@dataclass(frozen=True)
class Predictions:
    """Predictions of test data.

    Attributes:
        truth: (N,) codes of classes, (N,) numbers, or (N, channels) readings; NaN where unknown.
        predicted: (N, classes) probabilities, (N,) numbers, or (N, channels).
    """

    truth: Array
    predicted: Floats


def measure(schema: Schema, result: Predictions, scale: Floats | None = None) -> dict[str, float]:
    """Return the measures of predictions by name; errors of forecasts are in units of `scale`, one per channel."""
    if schema.task == "classification":
        counts = confusion(schema, result)
        classes = np.arange(len(schema.classes))
        present = counts.sum(1) > 0
        measures = {
            "accuracy": float(np.trace(counts) / counts.sum()),
            "balanced accuracy": float((np.diag(counts)[present] / counts.sum(1)[present]).mean()),
            "log loss": float(log_loss(result.truth, result.predicted, labels=classes)),
        }
        if len(classes) == 2 and present.all():
            measures["ROC AUC"] = float(roc_auc_score(result.truth, result.predicted[:, 1]))
        return measures
    error = (result.predicted - result.truth) / (1.0 if scale is None else scale)
    centred = (result.truth - np.nanmean(result.truth, 0)) / (1.0 if scale is None else scale)
    spread = float(np.nanmean(centred**2))
    mean_square = float(np.nanmean(error**2))
    return {
        "RMSE": mean_square**0.5,
        "MAE": float(np.nanmean(np.abs(error))),
        "R2": 1 - mean_square / spread if spread else float("nan"),
    }


def scores(schema: Schema, result: Predictions, scale: Floats | None = None) -> Floats:
    """Return a score of each test example, the higher the better: 1 if its class is right, or minus its squared error.

    The mean of the scores is the main measure, or minus its square. For balanced classes, a right answer counts the
    more, the rarer its class is.

    Returns:
        (N,), for forecasts (N, channels); NaN where the truth is unknown.
    """
    if schema.task == "classification":
        points: Floats = (result.predicted.argmax(1) == result.truth).astype(np.float64)
        if schema.balanced:
            counts = np.bincount(result.truth)
            points *= len(points) / (np.count_nonzero(counts) * counts[result.truth])
        return points
    points = -(((result.predicted - result.truth) / (1.0 if scale is None else scale)) ** 2)
    return points


def standard_error_of_mean(values: Floats, series: Array) -> float:
    """Return the standard error of the mean of values that belong to series.

    Readings of one series resemble each other, so that only whole series count as independent. A single series leaves
    no choice but to count its readings.

    Args:
        values: (N,) or (N, k); NaN where unknown.
        series: (N,), the number of the series of each row.
    """
    known = ~np.isnan(values)
    rows = np.where(known, values - np.nanmean(values), 0).reshape(len(values), -1).sum(1)
    groups = np.unique(series, return_inverse=True)[1]
    sums = np.bincount(groups, rows) if groups.max() else rows
    return float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)) / known.sum())


def standard_error(schema: Schema, values: Floats, series: Array) -> float:
    """Return the standard error of the main measure, from the `scores` of the test examples."""
    error = standard_error_of_mean(values, series)
    # The error of a root is that of the mean square, divided by twice the root.
    return error if schema.task == "classification" else error / max(2 * np.sqrt(-np.nanmean(values)), 1e-12)


def confusion(schema: Schema, result: Predictions) -> Array:
    """Return the number of examples (truth, prediction) of each pair of classes."""
    size = len(schema.classes)
    counts: Array = np.bincount(result.truth * size + result.predicted.argmax(1), minlength=size**2)
    return counts.reshape(size, size)


def calibration(result: Predictions, groups: int = 10, fewest: int = 10) -> list[tuple[float, float, float]]:
    """Compare the probability of answers with how often they are right, in groups of equal size.

    Groups of equal size rather than equal width: most answers are sure, and a share of two or three means nothing.

    Args:
        result: predictions of classes.
        groups: largest number of groups.
        fewest: smallest number of examples of a group.

    Returns:
        Of each group, by rising probability: its mean probability, the share of right answers, its standard error.
    """
    confidence = result.predicted.max(1)
    right = result.predicted.argmax(1) == result.truth
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, int(np.clip(len(order) // fewest, 1, groups)))
    return [
        (float(confidence[one].mean()), float(right[one].mean()), float(right[one].std() / np.sqrt(len(one))))
        for one in parts
    ]


def channel_weights(
    schema: Schema, values: list[Floats], predict: Callable[[list[Floats]], Predictions], seed: int, scale: Any = None
) -> dict[str, float]:
    """Return how much the main measure suffers if a channel's values are mixed up among all readings.

    Args:
        values: of the test series.
        predict: returns the predictions for changed values.
    """
    rng = np.random.default_rng(seed)
    name, sign = schema.main_measure
    before = measure(schema, predict(values), scale)[name]
    weights = {}
    ends = np.cumsum([len(one) for one in values])[:-1]
    columns = {column: [i] for i, column in enumerate(schema.numeric)}
    place = len(schema.numeric)
    for column, categories in schema.categorical.items():
        columns[column] = list(range(place, place + len(categories)))
        place += len(categories)
    for column, places in columns.items():
        mixed = np.concatenate(values).copy()
        mixed[:, places] = mixed[rng.permutation(len(mixed))][:, places]
        weights[column] = sign * (before - measure(schema, predict(np.split(mixed, ends)), scale)[name])
    return weights
