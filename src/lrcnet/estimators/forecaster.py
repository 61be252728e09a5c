"""LiquidForecaster: the readings that follow a series."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from lrcnet.data import Array, Floats, as_times, fill_missing, pad
from lrcnet.errors import positive_size
from lrcnet.estimators.base import SeriesEstimator, SharedOptions, is_flat
from lrcnet.estimators.loop import Examples
from lrcnet.estimators.regressor import scaled_square
from lrcnet.estimators.series import Series
from lrcnet.models import Forecaster, SequenceModel


class LiquidForecaster(SeriesEstimator):
    """A recurrent network that forecasts the next readings of a series.

    It is trained to forecast every reading from those before it, as the change from the last one. A gap is the time
    until the reading that is forecast.

    Args:
        cell: see `SeriesEstimator`, also for the options that are not listed here.
        steps: number of readings that `predict` forecasts, each fed back for the next.

    >>> import numpy as np
    >>> from lrcnet.estimators import LiquidForecaster
    >>> waves = np.sin(np.arange(40) / 3 + np.arange(30)[:, None])
    >>> forecaster = LiquidForecaster(units=8, epochs=30, random_state=0).fit(waves[:, :-1])
    >>> forecaster.score(waves) > 0.9
    True
    """

    # Histories grow, so a new one need not be as long as those of training.
    _any_length = True
    _fewest_readings = 2

    def __init__(self, cell: str = "lrcu", *, steps: int = 1, **shared: Unpack[SharedOptions]) -> None:
        super().__init__(cell, **shared)
        self.steps = steps

    def fit(self, X: Any, y: Any = None, times: Any = None) -> Self:
        """Train on series.

        Args:
            X, times: see `LiquidClassifier.fit`. A missing value is no target.
            y: not used; scikit-learn's pipelines pass it.
        """
        self._start_again()
        series, _ = self._read(X, times)
        self._learn_preparation(series, after=True)
        changes = np.concatenate([_changes(one) for one in series.values])
        known = np.maximum((~np.isnan(changes)).sum(0), 1)
        self._mean = np.nansum(changes, 0) / known
        spread = np.sqrt(np.nansum((changes - self._mean) ** 2, 0) / known)
        self._scale = np.where(spread > 0, spread, 1.0)
        if np.isnan(changes).all():
            raise ValueError(
                "series must have at least two readings with values, one after the other, but none has; pass longer "
                "ones"
            )
        examples = self._examples(series)
        groups = torch.zeros(len(examples.targets), dtype=torch.long)
        return self._fit_network(examples, groups)

    def predict(self, X: Any, times: Any = None, at: Any = None) -> Array:
        """Return forecasts (series, steps, channels) of the readings that follow each series.

        2-D input, one channel, gives (series, steps).

        Args:
            X, times: the readings so far, see `fit`.
            at: the times of the readings to forecast, (series, steps); None means steps of the median gap.
        """
        check_is_fitted(self)
        series, _ = self._read(X, times)
        last_gaps, gaps = self._gaps_until(at, series)
        inputs = self.preparation_.prepare(series, last_gaps)
        model: Any = self._in_float64()
        with torch.no_grad():
            dt = None if inputs.dt is None else inputs.dt.double()
            further = None if gaps is None else torch.from_numpy(gaps)
            forecasts: Array = model.forecast(
                inputs.x.double(), positive_size("steps", self.steps), dt, inputs.uneven_lengths(), further
            ).numpy()
        return forecasts[..., 0] if is_flat(X) and self.id_column is None else forecasts

    def score(self, X: Any, y: Any = None, times: Any = None) -> float:
        """Return R squared of the forecasts of every reading from those before it, relative to the channels' means."""
        check_is_fitted(self)
        series, _ = self._read(X, times)
        answers = self.forecast_readings(series)
        error, spread = 0.0, 0.0
        center, scale = np.array(self.preparation_.mean), np.array(self.preparation_.scale)
        for one, forecast in zip(series.values, answers, strict=True):
            error += float(np.nansum(((one[1:] - forecast[:-1]) / scale) ** 2))
            spread += float(np.nansum(((one[1:] - center) / scale) ** 2))
        return 1 - error / spread if spread else float("nan")

    def forecast_readings(self, series: Series) -> list[Floats]:
        """Return, for every reading of each series, the forecast (T, channels) of the one that follows it."""
        return self._answers(self.preparation_.prepare(series))

    def _examples(self, series: Series) -> Examples:
        following = [np.concatenate([one[1:], np.full((1, one.shape[1]), np.nan)]) for one in series.values]
        inputs = self.preparation_.prepare(series)
        if self.window is None:
            return Examples(inputs, _pad_targets(following), True)
        # Cutting after the gaps are known keeps the gap from the last reading of a window to the next one.
        _, places = series.cut(positive_size("window", self.window, least=2))
        places = [place for place in places if not np.isnan(following[place[0]][place[1]]).all()]
        lengths = torch.tensor([len(following[i][part]) for i, part in places])
        x = pad([inputs.x[i, : len(series.values[i])][part].numpy() for i, part in places])
        dt = inputs.dt
        cut_dt = None if dt is None else pad([dt[i, : len(series.values[i])][part].numpy() for i, part in places])
        targets = _pad_targets([following[i][part] for i, part in places])
        return Examples(type(inputs)(x, cut_dt, lengths), targets, True)

    def _gaps_until(self, at: Any, series: Series) -> tuple[Floats | None, Any]:
        """Return the gap before the first forecast (B,), and those between forecasts (B, steps - 1)."""
        scale = self.preparation_.time_scale
        if at is None:
            count = (len(series), int(self.steps) - 1)
            return None, None if scale is None else np.full(count, scale)
        if series.times is None:
            raise ValueError("times to forecast need series with times, but they have none; leave `at` out")
        moments = as_times(np.asarray(at).ravel(), "at").reshape(np.shape(at))
        if moments.shape != (len(series), self.steps):
            raise ValueError(
                f"at must have shape {(len(series), self.steps)}, (series, steps), but has {moments.shape}"
            )
        last = np.array([one[-1] for one in series.times])
        gaps = np.diff(moments, axis=1, prepend=last[:, None])
        if (gaps <= 0).any():
            row, step = (int(axis[0]) for axis in np.nonzero(gaps <= 0))
            raise ValueError(f"at must increase from the last reading on, but at[{row}, {step}] does not; correct it")
        return gaps[:, 0], gaps[:, 1:]

    def _build(self, layer: nn.Module, width: int) -> SequenceModel:
        model = Forecaster(layer, width, len(self._mean))
        model.set_target_scaling(torch.tensor(self._mean), torch.tensor(self._scale))
        return model

    def _loss(self, answers: Any, targets: Tensor) -> Tensor:
        return scaled_square(answers, targets, self.module_.target_scale)


def _changes(values: Floats) -> Floats:
    """Return the change from the last known value to each value (T - 1, n); NaN where a value is missing."""
    filled, _ = fill_missing(values, np.nan)
    changes: Floats = values[1:] - filled[:-1]
    return changes


def _pad_targets(parts: list[Floats]) -> Tensor:
    longest = max(map(len, parts))
    whole = np.full((len(parts), longest, parts[0].shape[1]), np.nan, dtype=np.float32)
    for place, part in zip(whole, parts, strict=True):
        place[: len(part)] = part
    return torch.from_numpy(whole)
