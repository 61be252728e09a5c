"""Streams of readings with timestamps: the gaps, many sensors at once, snapshots, and bad input."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import lrcnet

START = datetime(2024, 5, 1, 12, 0)
MINUTES = [0.0, 5.0, 7.5, 30.0, 31.0]
READINGS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))

MODELS: dict[str, Callable[[], Any]] = {
    "layer": lambda: lrcnet.LRC(3, 4, 2, time_scale=5.0),
    "lstm": lambda: lrcnet.LSTM(3, 4, time_feature=True),
    "untimed": lambda: lrcnet.GRU(3, 4),
    "mean": lambda: lrcnet.Classifier(lrcnet.LRC(3, 4, time_scale=5.0), 4, 2, pooling="mean"),
    "max": lambda: lrcnet.Classifier(lrcnet.LRCU(3, 4, time_feature=True), 4, 2, pooling="max"),
    "tagger": lambda: lrcnet.Tagger(lrcnet.CTRNN(3, 4, solver="exponential"), 4, 2),
}


def expected_answers(model: Any, gaps: list[float] | None) -> list[torch.Tensor]:
    """The answers of the model's own step, one reading at a time."""
    state, answers = None, []
    with torch.no_grad():
        for index, reading in enumerate(READINGS):
            answer, state = model.step(reading.unsqueeze(0), state, None if gaps is None else gaps[index])
            answers.append(answer[0])
    return answers


def test_a_hook_on_the_read_out_runs_in_a_stream() -> None:
    model = lrcnet.Classifier(lrcnet.LRC(3, 4, time_scale=5.0), 4, 2)
    plain = lrcnet.Stream(model)([0.1, 0.2, 0.3], 0.0)
    assert plain is not None
    model.head.register_forward_hook(lambda module, given, answer: answer + 1)
    hooked = lrcnet.Stream(model)([0.1, 0.2, 0.3], 0.0)
    torch.testing.assert_close(hooked, plain + 1)


def test_an_estimator_with_missing_values_says_what_a_reading_is() -> None:
    estimators = pytest.importorskip("lrcnet.estimators")
    X = np.random.default_rng(0).normal(size=(8, 5, 2))
    X[0, 0, 0] = np.nan
    stream = lrcnet.Stream(estimators.LiquidRegressor(units=3, epochs=1).fit(X, X[:, -1, 1]))
    with pytest.raises(ValueError, match=r"must have 4 numbers, .* pass 2 channels, .* then 2 times 1 if"):
        stream([0.1, 0.2], 0.0)
    assert stream([0.1, 0.2, 1.0, 0.0], 0.0) is not None


def test_an_estimator_without_times_counts_readings() -> None:
    estimators = pytest.importorskip("lrcnet.estimators")
    X = np.random.default_rng(0).normal(size=(8, 5, 2))
    regressor = estimators.LiquidRegressor(units=3, epochs=1).fit(X, X[:, -1, 1])
    stream = lrcnet.Stream(regressor)
    for reading, seconds in zip(X[0].tolist(), (0.0, 60.0, 7200.0, 7201.0, 9999.0), strict=True):
        answer = stream(reading, seconds)
    assert answer is not None
    assert answer.item() == pytest.approx(regressor.predict(X[:1]).item(), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_list_an_array_and_a_tensor_are_one_reading(dtype: torch.dtype) -> None:
    model = lrcnet.LRC(3, 4, dtype=dtype)
    given = READINGS[0].tolist()
    answers = [lrcnet.Stream(model)(one, 0.0) for one in (given, tuple(given), np.array(given), READINGS[0])]
    for answer in answers:
        torch.testing.assert_close(answer, answers[0], rtol=0, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_computes_the_gaps_from_the_times(name: str) -> None:
    model = MODELS[name]()
    first = 5.0 if name in ("layer", "mean") else 1.0
    gaps = None if name == "untimed" else [first, *np.diff(MINUTES)]
    stream = lrcnet.Stream(model, unit="minutes")
    for index, answer in enumerate(expected_answers(model.eval(), gaps)):
        got = stream(READINGS[index], START + timedelta(minutes=MINUTES[index]))
        torch.testing.assert_close(got, answer)


TIMES: dict[str, Callable[[float], Any]] = {
    "numbers": lambda minutes: minutes,
    "datetime": lambda minutes: START + timedelta(minutes=minutes),
    "aware": lambda minutes: (START + timedelta(minutes=minutes)).replace(tzinfo=timezone(timedelta(hours=2))),
    "pandas": lambda minutes: pandas.Timestamp(START) + pandas.Timedelta(minutes=minutes),
    "numpy": lambda minutes: np.datetime64(START) + np.timedelta64(int(minutes * 60), "s"),
}


@pytest.mark.parametrize("kind", TIMES)
def test_every_kind_of_timestamp_gives_the_same_answers(kind: str) -> None:
    model = lrcnet.LRC(3, 4, time_scale=5.0)
    stream, plain = lrcnet.Stream(model, unit="minutes"), lrcnet.Stream(model, unit="minutes")
    for reading, minutes in zip(READINGS, MINUTES, strict=True):
        assert torch.equal(stream(reading, TIMES[kind](minutes)), plain(reading.tolist(), minutes))


def test_nanoseconds_of_pandas_count() -> None:
    stream = lrcnet.Stream(lrcnet.LRCU(3, 4, time_scale=1e-9))
    instant, later = pandas.Timestamp(1_700_000_000_000_000_001), pandas.Timestamp(1_700_000_000_000_000_002)
    stream(READINGS[0], instant)
    still = stream(READINGS[1], instant, name="twin")
    assert still is not None
    moved, plain = stream(READINGS[1], later), lrcnet.Stream(stream.model, unit="seconds")
    plain(READINGS[0], 0.0)
    torch.testing.assert_close(moved, plain(READINGS[1], 1e-9))


@pytest.mark.parametrize("name", MODELS)
def test_many_streams_in_one_call_equal_each_alone(name: str) -> None:
    model = MODELS[name]()
    together, alone = lrcnet.Stream(model), lrcnet.Stream(model)
    for step in range(4):
        batch = {key: (READINGS[(step + key) % 5], 1.5 * step * (key + 1)) for key in range(3) if step >= key}
        answers = together.update(batch)
        for key, (reading, time) in batch.items():
            torch.testing.assert_close(answers[key], alone(reading, time, name=key))
    assert together.names == [0, 1, 2]


@pytest.mark.parametrize("name", [*MODELS, "forecaster"])
def test_a_snapshot_continues_where_it_was_taken(name: str) -> None:
    model = lrcnet.Forecaster(lrcnet.LRC(3, 4), 4, 2) if name == "forecaster" else MODELS[name]()
    stream = lrcnet.Stream(model)
    for index in range(3):
        stream.update({"a": (READINGS[index], MINUTES[index]), 7: (READINGS[index + 1], MINUTES[index])})
    snapshot = stream.snapshot()
    assert isinstance(snapshot, bytes)
    twin = lrcnet.Stream(model)
    twin.restore(snapshot)
    for index in (3, 4):
        for key in ("a", 7):
            assert torch.equal(twin(READINGS[index], MINUTES[index], key), stream(READINGS[index], MINUTES[index], key))


def test_a_damaged_or_foreign_snapshot_changes_nothing() -> None:
    stream = lrcnet.Stream(lrcnet.LRCU(3, 4))
    stream(READINGS[0], 0.0)
    before = stream.snapshot()
    for bad in (b"", b"pickle", before[:-1], before[:-1] + b"!", before[:30]):
        with pytest.raises(ValueError, match="damaged or none at all"):
            stream.restore(bad)
    with pytest.raises(ValueError, match="restore it into the same model"):
        stream.restore(lrcnet.Stream(lrcnet.LRCU(3, 5)).snapshot())
    assert stream.snapshot() == before


def test_a_forecaster_gets_each_gap_when_it_is_known() -> None:
    model = lrcnet.Forecaster(lrcnet.LRC(3, 4), 4, 3).eval()
    stream = lrcnet.Stream(model, horizon=2.0)
    gaps = np.diff(MINUTES)
    for index in range(5):
        answer = stream(READINGS[index], MINUTES[index])
        dt = torch.tensor([[*gaps[:index], 2.0]], dtype=torch.float32)
        with torch.no_grad():
            expected = model(READINGS[None, : index + 1], dt)[0, -1]
        torch.testing.assert_close(answer, expected)


def test_a_long_gap_starts_anew() -> None:
    stream = lrcnet.Stream(lrcnet.LRC(3, 4), unit="hours", reset_after=timedelta(days=1))
    first = stream(READINGS[0], START)
    stream(READINGS[1], START + timedelta(hours=3))
    assert torch.equal(stream(READINGS[0], START + timedelta(hours=28)), first)
    stream.reset()
    assert torch.equal(stream(READINGS[0], START), first)


def test_time_that_runs_backwards_is_refused_or_dropped() -> None:
    model = lrcnet.LRCU(3, 4)
    stream = lrcnet.Stream(model, unit="minutes")
    stream(READINGS[0], START, "pump")
    before = stream.snapshot()
    with pytest.raises(ValueError, match=r"of stream 'pump' at .* is 5 minutes older"):
        stream.update({"other": (READINGS[1], START), "pump": (READINGS[1], START - timedelta(minutes=5))})
    assert stream.snapshot() == before, "no stream has advanced"
    lenient = lrcnet.Stream(model, backwards="drop")
    lenient(READINGS[0], 10.0)
    assert lenient(READINGS[1], 9.0) is None
    assert lenient(READINGS[1], 10.0) is not None


BAD: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "channels": ([1.0, 2.0], 1.0, ValueError, "must have 3 numbers"),
    "missing value": ([1.0, float("nan"), 2.0], 1.0, ValueError, "fill in missing values"),
    "missing time": ([1.0, 2.0, 3.0], float("nan"), ValueError, "must be finite"),
    "NaT": ([1.0, 2.0, 3.0], pandas.NaT, ValueError, "is NaT"),
    "numpy NaT": ([1.0, 2.0, 3.0], np.datetime64("NaT"), ValueError, "is NaT"),
    "text": ([1.0, 2.0, 3.0], "yesterday", TypeError, "must be a number, a datetime"),
    "another kind": ([1.0, 2.0, 3.0], START, TypeError, "must be of one kind"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_readings_are_named(case: str) -> None:
    reading, time, error, message = BAD[case]
    stream = lrcnet.Stream(lrcnet.LRCU(3, 4))
    stream([0.0, 0.0, 0.0], 0.0)
    with pytest.raises(error, match=message):
        stream(reading, time)


def test_bad_options_are_named() -> None:
    with pytest.raises(ValueError, match="only looks back"):
        lrcnet.Stream(lrcnet.LRCU(3, 4, bidirectional=True))
    with pytest.raises(ValueError, match="horizon is for a Forecaster"):
        lrcnet.Stream(lrcnet.LRCU(3, 4), horizon=1.0)
    with pytest.raises(ValueError, match="reset_after must be"):
        lrcnet.Stream(lrcnet.LRCU(3, 4), reset_after=-1.0)
    with pytest.raises(ValueError, match="unit must be one of"):
        lrcnet.Stream(lrcnet.LRCU(3, 4), unit="fortnights")
