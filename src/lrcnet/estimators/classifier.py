"""LiquidClassifier: classes of whole series, or of every reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, Unpack

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d
from torch import Tensor, nn

from lrcnet.data import Array, is_missing
from lrcnet.errors import check_kind
from lrcnet.estimators.base import SharedOptions, stack_if_even
from lrcnet.estimators.supervised import SupervisedEstimator
from lrcnet.models import Classifier, Pooling, SequenceModel, Tagger

# torch's own value for targets that a loss leaves out.
PADDING = -100


class LiquidClassifier(ClassifierMixin, SupervisedEstimator):  # type: ignore[misc]
    """A recurrent network that tells classes of series, or of readings, apart.

    Args:
        cell: see `SeriesEstimator`, also for the options that are not listed here.
        pooling, per_reading: see `SupervisedEstimator`.
        class_weight: weight of each class in the loss: None, "balanced", or a dictionary from class to weight.

    Attributes:
        classes_: the classes, sorted.

    >>> import numpy as np
    >>> from lrcnet.estimators import LiquidClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 12, 3)) + y[:, None, None]
    >>> LiquidClassifier(units=8, epochs=20, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        cell: str = "lrcu",
        *,
        pooling: Pooling = "last",
        per_reading: bool = False,
        class_weight: str | Mapping[Any, float] | None = None,
        **shared: Unpack[SharedOptions],
    ) -> None:
        super().__init__(cell, pooling=pooling, per_reading=per_reading, **shared)
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, times: Any = None) -> Self:
        """Train on series X and their classes y.

        Args:
            X: (series, time, channels); (series, time) for one channel; a list of arrays (time, channels) of unequal
                length; or a long table, if id_column is set. NaN stands for a missing value: it is replaced by the
                channel's last value, and a mask marks them for the network.
            y: one class per series; per_reading: (series, time) or a list; for a long table also the name of its
                column.
            times: the times of the readings, numbers or dates, laid out as X without channels; None if evenly spaced.
        """
        self._start_again()
        series, targets = self._read_with_targets(X, y, times)
        labels = self._flatten(targets)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have at least two classes, but has one class only ({self.classes_[0]!s}); check the target"
            )
        if self.class_weight is None:
            self._weights = None
        else:
            if not isinstance(self.class_weight, str) or self.class_weight != "balanced":
                check_kind("class_weight", self.class_weight, Mapping, 'None, "balanced" or a dictionary of weights')
            weights = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
            self._weights = torch.tensor(weights, dtype=torch.float32)
        self._learn_preparation(series)
        codes = np.searchsorted(self.classes_, labels)
        if self.per_reading:
            parts = np.split(codes, np.cumsum([len(one) for one in targets])[:-1])
            examples = self._examples(series, parts, PADDING)
            return self._fit_network(examples, self._one_group(examples))
        examples = self._examples(series, codes, PADDING)
        return self._fit_network(examples, examples.targets)

    def predict_proba(self, X: Any, times: Any = None) -> Any:
        """Return the probability of each class: (series, classes), or per reading."""
        answers = [_softmax(one) for one in self._answers(self._prepare_new(X, times))]
        return stack_if_even(answers) if self.per_reading else np.stack(answers)

    def predict(self, X: Any, times: Any = None) -> Any:
        """Return the most probable class of each series, or of each reading."""
        parts = [self.classes_[one.argmax(-1)] for one in self.predict_proba(X, times)]
        return stack_if_even(parts) if self.per_reading else np.asarray(parts)

    def score(self, X: Any, y: Any, sample_weight: Any = None, times: Any = None) -> float:
        """Return the share of series, or of readings, whose class is predicted."""
        return float(accuracy_score(*self._targets_and_predictions(X, y, times), sample_weight=sample_weight))

    def _flatten(self, targets: Any) -> Array:
        whole = np.concatenate([np.asarray(one) for one in targets]) if self.per_reading else targets
        labels: Array = column_or_1d(whole, warn=True)
        missing = np.flatnonzero(is_missing(labels))
        if len(missing):
            raise ValueError(f"y must have a class for every target, but number {int(missing[0])} is missing (NaN)")
        return labels

    def _build(self, layer: nn.Module, width: int) -> SequenceModel:
        if self.per_reading:
            return Tagger(layer, width, len(self.classes_))
        return Classifier(layer, width, len(self.classes_), pooling=self.pooling)

    def _loss(self, answers: Any, targets: Tensor) -> Tensor:
        flat = answers.flatten(0, -2)
        return nn.functional.cross_entropy(flat, targets.flatten(), self._weights, ignore_index=PADDING)


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Array = powers / powers.sum(-1, keepdims=True)
    return shares
