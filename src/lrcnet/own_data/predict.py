"""Predictions of a fitted network for the series of a new table."""

from __future__ import annotations

from typing import Any

import numpy as np

from lrcnet.estimators.series import Series
from lrcnet.own_data.encoding import Readings, encode
from lrcnet.own_data.files import import_pandas
from lrcnet.own_data.folder import FittedFolder, fingerprint


def predict_table(fitted: FittedFolder, frame: Any, *, steps: int, allow_seen: bool, sort: bool) -> Any:
    """Return a DataFrame of predictions.

    It has the column of ids, the column of times if every reading has a prediction, `prediction`, and for classes
    `probability_` and the name of each class. Forecasts have one row per channel and step.

    Args:
        fitted: the network.
        frame: the new table; it needs no target.
        steps: number of readings to forecast.
        allow_seen: whether series of the training table may be predicted.
        sort: whether rows are sorted by time first.
    """
    schema = fitted.schema
    readings = encode(frame, schema, with_targets=False, sort=sort)
    if schema.id is not None and schema.task != "forecast" and not allow_seen:
        _refuse_seen(fitted, readings)
    id_column = schema.id or "series"
    if schema.task == "forecast":
        return _forecasts(fitted, readings, id_column, steps)
    series = readings.series
    columns = _columns(fitted, series)
    if not schema.per_reading:
        return import_pandas().DataFrame({id_column: readings.ids, **columns})
    repeated = np.repeat(readings.ids, [len(one) for one in series.values])
    table: dict[str, Any] = {id_column: repeated}
    if readings.moments is not None:
        assert schema.time is not None
        table[schema.time] = np.concatenate(readings.moments)
    result = import_pandas().DataFrame({**table, **columns})
    # The rows come out in the order of the file, where series may alternate.
    assert series.rows is not None
    return result.iloc[np.argsort(np.concatenate(series.rows), kind="stable")]


def _columns(fitted: FittedFolder, series: Series) -> dict[str, Any]:
    estimator, schema = fitted.estimator, fitted.schema
    if schema.task == "regression":
        return {"prediction": _join(estimator.predict(series.values, series.times), schema.per_reading)}
    shares = _join(estimator.predict_proba(series.values, series.times), schema.per_reading)
    names = estimator.classes_
    return {
        "prediction": names[shares.argmax(1)],
        **{f"probability_{name}": shares[:, i] for i, name in enumerate(names)},
    }


def _join(parts: Any, per_reading: bool) -> Any:
    return np.concatenate(list(parts)) if per_reading else parts


def _forecasts(fitted: FittedFolder, readings: Readings, id_column: str, steps: int) -> Any:
    pandas, schema, estimator = import_pandas(), fitted.schema, fitted.estimator
    series = readings.series
    forecasts = estimator.set_params(steps=steps).predict(series.values, times=series.times)
    rows: list[dict[str, Any]] = []
    for i, name in enumerate(readings.ids):
        for step in range(steps):
            place: dict[str, Any] = {id_column: name, "step": step + 1}
            if series.times is not None:
                assert schema.time is not None
                moment = series.times[i][-1] + (step + 1) * estimator.preparation_.time_scale
                place[schema.time] = pandas.Timestamp(moment, unit="s") if schema.dates else moment
            rows += [
                {**place, "channel": channel, "prediction": float(forecasts[i, step, c])}
                for c, channel in enumerate(schema.channels)
            ]
    return pandas.DataFrame(rows)


def _refuse_seen(fitted: FittedFolder, readings: Readings) -> None:
    assert readings.series.rows is not None
    for name, rows in zip(readings.ids, readings.series.rows, strict=True):
        if fingerprint(name) in fitted.seen:
            raise ValueError(
                f"column {fitted.schema.id!r} must name new series, but {name!r} in row {rows.min() + 1} was in the "
                "training file too, and a prediction for it would look better than it is; drop it, or pass --allow-seen"
            )
