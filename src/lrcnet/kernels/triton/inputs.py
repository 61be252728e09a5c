"""The synapses of the inputs, which do not depend on the state: all points at once, in kernels of their own.

A program has POINTS points and COLUMNS units, and goes through the inputs in tiles of ROWS. In the backward pass it has
POINTS points and ROWS inputs, and goes through the units.
"""

import triton
import triton.language as tl

from lrcnet.kernels.triton.functions import sigmoid


@triton.jit(do_not_specialize=["points"])
def input_currents(
    y, a, b, g, k, o, g_l, p, currents, points, n, m,
    ELASTIC: tl.constexpr, BIAS: tl.constexpr, POINTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the inputs' part of f, u and, with an elastance, w: (points, 2 or 3, m) for inputs y (points, n)."""
    point = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    known, real = point < points, column < m
    f = tl.zeros([POINTS, ROWS, COLUMNS], y.dtype.element_ty)
    u = tl.zeros([POINTS, ROWS, COLUMNS], y.dtype.element_ty)
    w = tl.zeros([POINTS, ROWS, COLUMNS], y.dtype.element_ty)
    for first in range(0, n, ROWS):
        row = first + tl.arange(0, ROWS)
        values = tl.load(y + point[:, None] * n + row, mask=known[:, None] & (row < n), other=0.0)[:, :, None]
        place = (m + row[:, None]) * m + column
        there = (row < n)[:, None] & real
        slope = tl.load(a + place, mask=there, other=0.0)[None]
        offset = tl.load(b + place, mask=there, other=0.0)[None]
        s = sigmoid(values * slope + offset)
        f += tl.load(g + place, mask=there, other=0.0)[None] * s
        u += tl.load(k + place, mask=there, other=0.0)[None] * s
        if ELASTIC:
            w += tl.load(o + place, mask=there, other=0.0)[None] * values
    leak = tl.load(g_l + column, mask=real, other=0.0)
    PLANES: tl.constexpr = 3 if ELASTIC else 2
    place = currents + point[:, None] * PLANES * m + column
    there = known[:, None] & real
    tl.store(place, tl.sum(f, 1) + leak, mask=there)
    tl.store(place + m, tl.sum(u, 1) + leak, mask=there)
    if ELASTIC:
        total = tl.sum(w, 1)
        if BIAS:
            total += tl.load(p + column, mask=real, other=0.0)
        tl.store(place + 2 * m, total, mask=there)


@triton.jit(do_not_specialize=["points"])
def input_gradients(
    y, a, b, g, k, o, currents, gradients, points, n, m,
    ELASTIC: tl.constexpr, POINTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the gradients of y, (points, n), for those of f, u and w, (points, 2 or 3, m)."""
    point = tl.program_id(0).to(tl.int64) * POINTS + tl.arange(0, POINTS)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    there = (point < points)[:, None] & (row < n)
    values = tl.load(y + point[:, None] * n + row, mask=there, other=0.0)[:, :, None]
    total = tl.zeros([POINTS, ROWS, COLUMNS], y.dtype.element_ty)
    PLANES: tl.constexpr = 3 if ELASTIC else 2
    for first in range(0, m, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        place = (m + row[:, None]) * m + column
        synapse = (row < n)[:, None] & (column < m)
        unit = (point < points)[:, None] & (column < m)
        at = currents + point[:, None] * PLANES * m + column
        gf = tl.load(at, mask=unit, other=0.0)[:, None]
        gu = tl.load(at + m, mask=unit, other=0.0)[:, None]
        slope = tl.load(a + place, mask=synapse, other=0.0)[None]
        s = sigmoid(values * slope + tl.load(b + place, mask=synapse, other=0.0)[None])
        gs = gf * tl.load(g + place, mask=synapse, other=0.0)[None]
        gs += gu * tl.load(k + place, mask=synapse, other=0.0)[None]
        # An infinite input makes NaN of a synapse that is not there: 0 times infinity.
        total += tl.where(synapse[None], gs * (s * (1.0 - s)) * slope, 0.0)
        if ELASTIC:
            gw = tl.load(at + 2 * m, mask=unit, other=0.0)[:, None]
            total += gw * tl.load(o + place, mask=synapse, other=0.0)[None]
    tl.store(gradients + point[:, None] * n + row, tl.sum(total, 2), mask=there)
