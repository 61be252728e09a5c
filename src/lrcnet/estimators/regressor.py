"""LiquidRegressor: numbers for whole series, or for every reading."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch import Tensor, nn

from lrcnet.data import Array, real_numbers
from lrcnet.estimators.base import stack_if_even
from lrcnet.estimators.supervised import SupervisedEstimator
from lrcnet.models import Regressor, SequenceModel, Tagger


class LiquidRegressor(RegressorMixin, SupervisedEstimator):  # type: ignore[misc]
    """A recurrent network that estimates numbers of series, or of readings.

    Args:
        cell: see `SeriesEstimator`, also for the options that are not listed here.
        pooling, per_reading: see `SupervisedEstimator`.

    >>> import numpy as np
    >>> from lrcnet.estimators import LiquidRegressor
    >>> X = np.random.default_rng(0).normal(size=(60, 12, 1))
    >>> y = 1000 + 100 * X.mean((1, 2))
    >>> LiquidRegressor(units=8, epochs=40, random_state=0).fit(X, y).score(X, y) > 0.8
    True
    """

    _numeric_targets = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    def fit(self, X: Any, y: Any, times: Any = None) -> Self:
        """Train on series X and their targets y.

        Args:
            X, times: see `LiquidClassifier.fit`.
            y: (series,) or (series, targets); per_reading: (series, time), (series, time, targets) or a list; for a
                long table also the name of its column.
        """
        self._start_again()
        series, targets = self._read_with_targets(X, y, times)
        parts = [_numbers(one, i) for i, one in enumerate(targets)] if self.per_reading else [_numbers(targets)]
        rows = np.concatenate(parts)
        self.single_target_ = rows.ndim == 1
        columns = rows.reshape(len(rows), -1)
        self._mean, spread = columns.mean(0), columns.std(0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._learn_preparation(series)
        tables = [one.reshape(len(one), -1).astype(np.float32) for one in parts]
        examples = self._examples(series, tables if self.per_reading else tables[0], np.nan)
        return self._fit_network(examples, self._one_group(examples))

    def predict(self, X: Any, times: Any = None) -> Any:
        """Return the numbers of each series, or of each reading."""
        answers = self._answers(self._prepare_new(X, times))
        parts = [one[..., 0] if self.single_target_ else one for one in answers]
        return stack_if_even(parts) if self.per_reading else np.stack(parts)

    def score(self, X: Any, y: Any, sample_weight: Any = None, times: Any = None) -> float:
        """Return R squared: 1 is perfect, 0 is as good as the mean of y."""
        return float(r2_score(*self._targets_and_predictions(X, y, times), sample_weight=sample_weight))

    def _build(self, layer: nn.Module, width: int) -> SequenceModel:
        outputs = len(self._mean)
        model: SequenceModel
        if self.per_reading:
            model = Tagger(layer, width, outputs)
        else:
            model = Regressor(layer, width, outputs, pooling=self.pooling)
        model.set_target_scaling(torch.tensor(self._mean), torch.tensor(self._scale))
        return model

    def _loss(self, answers: Any, targets: Tensor) -> Tensor:
        return scaled_square(answers, targets, self.module_.target_scale)


def scaled_square(answers: Tensor, targets: Tensor, scale: Tensor | None) -> Tensor:
    """Return the mean squared error in units of `scale` over the targets that are not NaN."""
    known = ~targets.isnan()
    error = (answers - torch.where(known, targets, answers.detach())) / (1.0 if scale is None else scale)
    return error.square().sum() / known.sum().clamp(min=1)


def _numbers(targets: Any, place: int | None = None) -> Array:
    try:
        numbers = real_numbers(targets)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers, but does not ({error}); use a classifier for classes") from None
    wrong = np.argwhere(~np.isfinite(numbers))
    if len(wrong):
        where = f"{int(wrong[0][0])}" + ("" if place is None else f" of series {place}")
        raise ValueError(f"y must be finite, but target {where} is NaN or infinity; leave it out")
    return numbers
