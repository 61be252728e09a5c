"""The backward pass through time: a program carries the gradients of SAMPLES samples' states in registers.

It computes each sigmoid again, and writes the gradients of f, u and w of every unfolding. `weights` makes the weights'
gradients of them, for all points at once. The weights stay on chip if RESIDENT, so that COLUMNS = UNITS; otherwise
every unfolding streams them from the cache in tiles of COLUMNS postsynaptic units.
"""

import triton
import triton.language as tl

from lrcnet.kernels.triton.functions import sigmoid
from lrcnet.kernels.triton.unit import NONE, advance_backward


@triton.jit(do_not_specialize=["steps", "batch"])
def scan_backward(
    grad, grad_t, grad_b, grad_u, before, before_point, gaps, gap_t, gap_b, a, b, g, k, o, e_l, k_eps,
    saved, currents, g_start, g_gaps, units, steps, batch, m, unfolds,
    SATURATED: tl.constexpr, ELASTANCE: tl.constexpr, SOLVER: tl.constexpr, SEVERAL: tl.constexpr,
    SAMPLES: tl.constexpr, UNITS: tl.constexpr, COLUMNS: tl.constexpr, RESIDENT: tl.constexpr,
):  # fmt: skip
    """Write the gradients that follow from `grad`, that of all states.

    Args:
        grad: (T, B, m) by its strides.
        before: the states before every unfolding, (T, K, B, m), `before_point` numbers from one to the next.
        gaps: dt, with its strides along time and batch.
        saved: (T, K, B, planes, m), as the forward pass wrote it.
        currents: room for the gradients of f, u and w, (T, K, B, 2 or 3, m).
        g_start: room for those of the first states, (B, m).
        g_gaps: room for those of dt, (T, B).
        units: room for each sample's part of the gradients of e_l, k_eps, g_l and p, (B, 4, m).
    """
    ELASTIC: tl.constexpr = ELASTANCE != NONE
    OUT_PLANES: tl.constexpr = 3 if ELASTIC else 2
    PLANES: tl.constexpr = OUT_PLANES + 1 if SEVERAL else OUT_PLANES
    sample = tl.program_id(0).to(tl.int64) * SAMPLES + tl.arange(0, SAMPLES)
    unit = tl.arange(0, UNITS)
    known = sample < batch
    there = known[:, None] & (unit < m)
    leak_potential = tl.load(e_l + unit, mask=unit < m, other=0.0)[None]
    width = tl.load(k_eps + unit, mask=unit < m, other=0.0)[None]
    column = tl.arange(0, COLUMNS)
    if RESIDENT:
        place = unit[:, None] * m + column
        synapse = (unit < m)[:, None] & (column < m)
        slope = tl.load(a + place, mask=synapse, other=0.0)[None]
        offset = tl.load(b + place, mask=synapse, other=0.0)[None]
        conductance = tl.load(g + place, mask=synapse, other=0.0)[None]
        strength = tl.load(k + place, mask=synapse, other=0.0)[None]
        if ELASTIC:
            coupling = tl.load(o + place, mask=synapse, other=0.0)[None]
    gh = tl.zeros([SAMPLES, UNITS], currents.dtype.element_ty)
    g_e_l = tl.zeros([SAMPLES, UNITS], currents.dtype.element_ty)
    g_k_eps = tl.zeros([SAMPLES, UNITS], currents.dtype.element_ty)
    g_leak = tl.zeros([SAMPLES, UNITS], currents.dtype.element_ty)
    g_bias = tl.zeros([SAMPLES, UNITS], currents.dtype.element_ty)
    for step in range(steps):
        # In 64 bits: a time stride of 32 bits times t may not fit into 32.
        time = tl.zeros([1], tl.int64) + (steps - 1 - step)
        gh += tl.load(grad + (time * grad_t + sample * grad_b)[:, None] + unit * grad_u, mask=there, other=0.0)
        gap = tl.load(gaps + time * gap_t + sample * gap_b, mask=known, other=0.0)
        d = (gap / unfolds)[:, None]
        g_gap = tl.zeros([SAMPLES, UNITS], currents.dtype.element_ty)
        for count in range(unfolds):
            unfold = unfolds - 1 - count
            point = ((time * unfolds + unfold) * batch + sample)[:, None]
            kept = saved + point * PLANES * m + unit
            F = tl.load(kept, mask=there, other=0.0)
            U = tl.load(kept + m, mask=there, other=0.0)
            w = F
            if ELASTIC:
                w = tl.load(kept + 2 * m, mask=there, other=0.0)
            h = tl.load(before + point * before_point + unit, mask=there, other=0.0)
            gh, gf, gu, gw, gd, ge, gk = advance_backward(
                gh, h, d, F, U, w, leak_potential, width, SATURATED, ELASTANCE, SOLVER
            )
            # An infinite gap must not make NaN of units that are not there.
            gf = tl.where(there, gf, 0.0)
            gu = tl.where(there, gu, 0.0)
            gw = tl.where(there, gw, 0.0)
            g_gap += gd
            g_e_l += ge
            g_leak += gf + gu
            out = currents + point * OUT_PLANES * m + unit
            tl.store(out, gf, mask=there)
            tl.store(out + m, gu, mask=there)
            if ELASTIC:
                g_k_eps += gk
                g_bias += gw
                tl.store(out + 2 * m, gw, mask=there)
            y = h[:, :, None]
            if RESIDENT:
                s = sigmoid(y * slope + offset)
                gy = (gf[:, None] * conductance + gu[:, None] * strength) * (s * (1.0 - s)) * slope
                # An infinite state makes NaN of a synapse that is not there: 0 times infinity.
                gy = tl.where(synapse[None], gy, 0.0)
                if ELASTIC:
                    gy += gw[:, None] * coupling
            else:
                gy = tl.zeros([SAMPLES, UNITS, COLUMNS], h.dtype)
                for first in range(0, m, COLUMNS):
                    place = unit[:, None] * m + first + column
                    synapse = (unit < m)[:, None] & (first + column < m)
                    tile = tl.broadcast_to((first + column)[None], [SAMPLES, COLUMNS])
                    part = tl.gather(gf, tile, 1)[:, None] * tl.load(g + place, mask=synapse, other=0.0)[None]
                    part += tl.gather(gu, tile, 1)[:, None] * tl.load(k + place, mask=synapse, other=0.0)[None]
                    a_tile = tl.load(a + place, mask=synapse, other=0.0)[None]
                    s = sigmoid(y * a_tile + tl.load(b + place, mask=synapse, other=0.0)[None])
                    gy += tl.where(synapse[None], part * (s * (1.0 - s)) * a_tile, 0.0)
                    if ELASTIC:
                        gy += tl.gather(gw, tile, 1)[:, None] * tl.load(o + place, mask=synapse, other=0.0)[None]
            gh = tl.where(there, gh + tl.sum(gy, 2), 0.0)
        g_gap = tl.sum(tl.where(there, g_gap, 0.0), 1) / unfolds
        tl.store(g_gaps + time * batch + sample, g_gap, mask=known)
    tl.store(g_start + sample[:, None] * m + unit, gh, mask=there)
    at = units + sample[:, None] * 4 * m + unit
    tl.store(at, g_e_l, mask=there)
    tl.store(at + m, g_k_eps, mask=there)
    tl.store(at + 2 * m, g_leak, mask=there)
    tl.store(at + 3 * m, g_bias, mask=there)
