"""The Lipschitz constant of a network as rows of a table: bound, tighter bound, empirical value and their ratios."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lrcnet.theory.bounds import lipschitz_bound
from lrcnet.theory.domain import Domain
from lrcnet.theory.empirical import empirical_lipschitz, visited_points
from lrcnet.theory.network import bounded_circuit, read_model

Row = tuple[str, str | float]


def sensitivity(
    network: nn.Module, data: Tensor | None = None, *, inputs: tuple[float, float] = (-1.0, 1.0), dt: float = 1.0
) -> list[Row]:
    """Compare the theorems' bounds on a network's Lipschitz constant with the measured one.

    Args:
        network: a network with one recurrent layer.
        data: inputs of the recurrent layer (sample, time, feature); the domain then is the region that they visit.
        inputs: range of the layer's inputs where there are no data.
        dt: time for which one input is held.

    Returns:
        Pairs of a name and a number or a sentence, in the order of reading.
    """
    reason = _why_unbounded(network)
    points = None if data is None else visited_points(network, data, dt=dt)
    if points is not None:
        domain = Domain.around(*points)
    elif reason:
        domain = Domain((-1.0, 1.0), inputs)
    else:
        domain = Domain.invariant(network, inputs=inputs, dt=dt)
    empirical = empirical_lipschitz(network, points, domain=domain, dt=dt)
    rows: list[Row] = [("domain", _describe(domain))]
    if reason:
        rows += [("bound", f"none: {reason}")]
    else:
        bounds = [lipschitz_bound(network, domain, dt, kind=kind) for kind in ("paper", "tighter")]
        unfolds = bounds[0].unfolds
        first = f"bound, over {unfolds} unfoldings (ours)" if unfolds > 1 else "bound"
        rows += [(first, bounds[0].value), ("tighter bound (ours)", bounds[1].value)]
    if empirical.over_data is not None:
        rows += [("empirical value over the data", empirical.over_data)]
    rows += [("empirical value", empirical.value)]
    if not reason and empirical.value:
        rows += [("ratio bound / empirical", bounds[0].value / empirical.value)]
        rows += [("ratio tighter / empirical", bounds[1].value / empirical.value)]
    return rows


def _why_unbounded(network: nn.Module) -> str:
    """Return the reason why the theorems give no bound for a network, or "" if they give one."""
    try:
        bounded_circuit(read_model(network))
    except ValueError as error:
        return str(error)
    return ""


def _describe(domain: Domain) -> str:
    def largest(pair: tuple[float | Tensor, float | Tensor]) -> float:
        return max(float(torch.as_tensor(side).abs().max()) for side in pair)

    return f"|h| up to {largest(domain.states):.4g}, |x| up to {largest(domain.inputs or (0.0, 0.0)):.4g}"
