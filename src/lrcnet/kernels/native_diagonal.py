"""The loops over time of a diagonal LRC on the CPU: tensors as the arguments of the compiled function.

Axes: T time, B batch, m hidden units, R letters.
"""

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


def scan(
    terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float, mixed: bool, elastance: str,
    solver: str, unfolds: int, batch_first: bool,
) -> Tensor:  # fmt: skip
    """Return all states; see `lrcnet.kernels.diagonal`."""
    states = new_sequence(terms, h.shape[1], batch_first)
    _Call(terms, h, dt, letters, dt_value).run(states, mixed, elastance, solver, unfolds)
    return states


def scan_backward(
    grad: Tensor, states: Tensor, terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float,
    mixed: bool, elastance: str, solver: str, unfolds: int, batch_first: bool, want_dt: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of terms, h, dt (empty unless wanted) and letters."""
    call = _Call(terms, h, dt, letters, dt_value)
    of_terms = new_sequence(terms, terms.shape[2], batch_first)
    of_h = torch.zeros_like(call.h)
    of_dt = terms.new_zeros(terms.shape[:2] if want_dt else 0)
    parts = terms.new_zeros(call.tasks, *call.letters.shape)
    grad = resolve(grad)
    # The gradient of a sum is one number, with strides of 0.
    given = grad if grad.stride(2) == 0 else with_unit_stride(grad)
    call.run(with_unit_stride(states), mixed, elastance, solver, unfolds, (given, of_terms, of_h, of_dt, parts))
    return of_terms, of_h, of_dt, parts.sum(0)[:, : h.shape[1]].contiguous()


class _Call:
    """The tensors of a call, laid out as the compiled library reads them."""

    def __init__(self, terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float) -> None:
        batch = terms.shape[1]
        self.terms, self.h = with_unit_stride(terms), resolve(h).contiguous()
        self.dt, self.dt_value = None if dt is None else resolve(dt), dt_value
        width = -(-h.shape[1] // _VECTOR) * _VECTOR
        self.letters = functional.pad(resolve(letters), (0, width - h.shape[1])).contiguous()
        vectors = batch * width // _VECTOR
        self.tasks = max(1, min(torch.get_num_threads(), vectors * _VECTOR // _FEWEST_UNITS))

    def run(
        self,
        states: Tensor,
        mixed: bool,
        elastance: str,
        solver: str,
        unfolds: int,
        gradients: tuple[Tensor, Tensor, Tensor, Tensor, Tensor] | None = None,
    ) -> None:
        """Fill the states, or the gradients if there are any."""
        (steps, batch, both), dt = self.terms.shape, self.dt
        numbers = [
            *(self.tasks, int(mixed), ELASTANCE_CODES[elastance], SOLVER_CODES[solver]),
            *(steps, batch, both // 2, unfolds, self.letters.shape[1]),
            *(self.terms.data_ptr(), *self.terms.stride()[:2], self.h.data_ptr()),
            *((0, 0, 0) if dt is None else (dt.data_ptr(), *dt.stride())),
            *(self.dt_value, self.letters.data_ptr(), states.data_ptr(), *states.stride()[:2]),
        ]
        if gradients is None:
            numbers += [0] * 10
        else:
            given, of_terms, of_h, of_dt, of_letters = gradients
            numbers += [
                given.data_ptr(),
                *given.stride()[:2],
                min(given.stride(2), 1),
                of_terms.data_ptr(),
                *of_terms.stride()[:2],
            ]
            numbers += [of_h.data_ptr(), of_dt.data_ptr() if of_dt.numel() else 0, of_letters.data_ptr()]
        if steps and batch:
            native.call("diagonal")(IS_DOUBLE[self.terms.dtype], *numbers)
