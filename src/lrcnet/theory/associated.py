"""Theorem 1 as a construction: the LRC that an STC is compared with, and a certificate for the pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from lrcnet.cells.liquid import LRCCell, STCCell
from lrcnet.errors import check_kind, one_of
from lrcnet.layers import LRC, STC
from lrcnet.theory.bounds import elastance_weight_limit, lipschitz_bound, sensitivities, tighter_sensitivity
from lrcnet.theory.domain import Domain
from lrcnet.theory.network import Model, bounded_circuit, check_dt, read_model

FORMS = ("symmetric", "asymmetric")
# Rounding in the model's own precision may lift o above the limit; o is made smaller by this fraction to prevent it.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Certificate:
    """Two facts about an STC and an LRC on a domain: whether the proof's condition holds, and how their bounds compare.

    Attributes:
        condition_holds: whether |o_ji| <= o*_ji = min(0.0625 |g_ji a_ji|, 0.25 |k_ji a_ji|) for every synapse.
        broken: (N, 2), the synapses (j, i) that violate the condition, from row j of y = [h, x] to unit i.
        largest_ratio: the largest |o_ji| / o*_ji, infinite if o* is 0 and o is not.
        same_network: whether both models have the same synapses and read-out, as the theorem assumes.
        stc_bound: the paper's bound for the STC.
        lrc_bound: the paper's bound for the LRC; not below the STC's.
        lrc_tighter: our tighter bound for the LRC.
        gap: a lower bound on 1 - lrc_tighter / stc_bound, computed so that it rounds to 0 only when 1 - eps_max itself
            falls below the smallest float (w above 745).
        strict: whether Theorem 1's strict inequality is certified on this domain: by gap > 0, or by R <= D for every
            synapse, which proves it for every finite box.
    """

    condition_holds: bool
    broken: Tensor
    largest_ratio: float
    same_network: bool
    stc_bound: float
    lrc_bound: float
    lrc_tighter: float
    gap: float
    strict: bool

    def __str__(self) -> str:
        if self.condition_holds:
            condition = f"the proof's condition holds (largest |o| / o* is {self.largest_ratio:.4g})"
        else:
            j, i = self.broken[0].tolist()
            condition = (
                f"the proof's condition is broken at {len(self.broken)} synapses, first from row {j} to unit {i} "
                f"(largest |o| / o* is {self.largest_ratio:.4g})"
            )
        verdict = "certified smaller" if self.strict else "not certified smaller"
        other = "" if self.same_network else "; the two do not share their synapses, so the theorem does not apply"
        return (
            f"{condition}; bounds: STC {self.stc_bound:.6g}, LRC {self.lrc_bound:.6g}, LRC tighter "
            f"{self.lrc_tighter:.6g}: {verdict}{other}"
        )


class Associated(NamedTuple):
    """The LRC of an STC, as a cell, a layer or a pair like the given STC, and its certificate."""

    model: Model
    certificate: Certificate


def associated_lrc(
    stc: Model,
    margin: float = 0.1,
    *,
    elastance: Literal["symmetric", "asymmetric"] = "symmetric",
    bias: float = 0.0,
    k_eps: float = 1.0,
    domain: Domain | None = None,
    dt: float = 1.0,
) -> Associated:
    """Build the LRC of Theorem 1: the STC's synapses and read-out, with elastance weights inside the proof's limit.

        o_ji = (1 - margin) sign(a_ji) min(0.0625 |g_ji a_ji|, 0.25 |k_ji a_ji|)

    Args:
        stc: an STC layer or cell, or (layer or cell, readout).
        margin: from 0 (o at the limit) to 1 (o = 0, so the elastance is constant).
        elastance: "symmetric" or "asymmetric".
        bias: p of every unit.
        k_eps: the half-width k of the symmetric form, for every unit.
        domain: the box on which the bounds are compared; by default the invariant states and inputs from -1 to 1.
        dt: the time for which one input is held.

    Returns:
        The LRC, with the STC's solver and unfoldings, and its certificate.

    Raises:
        ValueError: for a margin outside 0 to 1, or a model that is not a single STC.

    >>> stc = lrcnet.STC(3, 5, solver="euler", unfolds=1)
    >>> lrc, certificate = lrcnet.theory.associated_lrc(stc, margin=0.2)
    >>> certificate.condition_holds, certificate.strict, certificate.lrc_tighter < certificate.stc_bound
    (True, True, True)
    """
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin <= 1:
        raise ValueError(f"margin must be from 0 to 1, but is {margin!r}; 0 puts |o| on the proof's limit")
    if not math.isfinite(bias) or not math.isfinite(k_eps) or k_eps < 0:
        raise ValueError(f"bias must be finite and k_eps finite and >= 0, but they are {bias} and {k_eps}")
    one_of("elastance", elastance, FORMS)
    layer, readout = stc if isinstance(stc, tuple) else (stc, None)
    cell = _stc_cell(layer)
    with torch.no_grad():
        circuit = cell.values()
    limit = elastance_weight_limit(circuit)
    letters = cell.circuit()
    letters["o"] = (1 - margin) * (1 - ROUNDING) * torch.sign(circuit.a) * limit
    letters["p"] = torch.full_like(circuit.e_l, bias)
    letters["k_eps"] = torch.full_like(circuit.e_l, k_eps) if elastance == "symmetric" else None
    lrc = _elastic_copy(layer, cell, elastance)
    lrc.load_circuit(letters)
    model: Model = (lrc, readout) if isinstance(stc, tuple) else lrc
    if domain is None:
        domain = Domain.invariant(stc, inputs=(-1.0, 1.0), dt=dt)
    return Associated(model, certify(stc, model, domain, dt))


def certify(stc: Model, lrc: Model, domain: Domain, dt: float = 1.0) -> Certificate:
    """Evaluate Theorem 1 for an STC and an LRC with any elastance weights.

    Args:
        stc, lrc: models as in `lipschitz_bound`, of equal sizes.
        domain: the box on which the bounds are compared.
        dt: the time for which one input is held.

    Raises:
        ValueError: if the first model has an elastance, the second has none, or their sizes or solvers differ.
    """
    first, second, dt = read_model(stc), read_model(lrc), check_dt(dt)
    check_kind("domain", domain, Domain, "a lrcnet.theory.Domain")
    inert, elastic = bounded_circuit(first), bounded_circuit(second)
    if inert.o is not None or elastic.o is None:
        raise ValueError("a certificate compares an STC with an LRC, in this order; pass a model of each")
    sizes = [(*net.readout.shape, net.input_size, net.solver, net.unfolds) for net in (first, second)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"the STC and the LRC must agree in outputs, units, inputs, solver and unfoldings, but have {sizes[0]} and "
            f"{sizes[1]}"
        )
    limit = elastance_weight_limit(elastic)
    excess = elastic.o.abs() > limit
    ratio = (elastic.o.abs() / limit).masked_fill(elastic.o == 0, 0.0)
    pairs = zip(inert, elastic, strict=True)
    same = all(torch.allclose(s, r, rtol=1e-6, atol=0) for s, r in pairs if s is not None and r is not None)
    same = same and torch.allclose(first.readout, second.readout, rtol=1e-6, atol=0)
    low, high = domain.ends(second)
    parts, elastance = sensitivities(second, elastic, low, high, dt)
    d, phi = parts.synaptic, tighter_sensitivity(parts, elastance)
    # D - phi(eps_max) = (1 - eps_max) (D - eps_max R), which does not round to 0 when phi rounds to D.
    top, rest = elastance.largest.unsqueeze(-1), elastance.complement.unsqueeze(-1)
    deficit = torch.where(parts.elastic <= d, rest * (d - top * parts.elastic), d - phi)
    size = dt / second.unfolds
    m = second.hidden_size
    gains = size * deficit / (1 + size * d)
    if second.unfolds > 1:
        # The propagated bound adds 1 to the scaled sensitivity on the diagonal only.
        gains = torch.where(torch.eye(m, d.shape[1], dtype=torch.bool, device=d.device), gains, deficit / d)
    shrinks = same and size > 0 and bool((second.readout != 0).any())
    # Where a wiring has no synapse there is no sensitivity to lose, and 0 / 0 above.
    gap = float(gains[d > 0].min()) if shrinks and bool((d > 0).any()) else 0.0
    return Certificate(
        condition_holds=not bool(excess.any()),
        broken=excess.nonzero(),
        largest_ratio=float(ratio.max()),
        same_network=bool(same),
        stc_bound=lipschitz_bound(stc, domain, dt).value,
        lrc_bound=lipschitz_bound(lrc, domain, dt).value,
        lrc_tighter=lipschitz_bound(lrc, domain, dt, kind="tighter").value,
        gap=gap,
        strict=shrinks and (gap > 0 or bool((parts.elastic <= d).all())),
    )


def _stc_cell(layer: nn.Module) -> STCCell:
    """Return the cell of an STC layer, or the cell itself."""
    if isinstance(layer, STC):
        read_model(layer)
        layer = layer.cells[0]
    if not isinstance(layer, STCCell):
        raise ValueError(
            f"an associated LRC is made from an STC layer or cell, or (one of these, readout), but was given a "
            f"{type(layer).__name__}"
        )
    return layer


def _elastic_copy(layer: nn.Module, cell: STCCell, elastance: str) -> LRC | LRCCell:
    """Build an LRC layer or cell with the settings of an STC; the caller loads the values."""
    options: dict[str, Any] = {
        name: getattr(cell, name)
        for name in ("solver", "unfolds", "negative_dt", "parametrisation", "constraint", "backend")
    }
    options |= {"input_map": cell.input_scale is not None, "output_map": cell.output_scale is not None}
    options |= {"elastance": elastance, "device": cell.e_l.device, "dtype": cell.e_l.dtype, "wiring": cell.wiring}
    if isinstance(layer, STC):
        return LRC(cell.input_size, cell.hidden_size, batch_first=layer.batch_first, **options)
    return LRCCell(cell.input_size, cell.hidden_size, **options)
