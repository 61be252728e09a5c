"""Networks around a recurrent layer: one answer per sequence, one per reading, or a forecast of the next reading.

A network carries its own scaling as buffers, so that a saved or exported network takes and returns values in the
caller's units. Missing values are filled before a network sees them (`lrcnet.data.fill_missing`).

Axes: B batch, T time, n input channels.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from lrcnet.errors import check_flag, check_kind, one_of, positive_size
from lrcnet.saving import Saveable
from lrcnet.sequence import check_lengths
from lrcnet.tracing import dispatcher_needed, values_are_readable

EMBEDDING_RANGE = 0.05
Pooling = Literal["last", "mean", "max"]
POOLINGS: tuple[Pooling, ...] = ("last", "mean", "max")
Dt = Tensor | PackedSequence | float | None
# The buffers that `set_input_scaling`, `set_target_scaling` and `set_time_unit` fill; absent until then.
SCALING = ("input_mean", "input_scale", "target_mean", "target_scale", "time_unit")


def dense(width: int, outputs: int) -> nn.Linear:
    """Return a linear read-out with Glorot-uniform weights and zero bias, as in the authors' release."""
    layer = nn.Linear(positive_size("width", width), positive_size("classes", outputs))
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def _apply_linear(linear: Any, features: Tensor) -> Tensor:
    """Return linear(features); a plain layer without gradients by one call of torch.

    A step of a stream is so short that the look-ups of nn.Module take a tenth of it.
    """
    own = linear.__dict__
    hooked = own["_forward_hooks"] or own["_forward_pre_hooks"]
    if type(linear) is not nn.Linear or hooked or torch.is_grad_enabled() or dispatcher_needed():
        return linear(features)  # type: ignore[no-any-return]
    weights = own["_parameters"]
    return nn.functional.linear(features, weights["weight"], weights["bias"])


class PooledState(NamedTuple):
    """The state of a stream whose answer pools all outputs: the layer's state, their sum or maximum, their number."""

    layer: Any
    pooled: Tensor
    readings: Tensor


class SequenceModel(Saveable, nn.Module):
    """A recurrent layer, a linear read-out, and the scaling of inputs, targets and gaps.

    Args:
        layer: a recurrent layer, called as layer(x) or layer(x, dt=dt) -> (output, state). Its attribute `batch_first`
            says which layout it takes (batch first if it has none); the network always takes (B, T, n).
        width: number of features of the layer's output.
        outputs: number of features of an answer.
    """

    input_mean: Tensor | None
    input_scale: Tensor | None
    target_mean: Tensor | None
    target_scale: Tensor | None
    time_unit: Tensor | None
    takes_tokens = False

    def __init__(self, layer: nn.Module, width: int, outputs: int) -> None:
        super().__init__()
        check_kind("layer", layer, nn.Module, "a module")
        self.layer = layer
        self.width = positive_size("width", width)
        self.outputs = positive_size("outputs", outputs)
        self.head = dense(width, outputs)
        for name in SCALING:
            self.register_buffer(name, None)

    def set_input_scaling(self, mean: Tensor, scale: Tensor) -> None:
        """Feed (x - mean) / scale to the layer from now on; both (n,)."""
        self._set_scaling("input", mean, scale)

    def set_target_scaling(self, mean: Tensor, scale: Tensor) -> None:
        """Return mean + scale * read-out from now on; both (outputs,)."""
        self._set_scaling("target", mean, scale)

    def set_time_unit(self, unit: float) -> None:
        """Divide dt by `unit` from now on; for layers without a `time_scale` of their own (LSTM, GRU, MGU)."""
        if not 0 < unit < float("inf"):
            raise ValueError(f"the unit of time must be a finite number above 0, but is {unit}; pass a typical gap")
        self.time_unit = self.head.weight.new_tensor(unit).detach()

    def _set_scaling(self, what: str, mean: Tensor, scale: Tensor) -> None:
        mean, scale = (torch.as_tensor(value).detach().to(self.head.weight).clone() for value in (mean, scale))
        if mean.dim() != 1 or mean.shape != scale.shape:
            raise ValueError(
                f"mean and scale of the {what}s must be vectors of one length, but have shapes {tuple(mean.shape)} and "
                f"{tuple(scale.shape)}; pass one value per channel"
            )
        if not bool((scale > 0).all()) or not bool(mean.isfinite().all()):
            raise ValueError(f"the scale of the {what}s must be above 0 and their mean finite; use 1 for a constant")
        setattr(self, f"{what}_mean", mean)
        setattr(self, f"{what}_scale", scale)

    def _run(self, x: Tensor | PackedSequence, dt: Dt, lengths: Tensor | None) -> tuple[Tensor | PackedSequence, Any]:
        """Run the layer over checked and scaled input; return its output, (B, T, width) or packed, and its state."""
        given = self._pack(x, lengths)
        data = self.scale_inputs(given.data if isinstance(given, PackedSequence) else given)
        ready = given._replace(data=data) if isinstance(given, PackedSequence) else data
        batch_first = bool(getattr(self.layer, "batch_first", True))
        swap = not batch_first and isinstance(ready, Tensor)
        ready = ready.transpose(0, 1) if swap and isinstance(ready, Tensor) else ready
        step = self._scale_dt(dt)
        step = step.transpose(0, 1) if isinstance(step, Tensor) and step.dim() == 2 and not batch_first else step
        # torch's own layers take no dt.
        output, state = self.layer(ready) if step is None else self.layer(ready, dt=step)
        return output.transpose(0, 1) if swap else output, state

    def _pack(self, x: Tensor | PackedSequence, lengths: Tensor | None) -> Tensor | PackedSequence:
        owner, axes = type(self).__name__, "(batch, time)" if self.takes_tokens else "(batch, time, channels)"
        if isinstance(x, PackedSequence):
            if lengths is not None:
                raise ValueError("a PackedSequence knows its lengths, but lengths were given too; leave them out")
            return x
        if not isinstance(x, Tensor) or x.dim() != (2 if self.takes_tokens else 3):
            given = f"of shape {tuple(x.shape)}" if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise ValueError(f"{owner} expects a tensor {axes} or a PackedSequence, but x is {given}; reshape it")
        if not x.shape[1]:
            raise ValueError(f"{owner} needs at least one reading per sequence, but x has shape {tuple(x.shape)}")
        return x if lengths is None else pack_padded_sequence(x, check_lengths(lengths, x), True, False)

    def scale_inputs(self, x: Tensor) -> Tensor:
        """Scale readings (..., n); a hook for networks that embed tokens."""
        if self.input_mean is None or self.input_scale is None:
            return x
        return (x - self.input_mean) / self.input_scale

    def _scale_dt(self, dt: Dt) -> Dt:
        if dt is None or self.time_unit is None:
            return dt
        if isinstance(dt, PackedSequence):
            return dt._replace(data=dt.data / self.time_unit)
        if isinstance(dt, Tensor):
            return dt / self.time_unit
        return dt / self.time_unit.item() if values_are_readable(self.time_unit) else dt / self.time_unit

    def _read_out(self, features: Tensor) -> Tensor:
        answer = _apply_linear(self._modules["head"], features)
        if self.target_mean is None or self.target_scale is None:
            return answer
        return self.target_mean + self.target_scale * answer

    def _step_layer(self, x: Tensor, state: Any, dt: float | Tensor | None) -> tuple[Tensor, Any]:
        step = getattr(self.layer, "step", None)
        if step is None:
            raise TypeError(
                f"a stream needs a layer with a method step(x, state, dt), but {type(self.layer).__name__} has none; "
                "use a layer of lrcnet"
            )
        return step(self.scale_inputs(x), state, self._scale_dt(dt))  # type: ignore[no-any-return]

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        # torch ignores entries of buffers that are None, so those that the dictionary brings are made first.
        for name in SCALING:
            stored = state_dict.get(f"{prefix}{name}")
            if stored is not None and getattr(self, name) is None:
                setattr(self, name, self.head.weight.new_empty(stored.shape).detach())
            elif stored is None and f"{prefix}head.weight" in state_dict:
                setattr(self, name, None)
        super()._load_from_state_dict(state_dict, prefix, *others)


class Tagger(SequenceModel):
    """A recurrent layer and a linear read-out of each of its outputs.

    Args:
        layer: see `SequenceModel`.
        width: number of features of the layer's output.
        classes: number of logits, or of values, per reading.

    >>> tagger = lrcnet.Tagger(lrcnet.LRCU(7, 5, batch_first=True), 5, 3)
    >>> tagger(torch.randn(2, 32, 7), lengths=torch.tensor([32, 20])).shape
    torch.Size([2, 32, 3])
    """

    def __init__(self, layer: nn.Module, width: int, classes: int) -> None:
        super().__init__(layer, width, classes)

    def forward(self, x: Tensor | PackedSequence, dt: Dt = None, lengths: Tensor | None = None) -> Any:
        """Return an answer for every reading.

        Args:
            x: (B, T, n), or a PackedSequence.
            dt: None, a number, (B, T), or packed as x; the time before each reading.
            lengths: (B,), the number of readings of each sequence; the rest is padding.

        Returns:
            (B, T, classes), with zeros at the padding; a PackedSequence if x is one.
        """
        output, _ = self._run(x, dt, lengths)
        if not isinstance(output, PackedSequence):
            return self._read_out(output)
        answers = output._replace(data=self._read_out(output.data))
        return answers if isinstance(x, PackedSequence) else _unpack(answers, x.shape[1])

    def step(self, x: Tensor, state: Any = None, dt: float | Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the answer (B, classes) to one reading x (B, n), and the new state; or both without B."""
        output, new = self._step_layer(x, state, dt)
        return self._read_out(output), new


class Classifier(SequenceModel):
    """A recurrent layer and a linear read-out of its pooled outputs; tokens are embedded first.

    Args:
        layer: see `SequenceModel`.
        width: number of features of the layer's output.
        classes: number of logits.
        pooling: "last" reads the output after the last reading (of a bidirectional layer: after the last reading of
            each direction), "mean" and "max" pool the outputs after all readings.
        vocabulary: number of tokens, or 0 if the inputs are numbers.
        embedding: number of features of a token, which is the layer's input size. Padding counts as a token like any
            other, unless `lengths` are given.

    >>> classifier = lrcnet.Classifier(lrcnet.LRCU(3, 5, batch_first=True), 5, 2, pooling="mean")
    >>> classifier(torch.randn(4, 9, 3), lengths=torch.tensor([9, 4, 1, 7])).shape
    torch.Size([4, 2])
    """

    embedding: nn.Embedding | None

    def __init__(
        self,
        layer: nn.Module,
        width: int,
        classes: int,
        *,
        pooling: Pooling = "last",
        vocabulary: int = 0,
        embedding: int = 0,
    ) -> None:
        if positive_size("vocabulary", vocabulary, least=0):
            positive_size("embedding", embedding)
        # The embedding is drawn before the read-out, so that seeds keep their meaning.
        weight = torch.empty(vocabulary, embedding).uniform_(-EMBEDDING_RANGE, EMBEDDING_RANGE) if vocabulary else None
        super().__init__(layer, width, classes)
        self.pooling = one_of("pooling", pooling, POOLINGS)
        self.embedding = None if weight is None else nn.Embedding(vocabulary, embedding, _weight=weight)
        self.takes_tokens = weight is not None

    def forward(self, x: Tensor | PackedSequence, dt: Dt = None, lengths: Tensor | None = None) -> Tensor:
        """Return one answer (B, classes) per sequence.

        Args:
            x: (B, T, n), tokens (B, T), or a PackedSequence.
            dt: None, a number, (B, T), or packed as x; the time before each reading.
            lengths: (B,), the number of readings of each sequence; the rest is padding and changes nothing.
        """
        output, _ = self._run(x, dt, lengths)
        if isinstance(output, PackedSequence):
            padded, counts = pad_packed_sequence(output, batch_first=True)
            return self._read_out(self._pool(padded, counts.to(padded.device)))
        return self._read_out(self._pool(output, None))

    def step(self, x: Tensor, state: Any = None, dt: float | Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the answer (B, classes) after one more reading x (B, n), and the new state; or both without B.

        The state is the layer's, or a `PooledState` if the answer pools all outputs.
        """
        if self.pooling == "last":
            output, new = self._step_layer(x, state, dt)
            return self._read_out(output), new
        if state is not None:
            check_kind("state", state, PooledState, "the state of an earlier step")
        output, new = self._step_layer(x, None if state is None else state.layer, dt)
        pooled, count = output, output.new_ones(())
        if state is not None:
            pooled = torch.maximum(state.pooled, output) if self.pooling == "max" else state.pooled + output
            count = state.readings + 1
        answer = self._read_out(pooled if self.pooling == "max" else pooled / count)
        return answer, PooledState(new, pooled, count)

    def scale_inputs(self, x: Tensor) -> Tensor:
        return super().scale_inputs(x) if self.embedding is None else self.embedding(x)

    def _pool(self, output: Tensor, lengths: Tensor | None) -> Tensor:
        """Pool (B, T, width) over time, within each sequence's length."""
        if self.pooling == "last":
            last = output[:, -1] if lengths is None else output[torch.arange(len(output)), lengths - 1]
            if not getattr(self.layer, "bidirectional", False):
                return last
            half = output.shape[-1] // 2  # the reverse direction has read everything at the first reading
            return torch.cat([last[:, :half], output[:, 0, half:]], -1)
        if lengths is None:
            return output.mean(1) if self.pooling == "mean" else output.amax(1)
        inside = (torch.arange(output.shape[1], device=output.device) < lengths.unsqueeze(-1)).unsqueeze(-1)
        if self.pooling == "max":
            return output.masked_fill(~inside, float("-inf")).amax(1)
        return (output * inside).sum(1) / lengths.unsqueeze(-1)


class Regressor(Classifier):
    """A recurrent layer and numbers read out of its pooled outputs; a `Classifier` whose answers are values.

    >>> lrcnet.Regressor(lrcnet.LRCU(3, 5, batch_first=True), 5, 1)(torch.randn(4, 9, 3)).shape
    torch.Size([4, 1])
    """


class Forecaster(Tagger):
    """A recurrent layer that forecasts, after every reading, the first channels of the next one.

    dt is the time that passes *after* each reading, until the one that is forecast; see docs/time.md.

    Args:
        layer: see `SequenceModel`.
        width: number of features of the layer's output.
        channels: number of channels to forecast: the first ones of the input.
        residual: whether the read-out is the change from the reading to the next one; the scaling of the targets is
            then that of the changes.

    >>> forecaster = lrcnet.Forecaster(lrcnet.LRCU(2, 5, batch_first=True), 5, 2)
    >>> forecaster(torch.randn(4, 9, 2)).shape, forecaster.forecast(torch.randn(4, 9, 2), 3).shape
    (torch.Size([4, 9, 2]), torch.Size([4, 3, 2]))
    """

    def __init__(self, layer: nn.Module, width: int, channels: int, *, residual: bool = True) -> None:
        super().__init__(layer, width, channels)
        self.residual = check_flag("residual", residual)

    def forward(self, x: Tensor | PackedSequence, dt: Dt = None, lengths: Tensor | None = None) -> Any:
        """Return forecasts (B, T, channels) of the reading that follows each reading; packed if x is packed.

        Args:
            x: (B, T, n), or a PackedSequence.
            dt: None, a number, (B, T), or packed as x; the time from each reading to the next one.
            lengths: (B,), the number of readings of each sequence; forecasts at the padding mean nothing.
        """
        change = super().forward(x, dt, lengths)
        if not self.residual:
            return change
        if isinstance(x, PackedSequence):
            return change._replace(data=change.data + x.data[..., : self.outputs])
        return change + x[..., : self.outputs]

    def step(self, x: Tensor, state: Any = None, dt: float | Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the forecast (B, channels) for the time dt after the reading x (B, n), and the new state."""
        answer, new = super().step(x, state, dt)
        return answer + x[..., : self.outputs] if self.residual else answer, new

    def forecast(
        self, x: Tensor, steps: int, dt: Dt = None, lengths: Tensor | None = None, gaps: Tensor | float | None = None
    ) -> Tensor:
        """Return forecasts (B, steps, channels) of the readings that follow each sequence, each fed back.

        Channels beyond the forecast ones (masks, known inputs) keep their last value.

        Args:
            x: (B, T, n).
            steps: number of readings to forecast.
            dt: the times after the readings of x; the last one of each sequence leads to its first forecast.
            lengths: (B,), the number of readings of each sequence.
            gaps: the times between forecasts, a number or (B, steps - 1); needed with dt.
        """
        positive_size("steps", steps)
        if dt is not None and gaps is None and steps > 1:
            raise ValueError("gaps between the forecasts must be given with dt, but are None; pass a typical gap")
        output, state = self._run(x, dt, lengths)
        answers = self._read_out(_unpack(output, x.shape[1]) if isinstance(output, PackedSequence) else output)
        last = torch.full(x.shape[:1], x.shape[1] - 1) if lengths is None else torch.as_tensor(lengths).to(x.device) - 1
        samples = torch.arange(len(x))
        reading, answer = x[samples, last], answers[samples, last]
        forecasts = [answer + reading[:, : self.outputs] if self.residual else answer]
        for gap in _columns(gaps, steps - 1):
            reading = torch.cat([forecasts[-1], reading[:, self.outputs :]], -1)
            forecast, state = self.step(reading, state, gap)
            forecasts.append(forecast)
        return torch.stack(forecasts, 1)


def _columns(dt: Tensor | float | None, steps: int) -> list[Any]:
    """Return the gap of each step: a number, (B,) or None."""
    if isinstance(dt, Tensor) and dt.dim() == 2:
        if dt.shape[1] != steps:
            raise ValueError(f"there must be {steps} gaps per sequence, but there are {dt.shape[1]}; pass one per step")
        return list(dt.unbind(1))
    return [dt] * steps


def _unpack(answers: PackedSequence, steps: int) -> Tensor:
    return pad_packed_sequence(answers, batch_first=True, total_length=steps)[0]
