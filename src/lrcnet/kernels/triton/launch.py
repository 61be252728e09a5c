"""The fused scan on a GPU: a `Problem` as launches of the Triton kernels, forward and backward.

Axes: T time, B batch, n inputs, m hidden units, K unfoldings.
"""

from typing import Any

import torch
import triton
from torch import Tensor

from lrcnet.circuit import LETTERS, STEP_LETTERS, SYNAPTIC_LETTERS, Circuit, check_letters, constrain
from lrcnet.errors import describe_bad_dt, is_bad_dt
from lrcnet.kernels.problem import ELASTANCE_CODES, SOLVER_CODES, Problem, check_switches
from lrcnet.kernels.triton import sizes
from lrcnet.kernels.triton.backward import scan_backward as backward_kernel
from lrcnet.kernels.triton.forward import scan_forward as forward_kernel
from lrcnet.kernels.triton.inputs import input_currents, input_gradients
from lrcnet.kernels.triton.weights import weight_gradients
from lrcnet.tracing import resolve
from lrcnet.value_checks import refuse_bad_gaps, warn_if_diverged


class _Call:
    """The tensors of a checked problem as the kernels read them: time first, letters constrained, without gaps.

    Raises:
        ValueError: for a wrong shape, dtype, device or switch.
    """

    def __init__(self, problem: Problem) -> None:
        problem.check_input()
        check_letters(problem.circuit, problem.switches, problem.x, contiguous=False)
        check_switches(problem.switches)
        problem.check_start_and_gaps()
        self.problem, self.switches = problem, problem.switches
        self.steps, self.batch = problem.time_and_batch
        self.inputs, self.units = problem.x.shape[2], problem.circuit.units
        self.points = self.steps * self.batch
        if self.units > sizes.MOST_UNITS:
            raise ValueError(
                f"a GPU kernel needs at most {sizes.MOST_UNITS} units, but the network has {self.units}; use "
                'backend="reference"'
            )
        self.size = sizes.scan_size(self.units, problem.x.dtype)
        self.elastic = self.switches.elastance != "none"
        self.planes = 3 if self.elastic else 2
        letters = constrain(Circuit._make(_resolve(letter) for letter in problem.circuit), self.switches.scaled)
        # A kernel does not read the letters that its switches do without, but it wants an address.
        self.letters = {
            name: letter.contiguous() if letter is not None and LETTERS[name].used(self.switches) else letters.g_l
            for name, letter in zip(STEP_LETTERS, letters, strict=False)
        }
        self.x = self.time_first(resolve(problem.x))
        scale, shift = letters.input_scale, letters.input_shift
        y = self.x if scale is None else self.x * scale
        self.y = (y if shift is None else y + shift).contiguous()
        self.scale = scale
        self.start = (
            self.x.new_zeros(self.batch, self.units) if problem.h0 is None else resolve(problem.h0).contiguous()
        )
        if problem.dt is None:
            self.gaps = self.x.new_full((1, 1), problem.dt_value).expand(self.steps, self.batch)
        else:
            self.gaps = self.time_first(resolve(problem.dt))

    def time_first(self, values: Tensor) -> Tensor:
        """Return a tensor that is laid out as x with time as its first axis, or the other way round."""
        return values.transpose(0, 1) if self.switches.batch_first else values

    def check_gaps(self) -> None:
        """Raise a ValueError for a dt that is NaN, or negative if the switches say so."""
        value, check_sign = self.problem.dt_value, self.switches.check_dt
        if self.problem.dt is not None:
            refuse_bad_gaps(self.gaps, check_sign=check_sign)
        elif is_bad_dt(value, check_sign):
            raise ValueError(describe_bad_dt("", value))

    def synapses(self) -> list[Tensor]:
        return [self.letters[name] for name in SYNAPTIC_LETTERS]

    def codes(self) -> dict[str, Any]:
        """Return the switches that the passes through time are compiled for."""
        switches = self.switches
        return {
            "SATURATED": switches.saturated,
            "ELASTANCE": ELASTANCE_CODES[switches.elastance],
            "SOLVER": SOLVER_CODES[switches.solver],
            "SEVERAL": switches.unfolds > 1,
            "SAMPLES": self.size.samples,
            "UNITS": self.size.units,
            "RESIDENT": self.size.resident,
        }


def _resolve(letter: Tensor | None) -> Tensor | None:
    return None if letter is None else resolve(letter)


def scan(problem: Problem, keep: bool) -> tuple[Tensor, Tensor]:
    """Return the states, laid out as x, and what the gradient needs, empty unless `keep`; see `operators.run`."""
    call, x = _Call(problem), problem.x
    call.check_gaps()
    states = x.new_empty(problem.states_shape())
    saved = x.new_empty(problem.saved_shape() if keep else (0,))
    if not call.points:
        return states, saved
    time_first, letters = call.time_first(states), call.letters
    currents = x.new_empty(call.points, call.planes, call.units)
    tile, size = sizes.CURRENTS, call.size
    # Triton launches on the current device, which need not be the tensors'.
    with torch.cuda.device_of(x):
        input_currents[triton.cdiv(call.points, tile.points), triton.cdiv(call.units, tile.columns)](
            call.y, *call.synapses(), letters["g_l"], letters["p"], currents, call.points, call.inputs, call.units,
            ELASTIC=call.elastic, BIAS=problem.circuit.p is not None,
            POINTS=tile.points, ROWS=tile.rows, COLUMNS=tile.columns, num_warps=tile.warps,
        )  # fmt: skip
        forward_kernel[(triton.cdiv(call.batch, size.samples),)](
            currents, call.start, call.gaps, *call.gaps.stride(), *call.synapses(), letters["e_l"], letters["k_eps"],
            states, *time_first.stride()[:2], saved, call.steps, call.batch, call.units, call.switches.unfolds,
            **call.codes(), KEEP=keep, ROWS=size.tile, num_warps=size.warps,
        )  # fmt: skip
    warn_if_diverged(call.x, call.start, call.gaps, time_first)
    return states, saved


def scan_backward(
    problem: Problem, grad: Tensor | None, states: Tensor, saved: Tensor, want_x: bool, want_dt: bool
) -> list[Tensor | None]:
    """Return the gradient of each of `TENSORS`, None for those that are absent or not wanted.

    Args:
        states, saved: as `scan` returned them, without gaps in memory.
    """
    call = _Call(problem)
    if grad is None or not call.points:
        return [None if room is None else room.zero_() for room in problem.new_gradients(want_x, want_dt)]
    x, (steps, batch, units) = problem.x, (call.steps, call.batch, call.units)
    unfolds, size, letters = call.switches.unfolds, call.size, call.letters
    if unfolds > 1:
        before = saved.select(3, -1)
    else:
        before = torch.cat([call.start.unsqueeze(0), call.time_first(states)[:-1]]).unsqueeze(1)
    grad = call.time_first(grad)
    currents = x.new_empty(steps, unfolds, batch, call.planes, units)
    g_start, g_gaps = x.new_empty(batch, units), x.new_empty(steps, batch)
    own = x.new_empty(batch, 4, units)
    with torch.cuda.device_of(x):
        backward_kernel[(triton.cdiv(batch, size.samples),)](
            grad, *grad.stride(), before, before.stride(2), call.gaps, *call.gaps.stride(), *call.synapses(),
            letters["e_l"], letters["k_eps"], saved, currents, g_start, g_gaps, own, steps, batch, units, unfolds,
            **call.codes(), COLUMNS=size.tile, num_warps=size.warps_back,
        )  # fmt: skip
        of_states = _sum_weight_gradients(call, before, currents, slice(0, units))
        # The inputs are the same in every unfolding of a step.
        currents = currents.sum(1) if unfolds > 1 else currents
        of_inputs = _sum_weight_gradients(call, call.y, currents, slice(units, None))
        g_y = _input_gradients(call, currents)
    values = dict(zip(SYNAPTIC_LETTERS, torch.cat([of_states, of_inputs], 1), strict=False))
    values |= dict(zip(("e_l", "k_eps", "g_l", "p"), own.sum(0), strict=True))
    values |= {"input_scale": (g_y * call.x).sum((0, 1)), "input_shift": g_y.sum((0, 1))}
    g_x = None
    if want_x:
        g_x = call.time_first(g_y if call.scale is None else g_y * call.scale).contiguous()
    return [
        g_x,
        g_start,
        call.time_first(g_gaps).contiguous() if want_dt else None,
        *(_stored_gradient(problem, name, values.get(name)) for name in STEP_LETTERS),
    ]


def _sum_weight_gradients(call: _Call, y: Tensor, currents: Tensor, rows: slice) -> Tensor:
    """Return the gradients of a, b, g, k and, with an elastance, o in some rows: (4 or 5, rows, m).

    Args:
        y: the presynaptic values of these rows at every point, (..., B, rows).
        currents: the gradients of f, u and w at every point.
    """
    a, b, g, k, _ = (letter[rows] for letter in call.synapses())
    points, tile = currents[..., 0, 0].numel(), sizes.WEIGHTS
    chunk = sizes.chunk_of(points)
    chunks = triton.cdiv(points, chunk)
    sums = currents.new_empty(chunks, 5 if call.elastic else 4, y.shape[-1], call.units)
    if sums.numel():
        weight_gradients[triton.cdiv(y.shape[-1], tile.rows), triton.cdiv(call.units, tile.columns), chunks](
            y, y.stride(-2), a, b, g, k, currents, sums, points, chunk, y.shape[-1], call.units,
            ELASTIC=call.elastic, POINTS=tile.points, ROWS=tile.rows, COLUMNS=tile.columns, num_warps=tile.warps,
        )  # fmt: skip
    return sums.sum(0)


def _input_gradients(call: _Call, currents: Tensor) -> Tensor:
    """Return the gradients of y, (T, B, n), for those of f, u and w."""
    gradients, tile = torch.empty_like(call.y), sizes.INPUTS
    if call.inputs:
        input_gradients[triton.cdiv(call.points, tile.points), triton.cdiv(call.inputs, tile.rows)](
            call.y, *call.synapses(), currents, gradients, call.points, call.inputs, call.units,
            ELASTIC=call.elastic, POINTS=tile.points, ROWS=tile.rows, COLUMNS=tile.columns, num_warps=tile.warps,
        )  # fmt: skip
    return gradients


def _stored_gradient(problem: Problem, name: str, gradient: Tensor | None) -> Tensor | None:
    """Return the gradient of a letter as it is stored for that of its value, as `constrain` makes one of the other."""
    stored, letter = getattr(problem.circuit, name), LETTERS[name]
    if stored is None:
        return None
    if gradient is None or not letter.used(problem.switches):
        return torch.zeros_like(stored, memory_format=torch.contiguous_format)
    if problem.circuit.mask is not None and name in SYNAPTIC_LETTERS:
        gradient = torch.where(problem.circuit.mask, gradient, 0.0)
    if letter.nonnegative:
        # A value below 0 counts as 0, but a gradient that would raise it passes.
        gradient = torch.where((stored >= 0) | (gradient < 0), gradient, 0.0)
    return gradient * letter.unit if problem.switches.scaled else gradient.clone()
