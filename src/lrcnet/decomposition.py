"""The fused operator expressed by torch's own operators, for exporters that know no others.

torch.export keeps lrcnet::scan as one operator. torch.onnx.export replaces it by this, so that nobody has to choose
backend="reference" before exporting.

Axes: T time, B batch, n inputs, m hidden units.
"""

from typing import Any

import torch
from torch import Tensor

from lrcnet import liquid
from lrcnet.circuit import NO_LETTERS, STEP_LETTERS, constrain
from lrcnet.kernels.operators import SCAN_ARGUMENTS, with_mask
from lrcnet.kernels.problem import Problem
from lrcnet.solvers import advance
from lrcnet.tracing import scan_operator


def scan_plainly(*flat: Any) -> tuple[Tensor, Tensor]:
    """Compute the states of lrcnet::scan from its flat arguments, but not the gates that its gradient needs."""
    *arguments, keep, mask = with_mask(flat, SCAN_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    switches = problem.switches
    circuit = constrain(problem.circuit, switches.scaled)
    names = [name for name in STEP_LETTERS if getattr(circuit, name) is not None]

    def time_major(values: Tensor) -> Tensor:
        return values.transpose(0, 1) if switches.batch_first else values

    def step(h: Tensor, x: Tensor, *others: Tensor) -> Tensor:
        gap, letters = (problem.dt_value, others) if problem.dt is None else (others[0].unsqueeze(-1), others[1:])
        own = NO_LETTERS._replace(**dict(zip(names, letters, strict=True)))
        terms = liquid.input_currents(own, x)
        return advance(
            switches.solver, lambda state: liquid.split(own, terms, state, switches), h, gap, switches.unfolds
        )

    x = time_major(problem.x)
    start = x.new_zeros(x.shape[1], circuit.units) if problem.h0 is None else problem.h0
    sequences = [x] if problem.dt is None else [x, time_major(problem.dt)]
    constants = [getattr(circuit, name) for name in names]
    if isinstance(x.shape[0], int) and x.shape[0] == 1:  # a stream needs no loop
        states = step(start, *(values[0] for values in sequences), *constants).unsqueeze(0)
    else:
        states = scan_operator(step, start, sequences, constants)
    # Only the fused gradient uses the gates; NaN makes sure that a program which mixes the two is noticed.
    saved = x.new_full(problem.saved_shape(), torch.nan) if keep else x.new_empty(0)
    return time_major(states), saved
