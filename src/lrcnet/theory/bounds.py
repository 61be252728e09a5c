"""Upper bounds on the Lipschitz constant of one step of an STC or LRC with a linear output, as Theorem 1 derives them.

The step maps y = [h, x], J = m + n numbers, to the output o = Q h_new, K numbers. Entry (i, j) of a matrix of
sensitivities (m, J) is a number that |d(dh_i/dt) / dy_j| cannot exceed on the box. docs/theory.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lrcnet.errors import check_kind, one_of
from lrcnet.liquid import Circuit
from lrcnet.theory.domain import Domain
from lrcnet.theory.elastance import ElastanceLimit, elastance_limit
from lrcnet.theory.network import Model, Network, bounded_circuit, check_dt, read_model

KINDS = ("paper", "tighter")


@dataclass(frozen=True)
class LipschitzBound:
    """An upper bound on the Lipschitz constant of y = [h, x] -> Q h_new; float(bound) is its value.

    Attributes:
        value: the spectral norm of `matrix`.
        matrix: V (K, m + n), entry by entry at least |do_k / dy_j|.
        sensitivity: (m, m + n), entry by entry at least |d(dh_i/dt) / dy_j|.
        source: the origin of the bound: "paper" or "tighter", followed by ", propagated" if the sensitivity was
            multiplied through the unfoldings. Only "paper" is the paper's own bound.
        unfolds: the number of solver steps that the bound covers.
    """

    value: float
    matrix: Tensor
    sensitivity: Tensor
    source: str
    unfolds: int

    def __float__(self) -> float:
        return self.value


class Sensitivity(NamedTuple):
    """The parts of the bounds on |d(dh_i/dt) / dy_j|, each (m, J).

    Attributes:
        synaptic: D of an STC, 0.0625 |g a h| + 0.25 |k a e_l| + 1.
        elastic: R = |o| (|h| + |e_l|), 0 without elastance.
        within: whether |o| is inside the proof's limit, o* of `elastance_weight_limit`.
    """

    synaptic: Tensor
    elastic: Tensor
    within: Tensor


def lipschitz_bound(
    model: Model, domain: Domain, dt: float = 1.0, *, kind: str = "paper", propagate: bool | None = None
) -> LipschitzBound:
    """Bound the Lipschitz constant of one step of an STC, LRC or LRCU with a linear output.

        v_kj = sum_i |q_ki| (1 + dt s_ij),     bound = ||V||_2

    with s_ij = D_ij = 0.0625 |g_ji a_ji h_i| + 0.25 |k_ji a_ji e_li| + 1 for an STC, and for an LRC inside the proof's
    limit |o_ji| <= min(0.0625 |g_ji a_ji|, 0.25 |k_ji a_ji|); outside it, D_ij + 0.25 |o_ji| (|h_i| + |e_li|).

    Args:
        model: a layer or cell, (layer, readout), or a module with one layer and one nn.Linear after it.
        domain: the box of states and inputs that contains y.
        dt: the time for which one input is held.
        kind: "paper" for the bound of the paper's proof; "tighter" for our bound, which uses the largest elastance on
            the box. The two agree for an STC.
        propagate: whether to multiply the sensitivity through the unfoldings, V = |Q| (I + dt/K S)^K for the states;
            this bound is ours. None does so if there is more than one unfolding, because the proof covers one step
            only. With one unfolding, True sharpens the bound: it puts the identity where the proof puts 1 everywhere.

    Returns:
        The bound; its `source` names its origin.

    Raises:
        ValueError: for a model without a known bound, or for propagate=False with several unfoldings.

    >>> stc = lrcnet.STCCell(0, 1, solver="euler", unfolds=1)
    >>> circuit = {"g": 0.0, "g_l": 5.0, "k": -10.0, "a": 8.0, "b": 0.0, "e_l": -1.0}
    >>> stc.load_circuit({name: torch.full_like(stc.circuit()[name], value) for name, value in circuit.items()} | {
    ...     "input_scale": torch.ones(0), "input_shift": torch.zeros(0)})
    >>> lrcnet.theory.lipschitz_bound(stc, lrcnet.theory.Domain((-2.0, 2.0))).value
    22.0
    """
    one_of("kind", kind, KINDS)
    check_kind("domain", domain, Domain, "a Domain")
    network, dt = read_model(model), check_dt(dt)
    circuit = bounded_circuit(network)
    unfolds = network.unfolds
    if propagate is None:
        propagate = unfolds > 1
    elif not propagate and unfolds > 1:
        raise ValueError(
            f"the proof covers one solver step, but the model takes {unfolds}; leave propagate out, or build the model "
            "with unfolds=1"
        )
    low, high = domain.ends(network)
    sensitivity, limit = sensitivities(network, circuit, low, high, dt)
    s = paper_sensitivity(sensitivity) if kind == "paper" else tighter_sensitivity(sensitivity, limit)
    weights = network.readout.abs()
    matrix = weights @ (propagate_sensitivity(s, dt / unfolds, unfolds) if propagate else 1 + dt * s)
    source = f"{kind}, propagated" if propagate else kind
    return LipschitzBound(float(torch.linalg.matrix_norm(matrix, 2)), matrix, s, source, unfolds)


def sensitivities(
    network: Network, circuit: Circuit, low: Tensor, high: Tensor, dt: float
) -> tuple[Sensitivity, ElastanceLimit]:
    """Return D, R and the largest elastance over all states that gates and solver reach from a box low to high (J,)."""
    m = network.hidden_size
    start = torch.maximum(low[:m].abs(), high[:m].abs())
    d = dt / network.unfolds
    largest_start = start
    for _ in range(network.unfolds - 1):
        largest_start = largest_state_within(network.solver, largest_start, circuit.e_l.abs(), d)
    if network.unfolds > 1:
        low = torch.cat([torch.minimum(low[:m], -largest_start), low[m:]])
        high = torch.cat([torch.maximum(high[:m], largest_start), high[m:]])
    # Gates are evaluated at the old state, but a semi-linear step multiplies their slopes by the states between the old
    # and the new one.
    euler = network.solver == "euler"
    largest = largest_start if euler else largest_state_within(network.solver, largest_start, circuit.e_l.abs(), d)
    return sensitivity_on(circuit, largest), elastance_limit(circuit, low, high)


def sensitivity_on(circuit: Circuit, state: Tensor) -> Sensitivity:
    """Compute the proof's D and R for states with |h_i| <= state_i (m,); entry (i, j) belongs to synapse (j, i)."""
    leak = circuit.e_l.abs()
    d = 0.0625 * (circuit.g * circuit.a).abs() * state + 0.25 * (circuit.k * circuit.a).abs() * leak + 1
    if circuit.o is None:
        return Sensitivity(d.t(), torch.zeros_like(d).t(), torch.ones_like(d, dtype=torch.bool).t())
    o = circuit.o.abs()
    return Sensitivity(d.t(), (o * (state + leak)).t(), (o <= elastance_weight_limit(circuit)).t())


def elastance_weight_limit(circuit: Circuit) -> Tensor:
    """Return o*_ji = min(0.0625 |g_ji a_ji|, 0.25 |k_ji a_ji|), (J, m): the proof's condition is |o_ji| <= o*_ji."""
    return torch.minimum(0.0625 * (circuit.g * circuit.a).abs(), 0.25 * (circuit.k * circuit.a).abs())


def paper_sensitivity(parts: Sensitivity) -> Tensor:
    """Return D where the proof's condition holds, and D + R / 4 elsewhere (eps <= 1, |eps'| <= 1/4)."""
    return torch.where(parts.within, parts.synaptic, parts.synaptic + 0.25 * parts.elastic)


def tighter_sensitivity(parts: Sensitivity, limit: ElastanceLimit) -> Tensor:
    """Return the maximum of phi(e) = e D + e (1 - e) R over 0 <= e <= eps_max, at min(eps_max, (D + R) / (2 R))."""
    d, r = parts.synaptic, parts.elastic
    top, rest = limit.largest.unsqueeze(-1), limit.complement.unsqueeze(-1)
    peak = torch.where(r > 0, (d + r) / (2 * torch.where(r > 0, r, torch.ones_like(r))), torch.inf)
    inside = peak < top
    e, one_minus_e = torch.where(inside, peak, top), torch.where(inside, 1 - peak, rest)
    return e * (d + one_minus_e * r)


def propagate_sensitivity(s: Tensor, d: float, unfolds: int) -> Tensor:
    """Bound |d h_new / d y| (m, J) entry by entry after K unfoldings of size d, by the chain rule.

    States: (I + d S_h)^K. Inputs, which act in every unfolding: sum over k < K of (I + d S_h)^k d S_x.
    """
    m = s.shape[0]
    step = torch.eye(m, dtype=s.dtype, device=s.device) + d * s[:, :m]
    total = torch.cat([step, d * s[:, m:]], 1)
    for _ in range(unfolds - 1):
        total = step @ total
        total[:, m:] += d * s[:, m:]
    return total


def largest_state_within(solver: str, state: Tensor, leak: Tensor, d: float) -> Tensor:
    """Bound |h_i| (m,) during one step of size d that starts from |h_i| <= state_i, with leak = |e_l|.

    Uses only 1/2 <= sigma(f) <= 1, |tau(u)| <= 1 and 0 <= eps <= 1, and for Euler that the step is convex in
    eps sigma(f) on either side of 1/2, so that its largest value is at an end.
    """
    if solver == "hybrid":
        furthest = (state + d * leak) / (1 + d / 2)
    elif solver == "exponential":
        remaining = torch.exp(torch.tensor(-d / 2, dtype=state.dtype, device=state.device))
        furthest = state * remaining + 2 * leak * (1 - remaining)
    else:
        furthest = torch.maximum(abs(1 - d / 2) * state, abs(1 - d) * state) + d * leak
    return torch.maximum(state, furthest)
