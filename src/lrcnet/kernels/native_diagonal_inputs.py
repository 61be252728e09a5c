"""The loops over time of a diagonal LRC with the linear map of its inputs, on the CPU.

Axes: T time, B batch, n inputs, m hidden units.
"""

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet.kernels.diagonal import new_sequence, with_unit_stride
from lrcnet.kernels.native_diagonal import Call, Gradients, count_tasks, fill_up
from lrcnet.tracing import resolve

# A block of a sample's terms should stay in the first cache, beside the weights that make it.
_LONGEST_BLOCK, _NUMBERS = 64, 4096


def serves(batch: int, units: int) -> bool:
    """Return whether every thread that has work can have samples of its own."""
    return count_tasks(batch, units) <= batch


def scan_inputs(
    x: Tensor, weight: Tensor, bias: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float,
    mixed: bool, elastance: str, solver: str, unfolds: int, batch_first: bool,
) -> Tensor:  # fmt: skip
    """Return all states; see `lrcnet.kernels.diagonal_inputs`."""
    states = new_sequence(x, h.shape[1], batch_first)
    call = Call(h, dt, letters, dt_value, mixed, elastance, solver, unfolds)
    inputs = _Inputs(call, x, weight, bias)
    call.run(states, inputs=[*inputs.given(), *[0] * 5])
    return states


def scan_inputs_backward(
    grad: Tensor, states: Tensor, x: Tensor, weight: Tensor, bias: Tensor, h: Tensor, dt: Tensor | None,
    letters: Tensor, dt_value: float, mixed: bool, elastance: str, solver: str, unfolds: int, batch_first: bool,
    want_x: bool, want_dt: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of x and dt (empty unless wanted), weight, bias, h and letters."""
    call = Call(h, dt, letters, dt_value, mixed, elastance, solver, unfolds)
    inputs, gradients = _Inputs(call, x, weight, bias), Gradients(call, grad, want_dt)
    n, both = x.shape[2], 2 * call.width
    of_x = new_sequence(x, n, batch_first) if want_x else x.new_empty(0, 0, 0)
    padding = (0, inputs.width - n, 0, call.width - call.units)
    transposed = functional.pad(inputs.planes, padding).contiguous()
    parts = x.new_zeros(call.tasks, n + 1, both)
    wanted = [transposed.data_ptr(), of_x.data_ptr(), *of_x.stride()[:2], parts.data_ptr()]
    call.run(with_unit_stride(states), gradients, inputs=[*inputs.given(), *wanted])
    of_map = parts.sum(0).view(n + 1, 2, call.width)[:, :, : call.units].reshape(n + 1, -1)
    of_weight, of_bias = of_map[:n].t().contiguous(), of_map[n].clone()
    return of_x, of_weight, of_bias, gradients.of_h, gradients.of_dt, gradients.of_letters()


class _Inputs:
    """The inputs and their map, laid out as the compiled library reads them, and its memory for a block of terms."""

    def __init__(self, call: Call, x: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.x, n = resolve(x), x.shape[2]
        self.width = fill_up(n)
        self.planes = resolve(weight).view(2, call.units, n)
        # One row for each input and one for the bias, each with two planes.
        rows = torch.cat([self.planes, resolve(bias).view(2, call.units, 1)], 2).permute(2, 0, 1)
        self.map = functional.pad(rows, (0, call.width - call.units)).contiguous()
        self.block = max(8, min(_LONGEST_BLOCK, _NUMBERS // call.width))
        numbers = self.block * (4 * call.width + self.width) + self.width
        self.scratch = x.new_zeros(call.tasks, numbers)

    def given(self) -> list[int]:
        n = self.x.shape[2]
        memory = [self.map.data_ptr(), self.block, self.scratch.data_ptr()]
        return [n, self.width, self.x.data_ptr(), *self.x.stride(), *memory]
