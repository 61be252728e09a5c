"""The loops over time of a diagonal LRC on a GPU: kernels and their launches; see `lrcnet.kernels.diagonal`.

A program carries one sample and one block of units through time. Its units do not see each other, so every number stays
in registers.

Axes: T time, B batch, m hidden units, K unfoldings, R letters.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from lrcnet.kernels.diagonal import ROWS, new_sequence, with_unit_stride
from lrcnet.kernels.problem import ELASTANCE_CODES, SOLVER_CODES
from lrcnet.kernels.triton.functions import sigmoid
from lrcnet.kernels.triton.unit import advance, advance_backward, saturate
from lrcnet.tracing import resolve

UNITS, WARPS = 64, 2
"""Units of one program, and its groups of threads."""
BLOCK = 32
"""Steps whose gradients of letters are summed on their own: sums of sums keep more digits than one long sum."""

_ROWS = tl.constexpr(len(ROWS))


@triton.jit
def load_letters(letters, m, unit, there):
    """Return a, b, g, k, o, e_l, k_eps, g_in, k_in, g_l, w_in of some units."""
    at = letters + unit
    return (
        tl.load(at, mask=there, other=0.0),
        tl.load(at + m, mask=there, other=0.0),
        tl.load(at + 2 * m, mask=there, other=0.0),
        tl.load(at + 3 * m, mask=there, other=0.0),
        tl.load(at + 4 * m, mask=there, other=0.0),
        tl.load(at + 5 * m, mask=there, other=0.0),
        tl.load(at + 6 * m, mask=there, other=0.0),
        tl.load(at + 7 * m, mask=there, other=0.0),
        tl.load(at + 8 * m, mask=there, other=0.0),
        tl.load(at + 9 * m, mask=there, other=0.0),
        tl.load(at + 10 * m, mask=there, other=0.0),
    )


@triton.jit
def read_terms(first, second, g_in, k_in, g_l, w_in, MIXED: tl.constexpr):
    """Return the inputs' parts of f, u, w, and the inputs' synapse if MIXED."""
    if MIXED:
        s = sigmoid(first)
        return g_l + g_in * s, g_l + k_in * s, second, s
    else:
        return first, second, w_in, first


@triton.jit
def open_gates(h, f_in, u_in, w_in, a, b, g, k, o):
    """Return F, U, w and the unit's own synapse at states h."""
    s = sigmoid(a * h + b)
    F, U = saturate(f_in + g * s, u_in + k * s, True)
    return F, U, w_in + o * h, s


@triton.jit
def diagonal_forward(
    terms, terms_t, terms_b, start, gaps, gap_t, gap_b, letters, states, state_t, state_b, steps, m, unfolds,
    MIXED: tl.constexpr, ELASTANCE: tl.constexpr, SOLVER: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Write all states.

    Args:
        terms: (T, B, 2 m), with its strides along time and batch; so gaps and states.
        start: first states (B, m).
        letters: (R, m).
    """
    sample = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    there = unit < m
    a, b, g, k, o, e_l, k_eps, g_in, k_in, g_l, p = load_letters(letters, m, unit, there)
    h = tl.load(start + sample * m + unit, mask=there, other=0.0)
    for t in range(steps):
        # In 64 bits: a time stride of 32 bits times t may not fit into 32.
        time = sample * 0 + t
        d = tl.load(gaps + time * gap_t + sample * gap_b) / unfolds
        at = terms + time * terms_t + sample * terms_b + unit
        first = tl.load(at, mask=there, other=0.0)
        second = tl.load(at + m, mask=there, other=0.0)
        f_in, u_in, w_in, _ = read_terms(first, second, g_in, k_in, g_l, p, MIXED)
        for _fold in range(unfolds):
            F, U, w, _ = open_gates(h, f_in, u_in, w_in, a, b, g, k, o)
            h = advance(h, d, F, U, w, e_l, k_eps, ELASTANCE, SOLVER)
        tl.store(states + time * state_t + sample * state_b + unit, h, mask=there)


@triton.jit
def diagonal_backward(
    grad, grad_t, grad_b, grad_u, before, before_t, before_b, start, terms, terms_t, terms_b, gaps, gap_t, gap_b,
    letters, of_terms, of_terms_t, of_terms_b, of_start, of_gaps, of_letters, steps, batch, m, unfolds,
    MIXED: tl.constexpr, ELASTANCE: tl.constexpr, SOLVER: tl.constexpr, UNITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gradients of terms and first states, and each program's part of those of gaps and letters.

    Args:
        grad: gradients of the states, with all strides.
        before: the states, of which each step reads that of the step before it.
        of_gaps: (blocks of units, T, B).
        of_letters: (B, R, m).
    """
    sample = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    there = unit < m
    a, b, g, k, o, e_l, k_eps, g_in, k_in, g_l, p = load_letters(letters, m, unit, there)
    zero = a * 0.0
    gh = zero
    sum_a, sum_b, sum_g, sum_k, sum_o, sum_e, sum_eps = zero, zero, zero, zero, zero, zero, zero
    sum_gin, sum_kin, sum_gl, sum_p = zero, zero, zero, zero
    for done in range(0, steps, BLOCK):
        part_a, part_b, part_g, part_k, part_o, part_e, part_eps = zero, zero, zero, zero, zero, zero, zero
        part_gin, part_kin, part_gl, part_p = zero, zero, zero, zero
        for i in range(tl.minimum(BLOCK, steps - done)):
            time = sample * 0 + (steps - 1 - done - i)
            d = tl.load(gaps + time * gap_t + sample * gap_b) / unfolds
            at = terms + time * terms_t + sample * terms_b + unit
            first = tl.load(at, mask=there, other=0.0)
            second = tl.load(at + m, mask=there, other=0.0)
            f_in, u_in, w_in, open_in = read_terms(first, second, g_in, k_in, g_l, p, MIXED)
            earlier = tl.load(
                before + (time - 1) * before_t + sample * before_b + unit, mask=there & (time > 0), other=0.0
            )
            h_start = tl.where(time > 0, earlier, tl.load(start + sample * m + unit, mask=there, other=0.0))
            gh += tl.load(grad + time * grad_t + sample * grad_b + unit * grad_u, mask=there, other=0.0)
            gf, gu, gw, gd = zero, zero, zero, zero
            for done_folds in range(unfolds):
                # The state that the unfolding starts from is computed again: there are few unfoldings.
                h = h_start
                for _fold in range(unfolds - 1 - done_folds):
                    F, U, w, _ = open_gates(h, f_in, u_in, w_in, a, b, g, k, o)
                    h = advance(h, d, F, U, w, e_l, k_eps, ELASTANCE, SOLVER)
                F, U, w, s = open_gates(h, f_in, u_in, w_in, a, b, g, k, o)
                g_h, g_f, g_u, g_w, g_d, g_e, g_eps = advance_backward(
                    gh, h, d, F, U, w, e_l, k_eps, True, ELASTANCE, SOLVER
                )
                argument = (g_f * g + g_u * k) * (s * (1.0 - s))
                part_a += argument * h
                part_b += argument
                part_g += g_f * s
                part_k += g_u * s
                part_o += g_w * h
                part_e += g_e
                part_eps += g_eps
                gf += g_f
                gu += g_u
                gw += g_w
                gd += g_d
                gh = g_h + argument * a + g_w * o
            to = of_terms + time * of_terms_t + sample * of_terms_b + unit
            if MIXED:
                part_gin += gf * open_in
                part_kin += gu * open_in
                part_gl += gf + gu
                tl.store(to, (gf * g_in + gu * k_in) * (open_in * (1.0 - open_in)), mask=there)
                tl.store(to + m, gw, mask=there)
            else:
                part_p += gw
                tl.store(to, gf, mask=there)
                tl.store(to + m, gu, mask=there)
            total = tl.sum(tl.where(there, gd, 0.0), 0) / unfolds
            tl.store(of_gaps + (tl.program_id(1) * (sample * 0 + steps) + time) * batch + sample, total)
        sum_a += part_a
        sum_b += part_b
        sum_g += part_g
        sum_k += part_k
        sum_o += part_o
        sum_e += part_e
        sum_eps += part_eps
        sum_gin += part_gin
        sum_kin += part_kin
        sum_gl += part_gl
        sum_p += part_p
    tl.store(of_start + sample * m + unit, gh, mask=there)
    row = of_letters + sample * _ROWS * m + unit
    tl.store(row, sum_a, mask=there)
    tl.store(row + m, sum_b, mask=there)
    tl.store(row + 2 * m, sum_g, mask=there)
    tl.store(row + 3 * m, sum_k, mask=there)
    tl.store(row + 4 * m, sum_o, mask=there)
    tl.store(row + 5 * m, sum_e, mask=there)
    tl.store(row + 6 * m, sum_eps, mask=there)
    tl.store(row + 7 * m, sum_gin, mask=there)
    tl.store(row + 8 * m, sum_kin, mask=there)
    tl.store(row + 9 * m, sum_gl, mask=there)
    tl.store(row + 10 * m, sum_p, mask=there)


def _constants(mixed: bool, elastance: str, solver: str) -> dict[str, int | bool]:
    codes = {"ELASTANCE": ELASTANCE_CODES[elastance], "SOLVER": SOLVER_CODES[solver]}
    return {"MIXED": mixed, **codes, "UNITS": UNITS, "num_warps": WARPS}


def _gaps(terms: Tensor, dt: Tensor | None, dt_value: float) -> Tensor:
    steps, batch, _ = terms.shape
    return terms.new_full((1, 1), dt_value).expand(steps, batch) if dt is None else resolve(dt)


def scan(
    terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float, mixed: bool, elastance: str,
    solver: str, unfolds: int, batch_first: bool,
) -> Tensor:  # fmt: skip
    """Return all states; see `lrcnet.kernels.diagonal`."""
    steps, batch, units = *terms.shape[:2], h.shape[1]
    states, terms, gaps = new_sequence(terms, units, batch_first), with_unit_stride(terms), _gaps(terms, dt, dt_value)
    if states.numel():
        with torch.cuda.device_of(terms):
            diagonal_forward[batch, triton.cdiv(units, UNITS)](
                terms, *terms.stride()[:2], resolve(h).contiguous(), gaps, *gaps.stride(),
                resolve(letters).contiguous(), states, *states.stride()[:2], steps, units, unfolds,
                **_constants(mixed, elastance, solver),
            )  # fmt: skip
    return states


def scan_backward(
    grad: Tensor, states: Tensor, terms: Tensor, h: Tensor, dt: Tensor | None, letters: Tensor, dt_value: float,
    mixed: bool, elastance: str, solver: str, unfolds: int, batch_first: bool, want_dt: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of terms, h, dt (empty unless wanted) and letters."""
    steps, batch, units = *terms.shape[:2], h.shape[1]
    blocks = triton.cdiv(units, UNITS)
    of_terms = new_sequence(terms, terms.shape[2], batch_first)
    of_h, of_gaps = terms.new_zeros(batch, units), terms.new_zeros(blocks, steps, batch)
    of_letters = terms.new_zeros(batch, len(ROWS), units)
    terms, states, grad, gaps = (
        with_unit_stride(terms),
        with_unit_stride(states),
        resolve(grad),
        _gaps(terms, dt, dt_value),
    )
    if states.numel():
        with torch.cuda.device_of(terms):
            diagonal_backward[batch, blocks](
                grad, *grad.stride(), states, *states.stride()[:2], resolve(h).contiguous(), terms,
                *terms.stride()[:2], gaps, *gaps.stride(), resolve(letters).contiguous(), of_terms,
                *of_terms.stride()[:2], of_h, of_gaps, of_letters, steps, batch, units, unfolds,
                BLOCK=BLOCK, **_constants(mixed, elastance, solver),
            )  # fmt: skip
    of_dt = of_gaps.sum(0) if want_dt else terms.new_zeros(0)
    return of_terms, of_h, of_dt, of_letters.sum(0)
