"""The gradients of the synapses' letters a, b, g, k, o, for all points at once, the states' rows and the inputs' alike.

A program has a tile of ROWS x COLUMNS synapses, whose weights and sums stay in registers, and one chunk of the points.
The sums of the chunks are added afterwards, always in the same order, so that results repeat.
"""

import triton
import triton.language as tl

from lrcnet.kernels.triton.functions import sigmoid


@triton.jit(do_not_specialize=["points", "chunk"])
def weight_gradients(
    y, y_point, a, b, g, k, currents, sums, points, chunk, rows, m,
    ELASTIC: tl.constexpr, POINTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write each chunk's sums of the gradients of a, b, g, k and, with an elastance, o: (chunks, 4 or 5, rows, m).

    Args:
        y: presynaptic values (points, rows), `y_point` numbers from one point to the next.
        a, b, g, k: the letters from the first of these rows on.
        currents: gradients of f, u and w, (points, 2 or 3, m).
        chunk: points of each program.
    """
    PLANES: tl.constexpr = 3 if ELASTIC else 2
    SUMS: tl.constexpr = 5 if ELASTIC else 4
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    place = row[:, None] * m + column
    there = (row < rows)[:, None] & (column < m)
    slope = tl.load(a + place, mask=there, other=0.0)[None]
    offset = tl.load(b + place, mask=there, other=0.0)[None]
    conductance = tl.load(g + place, mask=there, other=0.0)[None]
    strength = tl.load(k + place, mask=there, other=0.0)[None]
    ga = tl.zeros([POINTS, ROWS, COLUMNS], sums.dtype.element_ty)
    gb = tl.zeros([POINTS, ROWS, COLUMNS], sums.dtype.element_ty)
    gg = tl.zeros([POINTS, ROWS, COLUMNS], sums.dtype.element_ty)
    gk = tl.zeros([POINTS, ROWS, COLUMNS], sums.dtype.element_ty)
    go = tl.zeros([POINTS, ROWS, COLUMNS], sums.dtype.element_ty)
    start = tl.program_id(2).to(tl.int64) * chunk
    for first in range(0, chunk, POINTS):
        point = start + first + tl.arange(0, POINTS)
        known = (point < points) & (first + tl.arange(0, POINTS) < chunk)
        # Beyond the last point its values are read again: 0 times an infinite slope would be NaN.
        near = tl.minimum(point, points - 1)[:, None]
        values = tl.load(y + near * y_point + row, mask=(row < rows)[None], other=0.0)[:, :, None]
        at = currents + point[:, None] * PLANES * m + column
        unit = known[:, None] & (column < m)
        gf = tl.load(at, mask=unit, other=0.0)[:, None]
        gu = tl.load(at + m, mask=unit, other=0.0)[:, None]
        s = sigmoid(values * slope + offset)
        gz = (gf * conductance + gu * strength) * (s * (1.0 - s))
        ga += gz * values
        gb += gz
        gg += gf * s
        gk += gu * s
        if ELASTIC:
            go += tl.load(at + 2 * m, mask=unit, other=0.0)[:, None] * values
    out = sums + tl.program_id(2).to(tl.int64) * SUMS * rows * m + place
    tl.store(out, tl.sum(ga, 0), mask=there)
    tl.store(out + rows * m, tl.sum(gb, 0), mask=there)
    tl.store(out + 2 * rows * m, tl.sum(gg, 0), mask=there)
    tl.store(out + 3 * rows * m, tl.sum(gk, 0), mask=there)
    if ELASTIC:
        tl.store(out + 4 * rows * m, tl.sum(go, 0), mask=there)
