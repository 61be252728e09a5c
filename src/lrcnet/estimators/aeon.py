"""A classifier for aeon, whose collections are (series, channels, time); needs aeon, which is no extra of lrcnet."""

from __future__ import annotations

from typing import Any

import numpy as np
from aeon.classification.base import BaseClassifier
from sklearn.base import clone

from lrcnet.estimators.classifier import LiquidClassifier


class AeonLiquidClassifier(BaseClassifier):  # type: ignore[misc]
    """A `LiquidClassifier` with aeon's conventions.

    Args:
        estimator: the classifier with its options; None takes the defaults.
        random_state: a seed that replaces the estimator's own, unless it is None.

    Attributes:
        estimator_: the trained copy of the classifier.
    """

    _tags = {  # noqa: RUF012 - aeon's own form
        "X_inner_type": ["np-list", "numpy3D"],
        "algorithm_type": "deeplearning",
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "python_dependencies": ["torch"],
    }

    def __init__(self, estimator: LiquidClassifier | None = None, random_state: Any = None) -> None:
        self.estimator = estimator
        self.random_state = random_state
        super().__init__()

    def _fit(self, X: Any, y: Any) -> AeonLiquidClassifier:
        own = LiquidClassifier() if self.estimator is None else clone(self.estimator)
        if self.random_state is not None:
            own.set_params(random_state=self.random_state)
        self.estimator_ = own.fit(_transpose(X), y)
        return self

    def _predict(self, X: Any) -> Any:
        return self.estimator_.predict(_transpose(X))

    def _predict_proba(self, X: Any) -> Any:
        return self.estimator_.predict_proba(_transpose(X))

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:
        """Return the options with which aeon's own checks build this class."""
        return {"estimator": LiquidClassifier(units=2, epochs=2, progress=False)}


def _transpose(X: Any) -> list[Any]:
    """Return series (time, channels) of a collection of (channels, time)."""
    return [np.asarray(one).T for one in X]
