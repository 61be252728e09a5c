"""One unfolding of units, given their sums f, u, w: saturation, elastance, solver; and its gradient.

The switches are the codes of `lrcnet.kernels.problem`, known when a kernel is compiled.
"""

import triton
import triton.language as tl

from lrcnet.kernels.problem import ELASTANCE_CODES, SOLVER_CODES
from lrcnet.kernels.triton.functions import hyperbolic_tangent, phi, phi_slope, sigmoid

NONE = tl.constexpr(ELASTANCE_CODES["none"])
SYMMETRIC = tl.constexpr(ELASTANCE_CODES["symmetric"])
EULER = tl.constexpr(SOLVER_CODES["euler"])
HYBRID = tl.constexpr(SOLVER_CODES["hybrid"])
EXPONENTIAL = tl.constexpr(SOLVER_CODES["exponential"])


@triton.jit
def saturate(f, u, SATURATED: tl.constexpr):
    """Return F(f) and U(u)."""
    if SATURATED:
        f = sigmoid(f)
        u = hyperbolic_tangent(u)
    return f, u


@triton.jit
def elastance(w, k_eps, ELASTANCE: tl.constexpr):
    """Return eps(w) and its derivatives by w and by k_eps; only for forms with an elastance."""
    if ELASTANCE == SYMMETRIC:
        plus = sigmoid(w + k_eps)
        minus = sigmoid(w - k_eps)
        by_plus = plus * (1.0 - plus)
        by_minus = minus * (1.0 - minus)
        return plus - minus, by_plus - by_minus, by_plus + by_minus
    else:
        eps = sigmoid(w)
        slope = eps * (1.0 - eps)
        return eps, slope, slope * 0.0


@triton.jit
def advance(h, d, F, U, w, e_l, k_eps, ELASTANCE: tl.constexpr, SOLVER: tl.constexpr):
    """Return the next state, or dh/dt for the slope; d is dt / K."""
    c = d
    if ELASTANCE != NONE:
        eps, _, _ = elastance(w, k_eps, ELASTANCE)
        c = d * eps
    drive = U * e_l
    if SOLVER == EULER:
        return h + c * (drive - F * h)
    elif SOLVER == HYBRID:
        return (h + c * drive) / (1.0 + c * F)
    elif SOLVER == EXPONENTIAL:
        return h + c * phi(-c * F) * (drive - F * h)
    else:
        return c * (drive - F * h)


@triton.jit
def advance_backward(
    gh, h, d, F, U, w, e_l, k_eps, SATURATED: tl.constexpr, ELASTANCE: tl.constexpr, SOLVER: tl.constexpr
):
    """Return the gradients of h (not through the synapses), f, u, w, d, e_l and k_eps for that of the next state."""
    eps = h * 0.0 + 1.0
    eps_w = h * 0.0
    eps_k = h * 0.0
    if ELASTANCE != NONE:
        eps, eps_w, eps_k = elastance(w, k_eps, ELASTANCE)
    c = d * eps
    drive = U * e_l
    if SOLVER == HYBRID:
        shrink = 1.0 / (1.0 + c * F)
        after = (h + c * drive) * shrink
        before = gh * shrink
        gc = before * (drive - after * F)
        gF = -before * after * c
        g_drive = before * c
    elif SOLVER == EXPONENTIAL:
        z = -c * F
        value = phi(z)
        rate = drive - F * h
        g_drive = gh * c * value
        gz = gh * c * rate * phi_slope(z, value)
        gc = gh * value * rate - gz * F
        gF = -g_drive * h - gz * c
        before = gh - g_drive * F
    else:
        gc = gh * (drive - F * h)
        gF = -gh * c * h
        g_drive = gh * c
        before = -gh * c * F
        if SOLVER == EULER:
            before += gh
    gf = gF
    gu = g_drive * e_l
    if SATURATED:
        gf = gF * (F * (1.0 - F))
        gu = gu * (1.0 - U * U)
    return before, gf, gu, gc * d * eps_w, gc * eps, g_drive * U, gc * d * eps_k
