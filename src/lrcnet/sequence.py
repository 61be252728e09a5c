"""Conversion of a layer's input (batch first, unbatched, packed, with dt) to one time-major form, and back.

Axes: T time, B batch, n inputs, m hidden units. dt_t is the time that passed before x_t.
"""

import re
import warnings
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from lrcnet.cells.checks import check_gaps, check_like, check_number, describe_state
from lrcnet.errors import describe_kind

Dt = float | Tensor | PackedSequence | None
Given = TypeVar("Given")
# What torch says when memory is short, on the CPU and on a GPU, with the size that it asked for.
_SHORTAGE = re.compile(r"DefaultCPUAllocator: .*?\d+ bytes|\w+ out of memory\. Tried to allocate [\d.]+ \w+")


class SequenceMemoryError(RuntimeError, MemoryError):
    """The states of a sequence do not fit into memory; a RuntimeError as torch's own, and a MemoryError as Python's."""


class Sequences(NamedTuple):
    """A batch of sequences, time-major: x (T, B, n), dt a number or (T, B), lengths (B,) where they differ."""

    x: Tensor
    dt: float | Tensor
    lengths: Tensor | None

    def reverse(self) -> "Sequences":
        """Order the readings from last to first: x_t then follows the gap dt_{t+1}, the last reading dt_0."""
        dt = self.dt
        if isinstance(dt, Tensor) and dt.shape[0]:
            steps = torch.arange(dt.shape[0], device=dt.device).unsqueeze(-1)
            last = self._last_index().unsqueeze(0)
            dt = dt.gather(0, torch.where(steps < last, steps + 1, torch.zeros_like(steps)).expand_as(dt))
            # Padding keeps dt = 0, which leaves the state of an ODE unchanged.
            dt = torch.where(steps <= last, dt, torch.zeros_like(dt)) if self.lengths is not None else dt
            dt = self.flip(dt)
        return Sequences(self.flip(self.x), dt, self.lengths)

    def flip(self, values: Tensor) -> Tensor:
        """Reverse (T, B, ...) in time within each sequence's own length; padding stays where it is."""
        if self.lengths is None:
            return values.flip(0)
        steps = torch.arange(values.shape[0], device=values.device).unsqueeze(-1)
        last = self._last_index().unsqueeze(0)
        index = torch.where(steps <= last, last - steps, steps)
        return values.gather(0, index.reshape(*index.shape, *[1] * (values.dim() - 2)).expand_as(values))

    def last_state(self, states: Tensor, start: Tensor) -> Tensor:
        """Select the state (B, m) after each sequence's last step; a copy of `start` if there are no steps."""
        if not states.shape[0]:
            return start.clone()
        if self.lengths is None:
            return states[-1]
        return states[self._last_index(), torch.arange(states.shape[1], device=states.device)]

    def _last_index(self) -> Tensor:
        if self.lengths is None:
            steps, batch = self.x.shape[:2]
            return torch.full((batch,), steps - 1, device=self.x.device)
        return self.lengths - 1


class Layout(NamedTuple):
    """The layout of the caller's batch, in which the result is returned."""

    batch_first: bool
    batched: bool
    packed: PackedSequence | None

    def restore(self, output: Tensor, lengths: Tensor | None) -> Tensor | PackedSequence:
        """Bring an output (T, B, features) into the caller's layout."""
        if self.packed is not None:
            assert lengths is not None
            data = pack_padded_sequence(output, lengths.cpu()).data
            return PackedSequence(
                data, self.packed.batch_sizes, self.packed.sorted_indices, self.packed.unsorted_indices
            )
        if not self.batched:
            return output.squeeze(1)
        return output.transpose(0, 1) if self.batch_first else output

    def arrange_state(self, state: Tensor) -> Tensor:
        """Give a state (layers, B, m), or (layers, m) unbatched, a batch axis and the order of the sequences."""
        if not self.batched:
            return state.unsqueeze(1)
        order = None if self.packed is None else self.packed.sorted_indices
        return state if order is None else state.index_select(1, order)

    def restore_state(self, state: Tensor) -> Tensor:
        """Undo `arrange_state`."""
        if not self.batched:
            return state.squeeze(1)
        order = None if self.packed is None else self.packed.unsorted_indices
        return state if order is None else state.index_select(1, order)


def read_input(
    owner: str, given: Tensor | PackedSequence, dt: Dt, *, features: int, like: Tensor, batch_first: bool, negative: str
) -> tuple[Sequences, Layout]:
    """Check an input and its dt, and bring both into the time-major form.

    Args:
        owner: the layer's name, for messages.
        given: (T, B, n), (B, T, n) if batch_first, (T, n) unbatched, or packed.
        dt: None (1), a number, or one value per step in the layout of the input; for packed input, packed in the same
            way or padded in the caller's order.
        features: the number n of features that the input must have.
        like: a parameter; the input must have its dtype and device.
        negative: the treatment of dt < 0: "error", "clamp" or "allow".
    """
    if isinstance(given, PackedSequence):
        return _read_packed(owner, given, dt, features, like, batch_first, negative)
    if not isinstance(given, Tensor):
        raise TypeError(f"{owner} expects a tensor or a PackedSequence, but was given a {type(given).__name__}")
    if given.dim() not in (2, 3):
        axes = "(batch, time, input)" if batch_first else "(time, batch, input)"
        raise ValueError(
            f"{owner} expects an input of 3 dimensions {axes}, or 2 (time, input) for one sequence, but it has "
            f"{given.dim()}; reshape it"
        )
    check_features(owner, given, features, like)
    layout = Layout(batch_first, batched=given.dim() == 3, packed=None)
    x = given.unsqueeze(1) if not layout.batched else given.transpose(0, 1) if batch_first else given
    step = _read_dt(owner, dt, given.shape[:-1], like, negative)
    if isinstance(step, Tensor):
        step = step.unsqueeze(1) if not layout.batched else step.transpose(0, 1) if batch_first else step
        step = check_gaps(step, negative)
    return Sequences(x, step, None), layout


def _read_packed(
    owner: str, given: PackedSequence, dt: Dt, features: int, like: Tensor, batch_first: bool, negative: str
) -> tuple[Sequences, Layout]:
    if given.data.dim() != 2:
        raise ValueError(f"{owner} expects packed readings of 2 dimensions, but they have {given.data.dim()}")
    check_features(owner, given.data, features, like)
    # Without its indices, a PackedSequence is unpacked in sorted order; the layer computes in that order.
    x, lengths = pad_packed_sequence(PackedSequence(given.data, given.batch_sizes))
    layout = Layout(batch_first, batched=True, packed=given)
    steps, batch = x.shape[:2]
    step: float | Tensor
    if isinstance(dt, PackedSequence):
        if not torch.equal(dt.batch_sizes, given.batch_sizes) or dt.data.dim() != 1:
            raise ValueError(
                f"a packed dt must hold one value per reading, packed as the input (batch sizes "
                f"{given.batch_sizes.tolist()}), but its data has shape {tuple(dt.data.shape)} and batch sizes "
                f"{dt.batch_sizes.tolist()}; pack both with the same lengths"
            )
        check_like(owner, "dt", dt.data, like)
        step, _ = pad_packed_sequence(PackedSequence(dt.data, dt.batch_sizes))
        # Each may have been sorted on its own, or not at all: torch sorts equal lengths in no particular order.
        if dt.unsorted_indices is not None:
            step = step.index_select(1, dt.unsorted_indices)
        if given.sorted_indices is not None:
            step = step.index_select(1, given.sorted_indices)
    else:
        step = _read_dt(owner, dt, (batch, steps) if batch_first else (steps, batch), like, negative)
        if isinstance(step, Tensor):
            step = step.transpose(0, 1) if batch_first else step
            if given.sorted_indices is not None:
                step = step.index_select(1, given.sorted_indices)
    lengths = lengths.to(x.device)
    if isinstance(step, Tensor):
        inside = torch.arange(steps, device=x.device).unsqueeze(-1) < lengths
        step = torch.where(inside, step, torch.zeros_like(step))
        # An error names the offending reading by the caller's sample number, not by its place in the sorted batch.
        if given.unsorted_indices is not None:
            check_gaps(step.index_select(1, given.unsorted_indices), negative)
        step = check_gaps(step, negative)
    return Sequences(x, step, lengths), layout


def check_features(owner: str, x: Tensor, features: int, like: Tensor) -> None:
    """Raise a ValueError unless an input (..., n) has as many features, and the dtype and device of a parameter."""
    check_like(owner, "the input", x, like)
    if x.is_sparse:
        raise ValueError(f"{owner} expects a dense input, but it is sparse; call to_dense() on it")
    if not x.dim():
        raise ValueError(f"{owner} expects {features} features in the last dimension of its input, but it has none")
    if x.shape[-1] != features:
        raise ValueError(
            f"{owner} expects {features} features in the last dimension of its input, but it has {x.shape[-1]} (shape "
            f"{tuple(x.shape)}); set input_size to the number of features"
        )


def _read_dt(owner: str, dt: Dt, shape: tuple[int, ...], like: Tensor, negative: str) -> float | Tensor:
    if dt is None:
        return 1.0
    if isinstance(dt, PackedSequence):
        raise ValueError("a packed dt goes with a packed input, but the input is a tensor; pass dt as a tensor")
    if not isinstance(dt, Tensor):
        return check_number("dt", dt, negative)
    check_like(owner, "dt", dt, like)
    if dt.dim() == 0:
        return dt.expand(shape)
    if tuple(dt.shape) != tuple(shape):
        raise ValueError(
            f"dt must be a number or have shape {tuple(shape)}, one value per step in the layout of the input, but has "
            f"{tuple(dt.shape)}"
        )
    return dt


class StackedLayer(Protocol):
    """The attributes of a layer that determine the shape of its states."""

    hidden_size: int
    num_layers: int
    bidirectional: bool


def initial_state(layer: StackedLayer, what: str, given: Tensor | None, x: Tensor, layout: Layout) -> Tensor:
    """Check initial states and return them as (L*D, B, m) in the order of the sequences x (T, B, n); zeros if None."""
    depth = layer.num_layers * (2 if layer.bidirectional else 1)
    if given is None:
        return x.new_zeros(depth, x.shape[1], layer.hidden_size)
    shape = (depth, x.shape[1], layer.hidden_size) if layout.batched else (depth, layer.hidden_size)
    if not isinstance(given, Tensor):
        raise TypeError(describe_state(what, shape, given))
    if given.shape != shape:
        raise ValueError(
            f"{what} must have shape {shape}, that is (layers * directions, {'batch, ' if layout.batched else ''}"
            f"hidden), but has {tuple(given.shape)}"
        )
    check_like(type(layer).__name__, what, given, x)
    return layout.arrange_state(given)


def check_dropout(dropout: float, num_layers: int) -> float:
    """Return `dropout` if it is a probability; a bool means that the positional arguments are in a wrong order."""
    if isinstance(dropout, bool) or not isinstance(dropout, int | float):
        raise TypeError(f"dropout must be a number from 0 to 1, but is {dropout!r}; the order is as in torch.nn.GRU")
    if not 0 <= dropout <= 1:
        raise ValueError(f"dropout must be from 0 to 1, but is {dropout}; it is the probability of zeroing an element")
    if dropout and num_layers == 1:
        warnings.warn(f"dropout acts between layers, so dropout={dropout} does nothing with num_layers=1", stacklevel=4)
    return float(dropout)


def check_lengths(lengths: Tensor, x: Tensor) -> Tensor:
    """Return lengths (B,) on the CPU, as torch's packing takes them."""
    try:
        counts = torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"lengths must be {x.shape[0]} whole numbers, one per sequence, but are {describe_kind(lengths)}; pass the "
            "number of readings of each"
        ) from error
    if counts.is_meta or counts.is_sparse or counts.is_complex():
        raise ValueError(f"lengths must be whole numbers, but are {counts.dtype} on {counts.device}; convert them")
    counts = counts.cpu()
    if counts.shape != x.shape[:1] or counts.is_floating_point():
        raise ValueError(
            f"lengths must be {x.shape[0]} whole numbers, one per sequence, but have shape {tuple(counts.shape)} and "
            f"type {counts.dtype}; pass the number of readings of each"
        )
    wrong = ((counts < 1) | (counts > x.shape[1])).nonzero()
    if len(wrong):
        place = int(wrong[0])
        raise ValueError(
            f"lengths must be from 1 to {x.shape[1]}, the padded length, but lengths[{place}] is {int(counts[place])}; "
            "leave out empty sequences"
        )
    return counts


def as_sequence(
    layer: StackedLayer, x: Tensor, dt: float | Tensor | None, batch_first: bool
) -> tuple[Tensor, float | Tensor | None, int]:
    """Turn a reading x (B, n) or (n,) and its dt into a sequence of one step; returns its time axis too."""
    owner = type(layer).__name__
    if layer.bidirectional:
        raise ValueError(
            f"{owner}.step needs a layer that only looks back, but this one is bidirectional; build it with "
            "bidirectional=False"
        )
    if not isinstance(x, Tensor) or x.dim() not in (1, 2):
        given = f"has {x.dim()}" if isinstance(x, Tensor) else f"is a {type(x).__name__}"
        raise ValueError(f"{owner}.step expects x of 2 dimensions (batch, input) or 1 (input), but x {given}")
    axis = 1 if batch_first and x.dim() == 2 else 0
    return x.unsqueeze(axis), dt.unsqueeze(axis) if isinstance(dt, Tensor) and dt.dim() else dt, axis


def explain_shortage(
    owner: str, given: Tensor | PackedSequence, batch_first: bool, error: RuntimeError, remedy: str
) -> RuntimeError:
    """Return the error for a run over sequences that torch ended: one sentence if memory was short, else the same one.

    Args:
        owner: the layer's name.
        given: the layer's input.
        batch_first: its layout.
        error: torch's error.
        remedy: the way to run over sequences of this length.
    """
    reason = _SHORTAGE.search(str(error))
    if reason is None:
        return error
    if isinstance(given, PackedSequence):
        steps, batch = len(given.batch_sizes), int(given.batch_sizes[0])
    else:
        time = 1 if batch_first and given.dim() == 3 else 0
        steps, batch = given.shape[time], given.shape[1 - time] if given.dim() == 3 else 1
    fewer = "run over fewer sequences at a time, or " if batch > 1 else ""
    # Programs that look for a shortage on a GPU catch torch's own type.
    kind = torch.OutOfMemoryError if isinstance(error, torch.OutOfMemoryError) else SequenceMemoryError
    return kind(
        f"{owner} must have memory for all {steps} steps of {batch} sequence(s) at once, but there is not enough "
        f"({reason[0]}); {fewer}{remedy}"
    )


def under_autocast(tensor: Tensor) -> bool:
    """Return whether autocast is on for the tensor's device."""
    return not tensor.is_meta and torch.is_autocast_enabled(tensor.device.type)


def cast_to(given: Given, dtype: torch.dtype) -> Given:
    """Cast half-precision tensors to a dtype; return anything else unchanged."""
    if isinstance(given, PackedSequence):
        return given._replace(data=cast_to(given.data, dtype))
    if isinstance(given, Tensor) and given.dtype in (torch.float16, torch.bfloat16):
        return given.to(dtype)  # type: ignore[return-value]
    return given
