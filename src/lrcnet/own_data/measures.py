"""Predictions beside the truth, and their measures: accuracy, errors, calibration, and the weight of each channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, log_loss

from lrcnet.data import Array, Floats
from lrcnet.own_data.schema import Schema

# The first measure of each task decides which model is better; the sign says whether more is better.
MAIN = {"classification": ("accuracy", 1), "regression": ("RMSE", -1), "forecast": ("RMSE", -1)}


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
        codes = result.predicted.argmax(1)
        classes = np.arange(len(schema.classes))
        return {
            "accuracy": float((codes == result.truth).mean()),
            "balanced accuracy": float(balanced_accuracy_score(result.truth, codes)),
            "log loss": float(log_loss(result.truth, result.predicted, labels=classes)),
        }
    error = (result.predicted - result.truth) / (1.0 if scale is None else scale)
    centred = (result.truth - np.nanmean(result.truth, 0)) / (1.0 if scale is None else scale)
    spread = float(np.nanmean(centred**2))
    mean_square = float(np.nanmean(error**2))
    return {
        "RMSE": mean_square**0.5,
        "MAE": float(np.nanmean(np.abs(error))),
        "R2": 1 - mean_square / spread if spread else float("nan"),
    }


def standard_error(schema: Schema, result: Predictions, scale: Floats | None = None) -> float:
    """Return the standard error of the first measure over the test examples."""
    if schema.task == "classification":
        right = result.predicted.argmax(1) == result.truth
        return float(right.std() / np.sqrt(len(right)))
    square = ((result.predicted - result.truth) / (1.0 if scale is None else scale)) ** 2
    square = square[~np.isnan(square)]
    # The error of a root is that of the mean square, divided by twice the root.
    return float(square.std() / np.sqrt(len(square)) / (2 * np.sqrt(square.mean()))) if square.any() else 0.0


def confusion(schema: Schema, result: Predictions) -> Array:
    """Return the number of examples (truth, prediction) of each pair of classes."""
    size = len(schema.classes)
    counts: Array = np.bincount(result.truth * size + result.predicted.argmax(1), minlength=size**2)
    return counts.reshape(size, size)


def calibration(result: Predictions, bins: int = 10) -> list[tuple[float, float, int]]:
    """Return, for each bin of the highest probability: its mean, the share of right answers, the number of examples."""
    confidence = result.predicted.max(1)
    right = result.predicted.argmax(1) == result.truth
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    return [
        (float(confidence[places == i].mean()), float(right[places == i].mean()), int((places == i).sum()))
        for i in range(bins)
        if (places == i).any()
    ]


def channel_weights(
    schema: Schema, values: list[Floats], predict: Callable[[list[Floats]], Predictions], seed: int, scale: Any = None
) -> dict[str, float]:
    """Return how much the first measure suffers if a channel's values are mixed up among all readings.

    Args:
        values: of the test series.
        predict: returns the predictions for changed values.
    """
    rng = np.random.default_rng(seed)
    name, sign = MAIN[schema.task]
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
