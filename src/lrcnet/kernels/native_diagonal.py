"""The loops over time of a diagonal LRC on the CPU: tensors as the arguments of the compiled function.

Axes: T time, B batch, m hidden units, R letters.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet.kernels import native
from lrcnet.kernels.diagonal import new_sequence, with_unit_stride
from lrcnet.kernels.problem import ELASTANCE_CODES, IS_DOUBLE, SOLVER_CODES
from lrcnet.tracing import resolve

# The widest vector of float32; rows of letters are filled up to whole vectors.
_VECTOR = 16
# A thread should have at least this many units, or starting it takes longer than its work.
_FEWEST_UNITS = 64
_NO_TERMS, _NO_OF_TERMS, _NO_INPUTS = [0] * 3, [0] * 3, [0] * 14


def scan(
    terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float, mixed: bool, elastance: str,
    solver: str, unfolds: int, batch_first: bool,
) -> Tensor:  # fmt: skip
    """Return all states; see `lrcnet.kernels.diagonal`."""
    states, terms = new_sequence(terms, h.shape[1], batch_first), with_unit_stride(terms)
    call = Call(h, dt, letters, dt_value, mixed, elastance, solver, unfolds)
    call.run(states, terms=[terms.data_ptr(), *terms.stride()[:2]])
    return states


def scan_backward(
    grad: Tensor, states: Tensor, terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float,
    mixed: bool, elastance: str, solver: str, unfolds: int, batch_first: bool, want_dt: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of terms, h, dt (empty unless wanted) and letters."""
    of_terms, terms = new_sequence(terms, terms.shape[2], batch_first), with_unit_stride(terms)
    call = Call(h, dt, letters, dt_value, mixed, elastance, solver, unfolds)
    gradients = Gradients(call, grad, want_dt)
    call.run(
        with_unit_stride(states),
        gradients,
        terms=[terms.data_ptr(), *terms.stride()[:2]],
        of_terms=[of_terms.data_ptr(), *of_terms.stride()[:2]],
    )
    return of_terms, gradients.of_h, gradients.of_dt, gradients.of_letters()


def fill_up(count: int) -> int:
    """Return the next number of whole vectors."""
    return -(-count // _VECTOR) * _VECTOR


def count_tasks(batch: int, units: int) -> int:
    """Return how many threads a call keeps busy."""
    return max(1, min(torch.get_num_threads(), batch * fill_up(units) // _FEWEST_UNITS))


class Call:
    """What calls have in common, laid out as the compiled library reads it."""

    def __init__(
        self, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float, mixed: bool, elastance: str, solver: str,
        unfolds: int,
    ) -> None:  # fmt: skip
        self.batch, self.units = h.shape
        self.h, self.unfolds = resolve(h).contiguous(), unfolds
        self.dt, self.dt_value = None if dt is None else resolve(dt), dt_value
        self.width = fill_up(self.units)
        self.letters = functional.pad(resolve(letters), (0, self.width - self.units)).contiguous()
        self.tasks = count_tasks(self.batch, self.units)
        self.codes = int(mixed), ELASTANCE_CODES[elastance], SOLVER_CODES[solver]

    def run(
        self,
        states: Tensor,
        gradients: "Gradients | None" = None,
        *,
        terms: list[int] = _NO_TERMS,
        of_terms: list[int] = _NO_OF_TERMS,
        inputs: list[int] = _NO_INPUTS,
    ) -> None:
        """Fill the states, or the gradients if there are any, from the terms or the inputs."""
        steps, dt = len(states), self.dt
        numbers: list[Any] = [
            *(self.tasks, *self.codes, steps, self.batch, self.units, self.unfolds, self.width),
            *(*terms, self.h.data_ptr()),
            *((0, 0, 0) if dt is None else (dt.data_ptr(), *dt.stride())),
            *(self.dt_value, self.letters.data_ptr(), states.data_ptr(), *states.stride()[:2]),
            *([0] * 4 if gradients is None else gradients.given()),
            *of_terms,
            *([0] * 3 if gradients is None else gradients.wanted()),
            *inputs,
        ]
        if steps and self.batch:
            native.call("diagonal")(IS_DOUBLE[self.h.dtype], *numbers)


class Gradients:
    """The gradients of the states, and room for those that every backward pass returns."""

    def __init__(self, call: Call, grad: Tensor, want_dt: bool) -> None:
        grad = resolve(grad)
        # The gradient of a sum is one number, with strides of 0.
        self.grad = grad if grad.stride(2) == 0 else with_unit_stride(grad)
        self.units = call.units
        self.of_h = torch.zeros_like(call.h)
        self.of_dt = call.h.new_zeros(grad.shape[:2] if want_dt else 0)
        self.parts = call.h.new_zeros(call.tasks, *call.letters.shape)

    def given(self) -> list[int]:
        return [self.grad.data_ptr(), *self.grad.stride()[:2], min(self.grad.stride(2), 1)]

    def wanted(self) -> list[int]:
        return [self.of_h.data_ptr(), self.of_dt.data_ptr() if self.of_dt.numel() else 0, self.parts.data_ptr()]

    def of_letters(self) -> Tensor:
        """Return the sum of the tasks' parts."""
        return self.parts.sum(0)[:, : self.units].contiguous()
