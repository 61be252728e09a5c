"""The forward pass: a program carries SAMPLES samples through time, their states (SAMPLES, UNITS) in registers.

The weights of the states' synapses stay on chip if RESIDENT, so that ROWS = UNITS. Otherwise every unfolding streams
them from the cache in tiles of ROWS presynaptic units. UNITS is m, rounded up to a power of two; units past m stay 0.
"""

import triton
import triton.language as tl

from lrcnet.kernels.triton.functions import sigmoid
from lrcnet.kernels.triton.unit import NONE, advance, saturate


@triton.jit(do_not_specialize=["steps", "batch"])
def scan_forward(
    inputs, start, gaps, gap_t, gap_b, a, b, g, k, o, e_l, k_eps, states, state_t, state_b, saved,
    steps, batch, m, unfolds,
    SATURATED: tl.constexpr, ELASTANCE: tl.constexpr, SOLVER: tl.constexpr, KEEP: tl.constexpr, SEVERAL: tl.constexpr,
    SAMPLES: tl.constexpr, UNITS: tl.constexpr, ROWS: tl.constexpr, RESIDENT: tl.constexpr,
):  # fmt: skip
    """Write all states, and if KEEP also F, U, w and the states before each of SEVERAL unfoldings.

    Args:
        inputs: the inputs' part of f, u, w, (T, B, 2 or 3, m).
        start: first states (B, m).
        gaps: dt, with its strides along time and batch.
        states: with their strides along time and batch.
        saved: (T, K, B, planes, m), see `Problem.saved_shape`.
    """
    ELASTIC: tl.constexpr = ELASTANCE != NONE
    IN_PLANES: tl.constexpr = 3 if ELASTIC else 2
    PLANES: tl.constexpr = IN_PLANES + 1 if SEVERAL else IN_PLANES
    sample = tl.program_id(0).to(tl.int64) * SAMPLES + tl.arange(0, SAMPLES)
    unit = tl.arange(0, UNITS)
    known = sample < batch
    there = known[:, None] & (unit < m)
    h = tl.load(start + sample[:, None] * m + unit, mask=there, other=0.0)
    leak_potential = tl.load(e_l + unit, mask=unit < m, other=0.0)[None]
    width = tl.load(k_eps + unit, mask=unit < m, other=0.0)[None]
    row = tl.arange(0, ROWS)
    if RESIDENT:
        place = row[:, None] * m + unit
        synapse = (row < m)[:, None] & (unit < m)
        slope = tl.load(a + place, mask=synapse, other=0.0)[None]
        offset = tl.load(b + place, mask=synapse, other=0.0)[None]
        conductance = tl.load(g + place, mask=synapse, other=0.0)[None]
        strength = tl.load(k + place, mask=synapse, other=0.0)[None]
        if ELASTIC:
            coupling = tl.load(o + place, mask=synapse, other=0.0)[None]
    for t in range(steps):
        # In 64 bits: a time stride of 32 bits times t may not fit into 32.
        time = tl.zeros([1], tl.int64) + t
        gap = tl.load(gaps + time * gap_t + sample * gap_b, mask=known, other=0.0)
        d = (gap / unfolds)[:, None]
        at = inputs + (time * batch + sample)[:, None] * IN_PLANES * m + unit
        f_input = tl.load(at, mask=there, other=0.0)
        u_input = tl.load(at + m, mask=there, other=0.0)
        w_input = f_input
        if ELASTIC:
            w_input = tl.load(at + 2 * m, mask=there, other=0.0)
        for unfold in range(unfolds):
            w = w_input
            if RESIDENT:
                y = h[:, :, None]
                s = sigmoid(y * slope + offset)
                f = f_input + tl.sum(conductance * s, 1)
                u = u_input + tl.sum(strength * s, 1)
                if ELASTIC:
                    w = w_input + tl.sum(coupling * y, 1)
            else:
                f_parts = tl.zeros([SAMPLES, ROWS, UNITS], h.dtype)
                u_parts = tl.zeros([SAMPLES, ROWS, UNITS], h.dtype)
                w_parts = tl.zeros([SAMPLES, ROWS, UNITS], h.dtype)
                for first in range(0, m, ROWS):
                    place = (first + row[:, None]) * m + unit
                    synapse = (first + row < m)[:, None] & (unit < m)
                    y = tl.gather(h, tl.broadcast_to((first + row)[None], [SAMPLES, ROWS]), 1)[:, :, None]
                    tile = tl.load(a + place, mask=synapse, other=0.0)[None]
                    s = sigmoid(y * tile + tl.load(b + place, mask=synapse, other=0.0)[None])
                    f_parts += tl.load(g + place, mask=synapse, other=0.0)[None] * s
                    u_parts += tl.load(k + place, mask=synapse, other=0.0)[None] * s
                    if ELASTIC:
                        w_parts += tl.load(o + place, mask=synapse, other=0.0)[None] * y
                f = f_input + tl.sum(f_parts, 1)
                u = u_input + tl.sum(u_parts, 1)
                if ELASTIC:
                    w = w_input + tl.sum(w_parts, 1)
            F, U = saturate(f, u, SATURATED)
            if KEEP:
                keep = saved + ((time * unfolds + unfold) * batch + sample)[:, None] * PLANES * m + unit
                tl.store(keep, F, mask=there)
                tl.store(keep + m, U, mask=there)
                if ELASTIC:
                    tl.store(keep + 2 * m, w, mask=there)
                if SEVERAL:
                    tl.store(keep + IN_PLANES * m, h, mask=there)
            after = advance(h, d, F, U, w, leak_potential, width, ELASTANCE, SOLVER)
            # An infinite gap must not make NaN of units that are not there.
            h = tl.where(there, after, 0.0)
        tl.store(states + (time * state_t + sample * state_b)[:, None] + unit, h, mask=there)
