"""The contract of a recurrent cell, and the part that every cell that is an ODE shares."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any, ClassVar, final

import torch
from torch import Tensor, nn

from lrcnet.cells.checks import check_gaps, check_like, check_number, describe_state
from lrcnet.errors import one_of, positive_size
from lrcnet.solvers import SOLVERS, ExplicitRungeKutta, advance
from lrcnet.tracing import Unscriptable, is_unknown, scan_operator
from lrcnet.value_checks import warn_if_diverged

NEGATIVE_DT = ("error", "clamp", "allow")

GatesByName = Mapping[str, Tensor]
"""name -> (T, B, m): "forget", "update", "time_constant" ... of every step, whatever a kind of unit has."""


class Cell(Unscriptable, nn.Module, ABC):
    """One step of a recurrence: `forward(x, h=None, dt=None) -> h`.

    The methods marked final are the interface. A subclass overrides hooks only: what it computes from its parameters
    once per call (`values`), from an input once per step (`input_terms`) and then to advance the state (`advance`);
    `reset_parameters`, `read_out` and `gates`; and, if it has a faster way, `_scan` and `_step`.
    """

    input_size: int
    hidden_size: int
    takes_dt: bool = True
    # Whether `input_terms` may be given all steps at once: a matrix product gains from it, a synapse per pair of
    # neurons would need memory for all of them.
    terms_of_all_steps: bool = True
    negative_dt: str = "error"
    # Filled by `scan` while `record_gates` is active, for each thread on its own: others may run the same cell.
    _recorded: "dict[int, list[tuple[Tensor, GatesByName]]] | None" = None

    @property
    def output_size(self) -> int:
        """The number of features of `read_out`."""
        return self.hidden_size

    @final  # type: ignore[misc]  # nn.Module declares forward as an attribute.
    def forward(self, x: Tensor, h: Tensor | None = None, dt: float | Tensor | None = None) -> Tensor:
        """Advance the state by one input.

        Args:
            x: (B, n), or (n,) unbatched.
            h: (B, m) or (m,); zeros if None.
            dt: elapsed time, a number or (B,) (a 0-d tensor for unbatched x); 1 if None.

        Returns:
            The new state, (B, m) or (m,).
        """
        return self.in_batch(self._step, x, h, dt)

    @final
    def scan(self, x: Tensor, h: Tensor, dt: float | Tensor, *, batch_major: bool = False) -> Tensor:
        """Return all states (T, B, m) of a sequence x (T, B, n) from h (B, m), dt a number or (T, B).

        `batch_major` says that the caller keeps samples together in memory; it changes the strides of the answer,
        nothing else.
        """
        runs = self._recorded.get(get_ident()) if self._recorded else None
        if runs is None:
            self._recompute_parameters()
            return self._scan(x, h, dt, batch_major)
        runs.append(self.scan_with_gates(x, h, dt, batch_major=batch_major))
        return runs[-1][0]

    @final
    def scan_with_gates(
        self, x: Tensor, h: Tensor, dt: float | Tensor, *, batch_major: bool = False
    ) -> tuple[Tensor, GatesByName]:
        """Return the states of `scan`, bit for bit, and the gates of every step, which carry no gradient.

        The gates of step t are those that it starts with: at the state before it and its own input.
        """
        self._recompute_parameters()
        return self._scan_with_gates(x, h, dt, batch_major)

    @final
    @contextmanager
    def record_gates(self) -> Iterator[list[tuple[Tensor, GatesByName]]]:
        """Record the states and gates of every `scan` of this cell by this thread, as long as the context lasts.

        >>> layer = lrcnet.LRCU(3, 5)
        >>> with layer.cells[0].record_gates() as runs:
        ...     output, _ = layer(torch.randn(7, 2, 3))
        >>> states, gates = runs[0]
        >>> bool((states == output).all()), gates["elastance"].shape
        (True, torch.Size([7, 2, 5]))
        """
        by_thread: dict[int, list[tuple[Tensor, GatesByName]]] = self.__dict__.setdefault("_recorded", {})
        me = get_ident()
        before, by_thread[me] = by_thread.get(me), []
        try:
            yield by_thread[me]
        finally:
            if before is None:
                del by_thread[me]
            else:
                by_thread[me] = before

    @abstractmethod
    def values(self) -> Any:
        """Return the parameters that are computed with, constraints applied; called once per call."""

    @abstractmethod
    def input_terms(self, values: Any, x: Tensor) -> Any:
        """Return the contribution of an input x (..., n), which is constant over a step."""

    @abstractmethod
    def advance(self, values: Any, terms: Any, h: Tensor, dt: float | Tensor) -> Tensor:
        """Return the state (B, m) after a time dt, a number or (B, 1), given the terms of the input."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw new initial values from torch's global generator."""

    def read_out(self, h: Tensor) -> Tensor:
        """Return the output of a state: the state itself, unless the cell has an output map or motor neurons."""
        return h

    def gates(self, x: Tensor, h: Tensor, states: Tensor, batch_major: bool) -> GatesByName:
        """Return the gates of every step of x (T, B, n) from h (B, m), given the states (T, B, m) after them."""
        return {}

    def _scan(self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool) -> Tensor:
        """Run the plain loop; a hook for cells that have a faster way to the same states."""
        if is_unknown(x.shape[0]):
            return scan_of_unknown_length(_PlainStep(self), x, h, dt)
        step = self._stepper(x)
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

    def _scan_with_gates(
        self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool
    ) -> tuple[Tensor, GatesByName]:
        """Run `_scan`, then compute the gates from its states; a hook for a kernel that keeps them."""
        states = self._scan(x, h, dt, batch_major)
        with torch.no_grad():
            return states, self.gates(x, h, states, batch_major)

    def _step(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        """Advance h (B, m) by one input x (B, n); a hook for cells that have a faster way."""
        values = self.values()
        return self.advance(values, self.input_terms(values, x), h, dt)

    def stepper(self, x: Tensor) -> Callable[[int, Tensor, float | Tensor], Tensor]:
        """Return the step through x (T, B, n), (t, h, dt) -> h, for wrappers that change the state between steps.

        dt is a number or (B, 1).
        """
        return self._stepper(x)

    def _stepper(self, x: Tensor) -> Callable[[int, Tensor, float | Tensor], Tensor]:
        """Return the step of the plain loop through x (T, B, n), (t, h, dt) -> h, with all preparations done."""
        values = self.values()
        # Cut once, not at each step: the gradient of every terms[t] would be as large as that of the whole.
        terms = self.input_terms(values, x).unbind() if self.terms_of_all_steps else None
        readings = x.unbind()

        def step(t: int, h: Tensor, dt: float | Tensor) -> Tensor:
            own = self.input_terms(values, readings[t]) if terms is None else terms[t]
            return self.advance(values, own, h, dt)

        return step

    def _recompute_parameters(self) -> None:
        """Run the hooks by which torch's pruning and its older weight_norm and spectral_norm compute a parameter.

        A layer calls its cells' methods, not the cells themselves, so that torch does not run their hooks.
        """
        hooks = self._forward_pre_hooks
        if hooks:
            for hook in hooks.values():
                if hasattr(hook, "compute_weight") or hasattr(hook, "apply_mask"):
                    hook(self, ())

    def in_batch(
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
        if not isinstance(h, Tensor):
            raise TypeError(describe_state("h", state_shape, h))
        check_like(kind, "h", h, like)
        if h.shape != state_shape:
            raise ValueError(f"h must have shape {state_shape}, but has {tuple(h.shape)}; it is (batch, hidden)")
        step = self._check_step(x, dt)
        if x.dim() == 2:
            return call(x, h, step)
        return call(x.unsqueeze(0), h.unsqueeze(0), step).squeeze(0)

    def _check_step(self, x: Tensor, dt: float | Tensor | None) -> float | Tensor:
        """Return the dt of one step as a number or (B, 1)."""
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
        return check_gaps(dt, self.negative_dt).reshape(-1, 1)


class _PlainStep(nn.Module):
    """One step of a cell's plain loop as a module, so that its parameters can be passed to it as arguments."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        values = self.cell.values()
        return self.cell.advance(values, self.cell.input_terms(values, x), h, dt)


def scan_of_unknown_length(step: nn.Module, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
    """Run the plain loop as one operator, because an exported program works for every length.

    Args:
        step: one step as a module, called as step(x, h, dt), so that its parameters can be passed to it as arguments.
        x, h, dt: as of `Cell.scan`.
    """
    timed = isinstance(dt, Tensor)
    names, values = zip(*step.named_parameters(), *step.named_buffers(), strict=True)

    def body(h: Tensor, x: Tensor, *rest: Tensor) -> Tensor:
        gap = rest[0].unsqueeze(-1) if timed else dt
        new: Tensor = torch.func.functional_call(step, dict(zip(names, rest[timed:], strict=True)), (x, h, gap))
        return new

    return scan_operator(body, h, [x, dt] if isinstance(dt, Tensor) else [x], values)


class ODECell(Cell):
    """A cell that is an ODE dh/dt = drive - decay * h with the input held constant over a step."""

    solvers: ClassVar[tuple[str, ...]] = tuple(SOLVERS)
    """The solvers that this model may use."""

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

    def fastest_decay(self) -> float | None:
        """Return a bound on the rate at which this cell's states can decay, by its parameters; None if unknown."""
        return None

    def longest_certified_step(self) -> float:
        """Return the longest solver step, in units of time, for which a promise of this cell holds; a hook.

        It limits explicit solvers only, and is infinite if the cell promises nothing beyond stability.
        """
        return math.inf

    @property
    def is_explicit(self) -> bool:
        """Whether a step is a fixed number of explicit stages, which are stable for short steps only."""
        return isinstance(SOLVERS[self.solver], ExplicitRungeKutta)

    @final
    def longest_stable_step(self) -> float:
        """Return the dt beyond which a step may overshoot or break a promise of the cell; infinite if there is none."""
        method, decay = SOLVERS[self.solver], self.fastest_decay()
        if not isinstance(method, ExplicitRungeKutta) or not decay:
            return math.inf
        return min(method.stability_limit / decay, self.longest_certified_step()) * self.unfolds

    @abstractmethod
    def split(self, values: Any, terms: Any, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return (decay, drive) of dh/dt = drive - decay * h at states h (B, m)."""

    def advance(self, values: Any, terms: Any, h: Tensor, dt: float | Tensor) -> Tensor:
        return advance(self.solver, lambda state: self.split(values, terms, state), h, dt, self.unfolds)

    def gates(self, x: Tensor, h: Tensor, states: Tensor, batch_major: bool) -> GatesByName:
        values, before = self.values(), states_before(h, states)
        decay, drive = self.split(values, self.input_terms(values, x.flatten(0, 1)), before.flatten(0, 1))
        decay = decay.expand(drive.shape).view_as(before)
        return {"decay": decay, "drive": drive.view_as(before), "time_constant": 1 / decay}

    @final
    def derivative(self, x: Tensor, h: Tensor) -> Tensor:
        """Return dh/dt at states h (B, m) or (m,) under inputs x (B, n) or (n,)."""
        self._recompute_parameters()

        def slope(x: Tensor, h: Tensor, _: float | Tensor) -> Tensor:
            values = self.values()
            decay, drive = self.split(values, self.input_terms(values, x), h)
            return drive - decay * h

        return self.in_batch(slope, x, h, None)


def states_before(h: Tensor, states: Tensor) -> Tensor:
    """Return the states (T, B, m) that the steps start with: h (B, m), then all but the last."""
    return torch.cat([h.unsqueeze(0), states[:-1]]) if len(states) else states
