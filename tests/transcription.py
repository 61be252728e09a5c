"""The paper's Eqs. 1-5 and 7 in NumPy float64, neuron by neuron, written from the paper and from nothing else.

Slow on purpose: the sums run over j in Python loops, as the indices in the paper do.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sigma(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def right_hand_side(c: dict[str, Array], h: Array, x: Array, *, model: str) -> tuple[Array, Array, Array]:
    """Forget conductance, update conductance and elastance of every neuron i, Eqs. 1-5, before the leak potential."""
    m, y = len(h), np.concatenate([h, x])
    forget, update, elastance = np.zeros(m), np.zeros(m), np.ones(m)
    for i in range(m):
        f, u, w = c["g_l"][i], c["g_l"][i], 0.0
        for j in range(len(y)):
            probability = sigma(c["a"][j, i] * y[j] + c["b"][j, i])
            f += c["g"][j, i] * probability
            u += c["k"][j, i] * probability
        forget[i], update[i] = (f, u) if model == "ltc" else (sigma(f), math.tanh(u))
        if model in ("lrc-a", "lrc-s"):
            w = sum(c["o"][j, i] * y[j] for j in range(len(y))) + c["p"][i]
            if model == "lrc-a":
                elastance[i] = sigma(w)
            else:
                elastance[i] = sigma(w + c["k_eps"][i]) - sigma(w - c["k_eps"][i])
    return forget, update, elastance


def run(c: dict[str, Array], xs: Array, dts: Array, *, model: str, solver: str, unfolds: int) -> Array:
    """States (T, m) of one sequence xs (T, n) with gaps dts (T,), from zero."""
    h = np.zeros(len(c["g_l"]))
    states = []
    for x, dt in zip(xs, dts, strict=True):
        for _ in range(unfolds):
            forget, update, elastance = right_hand_side(c, h, x, model=model)
            d = dt / unfolds
            if solver == "euler":
                h = h + d * elastance * (-forget * h + update * c["e_l"])
            elif solver == "hybrid":
                h = (h + d * elastance * update * c["e_l"]) / (1 + d * elastance * forget)
            else:
                rest = update * c["e_l"] / forget
                h = rest + (h - rest) * np.exp(-d * elastance * forget)
        states.append(h)
    return np.array(states)


def lrcu(c: dict[str, Array], xs: Array, *, symmetric: bool) -> Array:
    """Eq. 7, the LRCU as a gated unit: h_t = (1 - eps sigma(f)) h_{t-1} + eps tau(u) e_l."""
    h = np.zeros(len(c["g_l"]))
    states = []
    for x in xs:
        forget, update, eps = right_hand_side(c, h, x, model="lrc-s" if symmetric else "lrc-a")
        h = (1 - eps * forget) * h + eps * update * c["e_l"]
        states.append(h)
    return np.array(states)
