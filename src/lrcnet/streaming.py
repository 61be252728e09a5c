"""Streams of readings with timestamps: a network that answers one reading at a time, for one or many sensors.

Axes: B streams, n input channels.
"""

import math
from array import array
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
from torch import Tensor

from lrcnet.errors import check_kind, describe_kind, one_of
from lrcnet.export.forms import (
    find_layer,
    first_states,
    join_states,
    network_of,
    split_states,
    takes_dt,
    time_unit_of,
)
from lrcnet.models import Forecaster
from lrcnet.snapshots import pack_streams, unpack_streams
from lrcnet.timestamps import UNITS, Moment, TimeUnit, elapsed, length_in, read_moment

Backwards = Literal["error", "drop"]
Name = str | int | None
Time = Any  # a number, a datetime, a pandas.Timestamp or a numpy.datetime64


@dataclass(slots=True)
class Place:
    """Where one stream is.

    Attributes:
        moment: the time of its last reading.
        state: the network's state for a batch of one, as `step` takes it.
        held: the reading that a forecaster still holds, (n,).
    """

    moment: Moment | None
    state: Any
    held: Tensor | None = None

    @property
    def states(self) -> tuple[Tensor, ...]:
        """The tensors of the state."""
        return split_states(self.state)


class Stream:
    """A trained network that takes readings with timestamps, one at a time.

    The network computes dt from the timestamps. Before the first reading of a stream, and after a reset, dt is one unit
    of the network's own time (`time_scale`), because nobody knows the true one. A layer that takes no dt uses the
    timestamps to check their order only. A `Forecaster` gets the gap that follows each reading as soon as the next
    one arrives, and answers for the time `horizon` ahead.

    Args:
        model: a layer that looks back only, a Classifier, Regressor, Tagger or Forecaster around one, or a fitted
            estimator. It is set to eval mode.
        unit: the unit of dt in training, into which differences of dates are converted; numbers are taken as they are.
        backwards: what happens to a reading older than the last one: "error", or "drop" (the answer is None).
        reset_after: the gap, a number in `unit` or a timedelta, after which a stream starts anew; never if None.
        horizon: the time ahead for which a Forecaster answers, a number in `unit` or a timedelta; one unit of the
            network's own time if None.

    >>> from datetime import datetime
    >>> stream = lrcnet.Stream(lrcnet.LRCU(2, 4, time_feature=True), unit="minutes", reset_after=60)
    >>> answer = stream([0.5, 1.0], datetime(2024, 5, 1, 12, 0))
    >>> answer = stream([0.6, 0.9], datetime(2024, 5, 1, 12, 5))  # dt = 5
    >>> answer.shape
    torch.Size([4])
    """

    def __init__(
        self,
        model: Any,
        *,
        unit: TimeUnit = "seconds",
        backwards: Backwards = "error",
        reset_after: float | timedelta | None = None,
        horizon: float | timedelta | None = None,
    ) -> None:
        prepared = getattr(model, "preparation_", None)  # of a fitted estimator
        masked = 0 if prepared is None or not prepared.mask else len(prepared.mean)
        self._advice = "pass one value per channel"
        if masked:
            self._advice = (
                f"pass {masked} channels, with the last value in place of a missing one, then {masked} times 1 if the "
                "value was measured, else 0"
            )
        model = network_of(model)
        self._layer = find_layer(model)
        if self._layer.bidirectional:
            raise ValueError(
                f"a stream needs a layer that only looks back, but this {self._layer.mode} is bidirectional; train one "
                "with bidirectional=False"
            )
        if horizon is not None and not isinstance(model, Forecaster):
            raise ValueError(f"horizon is for a Forecaster, but the model is a {type(model).__name__}; leave it out")
        self.model: Any = model.eval()
        self.unit = one_of("unit", unit, UNITS)
        self.backwards = one_of("backwards", backwards, ("error", "drop"))
        self.reset_after = None if reset_after is None else length_in(self.unit, "reset_after", reset_after)
        # An estimator that was trained without times counts every reading as one step.
        self._timed = takes_dt(self._layer) and (prepared is None or prepared.time_scale is not None)
        # Looked up once: each reading asks for them.
        self._size, self._like = self._layer.input_size, next(self._layer.parameters())
        self._code = {torch.float32: "f", torch.float64: "d"}.get(self._like.dtype)
        self._forecasts = isinstance(model, Forecaster)
        self._one_unit = time_unit_of(model)
        self._horizon = self._one_unit if horizon is None else length_in(self.unit, "horizon", horizon)
        self._places: dict[Name, Place] = {}

    @property
    def names(self) -> list[Name]:
        """The names of the streams that have had a reading."""
        return list(self._places)

    def __call__(self, reading: Any, time: Time, name: Name = None) -> Tensor | None:
        """Take one reading and return the answer (outputs,), or None for a reading that is dropped.

        Args:
            reading: n numbers.
            time: when it was taken: a number in `unit`, a datetime, a pandas.Timestamp or a numpy.datetime64.
            name: the stream that it belongs to; None is a stream like any other.
        """
        item = self._prepare(name, reading, time)
        if item is None:
            return None
        x, moment, gap, place = item
        with torch.no_grad():
            output, place = self._advance(x, gap, place)
        place.moment = moment
        self._places[name] = place
        return output

    def update(self, readings: Mapping[Any, tuple[Any, Time]]) -> dict[Any, Tensor | None]:
        """Take one reading each of several streams in one call of the network.

        Args:
            readings: name -> (reading, time).

        Returns:
            name -> the answer, or None for a reading that is dropped.

        Raises:
            ValueError: for a reading with a wrong number of channels or a missing value, and for time that runs
                backwards; no stream has advanced then.
        """
        check_kind("readings", readings, Mapping, "a dictionary from names to (reading, time)")
        for name, given in readings.items():
            check_kind(f"the entry of {name!r}", given, (tuple, list), "a pair (reading, time)")
            if len(given) != 2:
                raise ValueError(f"the entry of {name!r} must be (reading, time), but has {len(given)} parts")
        if len(readings) == 1:
            ((name, given),) = readings.items()
            return {name: self(*given, name)}
        ready = {name: self._prepare(name, *given) for name, given in readings.items()}
        taken = {name: item for name, item in ready.items() if item is not None}
        answers: dict[Any, Tensor | None] = dict.fromkeys(readings)
        if not taken:
            return answers
        x = torch.stack([item[0] for item in taken.values()])
        gaps = [item[2] for item in taken.values()]
        places = [item[3] for item in taken.values()]
        with torch.no_grad():
            output, after, held = self._advance_together(x, gaps, places)
        for index, (name, (_, moment, _, _)) in enumerate(taken.items()):
            state = join_states(self.model, tuple(_pick(value, index) for value in after))
            self._places[name] = Place(moment, state, None if held is None else held[index].clone())
            answers[name] = output[index]
        return answers

    def reset(self, name: Name = None) -> None:
        """Forget a stream: its next reading is a first one."""
        self._places.pop(name, None)

    def snapshot(self) -> bytes:
        """Return the state of all streams as bytes, which hold numbers and names only."""
        return pack_streams(self._signature(), self._places)

    def restore(self, snapshot: bytes) -> None:
        """Replace all streams by those of a snapshot, of the same kind of model.

        Raises:
            ValueError: for bytes that are damaged or belong to another kind of model; nothing has changed then.
        """
        places = unpack_streams(snapshot, self._signature(), self._like.dtype)
        self._places = {
            name: Place(moment, join_states(self.model, states), held)
            for name, (moment, states, held) in places.items()
        }

    def _signature(self) -> list[Any]:
        """Return what two models must share to exchange states."""
        shapes = [list(value.shape) for value in first_states(self.model, 1).values()]
        return [type(self.model).__name__, type(self._layer).__name__, self._layer.input_size, shapes, self.unit]

    def _prepare(self, name: Name, reading: Any, time: Time) -> tuple[Tensor, Moment, float, Place] | None:
        """Check a reading; return it with its time, its gap and its place, or None if it is dropped."""
        if type(name) is not str:
            check_kind("the name of a stream", name, Hashable, "a text, a whole number or None")
        try:
            x = self._read(reading)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"a reading{_where(name)} must be a list of {self._size} real numbers, but is "
                f"{describe_kind(reading)}; {self._advice}"
            ) from error
        if x.shape != (self._size,):
            raise ValueError(
                f"a reading{_where(name)} must have {self._size} numbers, but has shape {tuple(x.shape)}; "
                f"{self._advice}"
            )
        if not all(map(math.isfinite, x.tolist())):  # for few numbers, quicker than tensors
            raise ValueError(
                f"a reading{_where(name)} must be finite, but is {x.tolist()}; fill in missing values first"
            )
        moment = read_moment(time)
        place = self._places.get(name)
        if place is None or place.moment is None:
            return x, moment, self._one_unit, self._new_place()
        gap = elapsed(place.moment, moment, self.unit)
        if gap < 0:
            if self.backwards == "drop":
                return None
            raise ValueError(
                f"time must not run backwards, but the reading{_where(name)} at {time} is {-gap:g} {self.unit} older "
                "than the last one; sort the readings, or pass backwards='drop'"
            )
        if self.reset_after is not None and gap > self.reset_after:
            return x, moment, self._one_unit, self._new_place()
        return x, moment, gap, place

    def _read(self, reading: Any) -> Tensor:
        if type(reading) is list and reading and self._code is not None:
            # Takes a third of the time of torch.as_tensor, which looks for nested lists and types.
            return torch.frombuffer(array(self._code, reading), dtype=self._like.dtype)
        if "complex" in str(getattr(reading, "dtype", "")):
            raise TypeError("torch would drop the imaginary part")
        return torch.as_tensor(reading, dtype=self._like.dtype)

    def _new_place(self) -> Place:
        states = [value.reshape(1, 1) if not value.dim() else value for value in first_states(self.model, 1).values()]
        return Place(None, join_states(self.model, tuple(states)))

    def _advance(self, x: Tensor, gap: float, place: Place) -> tuple[Tensor, Place]:
        """Return the answer (outputs,) to one reading x (n,), and the stream's new place, without its time."""
        if self._forecasts:
            output, states, held = self._advance_together(x.unsqueeze(0), [gap], [place])
            assert held is not None
            return output[0], Place(None, join_states(self.model, states), held[0])
        output, state = self.model.step(x.unsqueeze(0), place.state, gap if self._timed else None)
        return output[0], Place(None, state)

    def _advance_together(
        self, x: Tensor, gaps: list[float], places: list[Place]
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor | None]:
        """Return the answers (B, outputs), the states after the readings, and the readings if they are held."""
        columns = zip(*(place.states for place in places), strict=True)
        states = tuple(
            parts[0] if len(parts) == 1 else torch.cat(parts, 1 if parts[0].dim() == 3 else 0) for parts in columns
        )
        if not self._forecasts:
            output, after = self.model.step(x, join_states(self.model, states), self._dt(gaps, x))
            return output, split_states(after), None
        # The reading before this one is held until its gap is known; streams without one have not started.
        if any(place.held is not None for place in places):
            held = torch.stack([x[i] if place.held is None else place.held for i, place in enumerate(places)])
            _, after = self.model.step(held, join_states(self.model, states), self._dt(gaps, x))
            started = torch.tensor([place.held is not None for place in places])
            states = tuple(
                torch.where(started.view(-1, 1), new, old) for new, old in zip(split_states(after), states, strict=True)
            )
        output, _ = self.model.step(x, join_states(self.model, states), self._dt([self._horizon] * len(x), x))
        return output, states, x

    def _dt(self, gaps: list[float], x: Tensor) -> float | Tensor | None:
        if not self._timed:
            return None
        return gaps[0] if len(gaps) == 1 else x.new_tensor(gaps)


def _where(name: Name) -> str:
    return "" if name is None else f" of stream {name!r}"


def _pick(value: Tensor, index: int) -> Tensor:
    """Return the part of a batch of states that belongs to one stream, with a batch axis of 1."""
    return value[:, index : index + 1].clone() if value.dim() == 3 else value[index : index + 1].clone()
