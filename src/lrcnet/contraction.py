"""Limits on the letters of a diagonal LRC that make every step a contraction, and the factor by which it contracts.

With c the option `contraction`, the limits are, for every unit with its own letters a, g, k, o = w^x and e = e_l:

    (1)  |e| |a| (g / 8 + |k| / 4) <= 1/4      feedback through the unit's own synapse
    (2)  3/4 |o| |e| <= c                      feedback through the elastance
    (3)  eps(w) >= 8 c                         the elastance, by limiting the inputs' part of w

Proof for the right-hand side D = d/dh [eps (-F h + U e)], F = sigmoid(f), U = tanh(z). Because g, g_l >= 0, F >= 1/2,
and |h| <= 2 |e| holds for ever if it holds once: every step stays within, for an explicit one up to d = 4/3. Sigmoids
have slopes of at most 1/4 and tanh of at most 1, so

    D = -eps F + eps (-F' h + U' e) + eps' (-F h + U e),     |-F' h + U' e| <= |a| |e| (g / 8 + |k| / 4) <= 1/4,
    |eps'| <= |o| / 4,  |-F h + U e| <= 3 |e|,               so |last term| <= c.

Hence D <= -eps (1/2 - 1/4) + c <= -2 c + c = -c, and D >= -5/4 - c. An explicit step has the slope 1 + d D, which lies
between -(1 - c d) and 1 - c d for 0 <= d <= 4/3, as c <= 0.05. The slope of a hybrid step is at most
(1 + c d + eps d / 4) / (1 + eps d / 2), which falls with eps; that of an exponential step is at most
E + (1 - E) / 2 + c d E with E = exp(-eps F d). Both are below 1 for every d > 0.

Outside the box, |h| > 2 |e|, limit (3) and the bound on |h| in D do not hold, so that nothing is said about two states.
But no state moves away: |U e / F| <= 2 |e|, so a hybrid or an exponential step moves h towards a point of the box
without passing it, and an explicit step up to d = 4/3 does not make |h| larger: if 1 < d eps F <= 4/3, then
|h'| <= (d eps F - 1) |h| + d eps |e| <= (d eps F - 1 + d eps / 2) |h| <= |h|. The way back may be slow, because o h
belongs to w: log eps has a slope of at most 1 in w, which leaves eps >= 8 c exp(-4 c (|h| / |e| - 2) / 3).
"""

import math

import torch
from torch import Tensor

from lrcnet.circuit import ELASTANCES
from lrcnet.errors import check_kind, check_number, one_of, positive_size

FASTEST = 0.05
"""The largest c: the elastance of the narrowest symmetric form, k_eps = 1, then still reaches 8 c."""

LONGEST_EXPLICIT_STEP = 4 / 3
"""The largest d of an explicit step for which the factor holds."""

CONTRACTING_SOLVERS = ("euler", "hybrid", "exponential")
"""The solvers whose steps are proved to contract."""

_SMALLEST, _WIDEST = 1e-12, 20.0


def limit_feedback(a: Tensor, g: Tensor, k: Tensor, e_l: Tensor) -> tuple[Tensor, Tensor]:
    """Return g and k, each (m,), scaled down together where they violate limit (1)."""
    excess = 4 * (e_l * a).abs() * (g / 8 + k.abs() / 4)
    factor = 1 / excess.clamp(min=1)
    return g * factor, k * factor


def limit_elastance(elastance: str, c: float, o: Tensor, e_l: Tensor, k_eps: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return o, limited by (2), and the largest inputs' part of w for which (3) holds; each (m,)."""
    form = ELASTANCES[elastance]
    assert form.inverse is not None
    o = limit_magnitude(o, 4 * c / 3 / e_l.abs().clamp(min=_SMALLEST))
    # A wider elastance is larger everywhere, so the limit of a narrower one holds for it too, and does not overflow.
    letters = [] if k_eps is None else [k_eps.clamp(max=_WIDEST)]
    # By (2), the state moves w by at most |o| 2 |e| <= 8 c / 3.
    return o, form.inverse(torch.full_like(o, 8 * c), *letters).abs() - 8 * c / 3


def limit_magnitude(values: Tensor, bound: Tensor) -> Tensor:
    """Return values pressed smoothly between -bound and bound."""
    return bound * torch.tanh(values / bound)


def contraction_factor(c: float, dt: Tensor, solver: str = "euler", unfolds: int = 1) -> Tensor:
    """Return rho(dt), the factor by which a step brings two states of a unit together at least.

    It holds for a network with the option `contraction=c`, two states within the box |h| <= 2 |e_l|, and
    0 <= dt <= 4/3 unfolds if the solver is "euler". No step leaves the box, and zero, the usual initial state, is in
    it. For initial states outside nothing is promised but that |h| does not grow: they may take long to come back.

    Args:
        c: the option `contraction`.
        dt: any shape, >= 0, in units of the layer's `time_scale`: pass dt / layer.time_scale.
        solver: "euler", "hybrid" or "exponential".
        unfolds: K.

    Raises:
        ValueError: for another solver, a negative dt, or one that is too long for an explicit step.

    >>> lrcnet.theory.contraction_factor(0.01, torch.tensor([0.5, 1.0]))
    tensor([0.9950, 0.9900])
    """
    one_of("solver", solver, CONTRACTING_SOLVERS)
    check_number("c", c, 0, math.nextafter(FASTEST, 1))
    positive_size("unfolds", unfolds)
    check_kind("dt", dt, Tensor, "a tensor of time steps")
    if not dt.is_floating_point() or dt.is_sparse or dt.is_meta or not dt.numel():
        raise ValueError(
            f"dt must hold real numbers, at least one, but is {dt.dtype} of shape {tuple(dt.shape)} on {dt.device}; "
            "pass such a tensor"
        )
    d = dt / unfolds
    longest = LONGEST_EXPLICIT_STEP if solver == "euler" else float("inf")
    if not bool(((d >= 0) & (d <= longest)).all()):
        raise ValueError(
            f"dt must be from 0 to {longest * unfolds:g} for solver={solver!r} with {unfolds} unfoldings, but reaches "
            f"from {float(dt.min()):g} to {float(dt.max()):g}"
        )
    s = c * d
    if solver == "euler":
        factor = 1 - s
    elif solver == "hybrid":
        factor = (1 + 3 * s) / (1 + 4 * s)
    else:
        factor = 0.5 + (0.5 + s) * torch.exp(-4 * s)
    return factor**unfolds
