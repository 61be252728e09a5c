"""The contract of a recurrent cell, and what every cell that is an ODE shares."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.errors import DivergenceWarning, one_of, positive_size
from lrcnet.solvers import SOLVERS, advance

NEGATIVE_DT = ("error", "clamp", "allow")


class Cell(nn.Module, ABC):
    """One step of a recurrence: `forward(x, h=None, dt=None) -> h`.

    A subclass says what of its parameters it computes once per call (`values`), once per input (`hold`) and once per
    step (`advance`); a whole sequence (`scan`) follows.
    """

    input_size: int
    hidden_size: int
    takes_dt: bool = True
    # Whether `hold` may be given all steps at once: a matrix product gains from it, a synapse per pair of neurons would
    # need memory for all of them.
    holds_sequence: bool = True
    negative_dt: str = "error"

    @abstractmethod
    def values(self) -> Any:
        """The parameters as they are computed with, constraints applied; once per call."""

    @abstractmethod
    def hold(self, values: Any, x: Tensor) -> Any:
        """What an input x (..., n) contributes to every step while it is held constant."""

    @abstractmethod
    def advance(self, values: Any, held: Any, h: Tensor, dt: float | Tensor) -> Tensor:
        """The state (B, m) after a time dt, a number or (B, 1), under the held input."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw new initial values from torch's global generator."""

    def read_out(self, h: Tensor) -> Tensor:
        """The output (..., m) of a state; the state itself unless the cell has an output map."""
        return h

    def forward(self, x: Tensor, h: Tensor | None = None, dt: float | Tensor | None = None) -> Tensor:
        """Advance the state by one input.

        Args:
            x: (B, n), or (n,) unbatched.
            h: (B, m) or (m,); zeros if None.
            dt: elapsed time, a number or (B,) (a 0-d tensor for unbatched x); 1 if None.

        Returns:
            The new state, (B, m) or (m,).
        """
        return self._in_batch(self._one_step, x, h, dt)

    def scan(self, x: Tensor, h: Tensor, dt: float | Tensor, *, batch_major: bool = False) -> Tensor:
        """All states (T, B, m) of a sequence x (T, B, n) from h (B, m), dt a number or (T, B).

        This is the plain loop. `batch_major` says that the caller keeps samples together in memory; it changes the
        strides of the answer, nothing else.
        """
        step = self.stepper(x)
        start, states = h, []
        gaps = dt.unsqueeze(-1).unbind() if isinstance(dt, Tensor) else None
        for t in range(x.shape[0]):
            h = step(t, h, dt if gaps is None else gaps[t])
            states.append(h)
        if not states:
            return x.new_empty(0, *h.shape)
        whole = torch.stack(states, 1).transpose(0, 1) if batch_major else torch.stack(states)
        warn_if_diverged(x, start, dt, whole)
        return whole

    def stepper(self, x: Tensor) -> Callable[[int, Tensor, float | Tensor], Tensor]:
        """How the plain loop steps through x (T, B, n): (t, h, dt) -> h, all that can be prepared prepared."""
        values = self.values()
        # Cut once, not at each step: the gradient of every held[t] would be as large as that of the whole.
        held = self.hold(values, x).unbind() if self.holds_sequence else None
        readings = x.unbind()

        def step(t: int, h: Tensor, dt: float | Tensor) -> Tensor:
            contribution = self.hold(values, readings[t]) if held is None else held[t]
            return self.advance(values, contribution, h, dt)

        return step

    def _one_step(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        values = self.values()
        return self.advance(values, self.hold(values, x), h, dt)

    def _in_batch(
        self,
        call: Callable[[Tensor, Tensor, float | Tensor], Tensor],
        x: Tensor,
        h: Tensor | None,
        dt: float | Tensor | None,
    ) -> Tensor:
        """Check the arguments of one step and call it with a batch axis, whether the caller has one or not."""
        kind = type(self).__name__
        if not isinstance(x, Tensor) or x.dim() not in (1, 2):
            given = f"has {x.dim()}" if isinstance(x, Tensor) else f"is a {type(x).__name__}"
            raise ValueError(f"{kind} expects x of 2 dimensions (batch, input) or 1 (input), but x {given}; reshape it")
        like = next(self.parameters())
        check_like(kind, "x", x, like)
        if x.shape[-1] != self.input_size:
            raise ValueError(
                f"x must have {self.input_size} features in its last dimension, but has {x.shape[-1]}; set input_size "
                "to the number of features"
            )
        state_shape = (*x.shape[:-1], self.hidden_size)
        if h is None:
            h = x.new_zeros(state_shape)
        check_like(kind, "h", h, like)
        if h.shape != state_shape:
            raise ValueError(f"h must have shape {state_shape}, but has {tuple(h.shape)}; it is (batch, hidden)")
        step = self._check_step(x, dt)
        if x.dim() == 2:
            return call(x, h, step)
        return call(x.unsqueeze(0), h.unsqueeze(0), step).squeeze(0)

    def _check_step(self, x: Tensor, dt: float | Tensor | None) -> float | Tensor:
        """dt of one step as a number or (B, 1)."""
        if dt is None:
            return 1.0
        if not self.takes_dt:
            raise ValueError(
                f"{type(self).__name__} has no notion of elapsed time, but dt was given; pass time_feature=True to "
                "feed dt as one more input, or leave dt out"
            )
        if not isinstance(dt, Tensor):
            return check_number("dt", dt, self.negative_dt)
        if dt.shape not in ((), x.shape[:-1]):
            raise ValueError(
                f"dt must be a number or have shape {tuple(x.shape[:-1])}, one value per sample, but has "
                f"{tuple(dt.shape)}"
            )
        check_like(type(self).__name__, "dt", dt, x)
        return check_sign(dt, self.negative_dt).reshape(-1, 1)


class ODECell(Cell):
    """A cell that is an ODE dh/dt = drive - decay * h with the input held constant over a step."""

    def set_solver(self, solver: str, unfolds: int, negative_dt: str) -> None:
        """Choose how a step is taken.

        Args:
            solver: name in `lrcnet.solvers.SOLVERS`.
            unfolds: K, solver steps per input.
            negative_dt: "error", "clamp" to 0, or "allow" (explicit Euler only).
        """
        self.solver = one_of("solver", solver, SOLVERS)
        self.unfolds = positive_size("unfolds", unfolds)
        self.negative_dt = one_of("negative_dt", negative_dt, NEGATIVE_DT)
        if negative_dt == "allow" and solver != "euler":
            raise ValueError(
                f"negative_dt='allow' needs solver='euler', but the solver is {solver!r}; only an explicit Euler step "
                "can go back in time without dividing by zero or blowing up"
            )

    @abstractmethod
    def split(self, values: Any, held: Any, h: Tensor) -> tuple[Tensor, Tensor]:
        """(decay, drive) of dh/dt = drive - decay * h at states h (B, m)."""

    def advance(self, values: Any, held: Any, h: Tensor, dt: float | Tensor) -> Tensor:
        return advance(self.solver, lambda state: self.split(values, held, state), h, dt, self.unfolds)

    def derivative(self, x: Tensor, h: Tensor) -> Tensor:
        """dh/dt at states h (B, m) or (m,) under inputs x (B, n) or (n,)."""

        def slope(x: Tensor, h: Tensor, _: float | Tensor) -> Tensor:
            values = self.values()
            decay, drive = self.split(values, self.hold(values, x), h)
            return drive - decay * h

        return self._in_batch(slope, x, h, None)


def check_like(owner: str, what: str, given: Tensor, like: Tensor) -> None:
    """Raise unless a tensor has the dtype and device that a module computes in."""
    if given.dtype != like.dtype:
        raise ValueError(
            f"{owner} computes in {like.dtype}, but {what} is {given.dtype}; convert one of them, e.g. "
            f"{what}.to({like.dtype})"
        )
    if given.device != like.device:
        raise ValueError(f"{owner} is on {like.device}, but {what} is on {given.device}; move one of them")


def check_number(what: str, given: float, negative: str) -> float:
    """A dt given as one number, with the rule for negative values applied."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"{what} must be None, a number or a tensor, but is {given!r}; pass one of these")
    if not math.isfinite(given):
        raise ValueError(f"{what} must be finite, but is {given}; pass the elapsed time before the input")
    if given < 0 and negative == "error":
        raise ValueError(f"{what} must be >= 0, but is {given:g}; {NEGATIVE_ADVICE}")
    return max(float(given), 0.0) if negative == "clamp" else float(given)


NEGATIVE_ADVICE = "sort the readings by time, or pass negative_dt='clamp' or 'allow' to the layer"


def check_sign(dt: Tensor, negative: str) -> Tensor:
    """A dt tensor, (T, B) or (B,), with the rule for negative values applied; the first offender is named."""
    if negative == "clamp":
        return dt.clamp(min=0)
    if negative == "error" and values_are_readable(dt) and bool((dt < 0).any()):
        index = (dt < 0).nonzero()[0].tolist()
        names = ("t", "sample") if len(index) == 2 else ("sample",) * len(index)
        place = ", ".join(f"{name}={i}" for name, i in zip(names, index, strict=True))
        raise ValueError(f"dt must be >= 0, but dt[{place}] is {dt[tuple(index)].item():g}; {NEGATIVE_ADVICE}")
    return dt


def warn_if_diverged(x: Tensor, start: Tensor, dt: float | Tensor, states: Tensor) -> None:
    """Warn, naming step and sample, if finite inputs led to a state (T, B, m) that is not finite."""
    # A state that has left the finite numbers does not come back, so the last one tells; the rest is looked at then.
    if not values_are_readable(states) or bool(states[-1].isfinite().all()):
        return
    given = [x, start, dt] if isinstance(dt, Tensor) else [x, start]
    if all(bool(tensor.isfinite().all()) for tensor in given):
        t, sample, _ = (int(i) for i in (~states.isfinite()).nonzero()[0])
        warnings.warn(
            f"the state stopped being finite at step {t} of sample {sample} although the input is finite; use a stable "
            "solver ('hybrid' or 'exponential'), more unfolds or a smaller dt",
            DivergenceWarning,
            stacklevel=2,
        )


def values_are_readable(*tensors: Tensor) -> bool:
    """Whether Python may look at numbers now: not while torch.compile, torch.export or torch.func trace."""
    if torch.compiler.is_compiling():
        return False
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return not any(tensor.is_meta for tensor in tensors)
