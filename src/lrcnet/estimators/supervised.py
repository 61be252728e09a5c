"""The common part of LiquidClassifier and LiquidRegressor: one target per series, or one per reading."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from lrcnet.data import Array
from lrcnet.errors import describe_kind
from lrcnet.estimators.base import SeriesEstimator, SharedOptions
from lrcnet.estimators.loop import Examples
from lrcnet.estimators.series import Series, targets_from_table
from lrcnet.models import Pooling


class SupervisedEstimator(SeriesEstimator):
    """An estimator of targets.

    Args:
        cell: see `SeriesEstimator`, also for the options that are not listed here.
        pooling: "last", "mean" or "max": how the outputs of all readings become one; see `lrcnet.Classifier`.
        per_reading: whether every reading has a target, instead of every series.
    """

    def __init__(
        self,
        cell: str = "lrcu",
        *,
        pooling: Pooling = "last",
        per_reading: bool = False,
        **shared: Unpack[SharedOptions],
    ) -> None:
        super().__init__(cell, **shared)
        self.pooling = pooling
        self.per_reading = per_reading

    def _targets_and_predictions(self, X: Any, y: Any, times: Any) -> tuple[Any, Any]:
        """Return the targets and the predictions of series; those of all readings in a row, if each has one."""
        if isinstance(y, str):
            _, y = self._read_with_targets(X, y, times)
        predictions = self.predict(X, times)
        if self.per_reading:
            y, predictions = (np.concatenate([np.asarray(one) for one in parts]) for parts in (y, predictions))
        return y, predictions

    def _read_with_targets(self, X: Any, y: Any, times: Any) -> tuple[Series, Any]:
        """Read series and their targets: an array, or one array per series if every reading has a target."""
        if isinstance(y, str):
            if self.id_column is None:
                raise ValueError(f"y={y!r} names a column of a long table, but id_column is None; say which it is")
            series, _ = self._read(X, times, leave_out=(y,))
            self._left_out = (y,)
            return series, targets_from_table(X, y, series, self.per_reading)
        if y is None:
            # scikit-learn's checks look for its own words.
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None; pass targets")
        if self.per_reading or self.id_column is not None:
            series, _ = self._read(X, times)
        else:
            series, y = self._read(X, times, y)
        is_tensor = isinstance(y, Tensor)
        unreadable = is_tensor and (y.is_meta or y.layout is not torch.strided)
        if unreadable or not hasattr(y, "__len__") or not (y.dim() if is_tensor else np.ndim(np.asarray(y, object))):
            raise TypeError(f"y must be a list or an array of targets, but is {describe_kind(y)}; pass one per series")
        if len(y) != len(series):
            raise ValueError(f"there must be one target per series, but there are {len(series)} series and {len(y)}")
        return series, self._split_readings(y, series) if self.per_reading else y

    @staticmethod
    def _split_readings(y: Any, series: Series) -> list[Array]:
        parts = [np.asarray(one) for one in y]
        for i, (one, values) in enumerate(zip(parts, series.values, strict=True)):
            if one.shape[:1] != values.shape[:1]:
                raise ValueError(
                    f"with per_reading=True every reading needs a target, but series {i} has {len(values)} readings "
                    f"and targets of shape {one.shape}; pass as many"
                )
        return parts

    def _examples(self, series: Series, targets: Any, padding: float) -> Examples:
        """Return training examples; series whose every reading has a target are cut into windows."""
        if not self.per_reading:
            return Examples(self.preparation_.prepare(series), torch.from_numpy(targets), False)
        parts = targets
        if self.window is not None:
            series, places = series.cut(self.window)
            parts = [targets[i][part] for i, part in places]
        longest = max(map(len, parts))
        whole = np.full((len(parts), longest, *parts[0].shape[1:]), padding, dtype=parts[0].dtype)
        for place, part in zip(whole, parts, strict=True):
            place[: len(part)] = part
        return Examples(self.preparation_.prepare(series), torch.from_numpy(whole), True)

    def _one_group(self, examples: Examples) -> Tensor:
        return torch.zeros(len(examples.targets), dtype=torch.long)
