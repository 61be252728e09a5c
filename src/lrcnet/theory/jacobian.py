"""Batched Jacobians of one step, y = [h, x] -> o = Q h_new, of the plain equations with torch.func.

Axes: N points, m states, n inputs, J = m + n, K outputs.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lrcnet import liquid
from lrcnet.cells.liquid import LiquidCell
from lrcnet.circuit import Circuit, Switches
from lrcnet.solvers import SOLVERS, DormandPrince, ExplicitRungeKutta
from lrcnet.theory.network import Network

# Numbers per intermediate tensor: small enough to stay in the cache, large enough to hide the cost of a call.
CHUNK = 1 << 19

# (h (N, m), d (N, 1)) -> one value per unit (N, m) and its derivative (N, m, J).
UnitMap = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def output_jacobian(network: Network, h: Tensor, x: Tensor, dt: float | Tensor) -> Tensor:
    """Compute do/dy (N, K, J) at states h (N, m) and inputs x (N, n) for a time dt, a number or (N,); differentiable.

    The slope of a liquid unit, and its hybrid or exponential step, depends on y but not on the slopes of other units.
    So one backward pass gives all rows of the Jacobian, and stages and unfoldings follow by the chain rule. Other cells
    need one backward pass per output.
    """
    d = torch.as_tensor(dt, dtype=h.dtype, device=h.device).expand(h.shape[0])
    if network.solver == "dopri5":
        raise ValueError(
            "the Jacobian of an adaptive solver cannot be batched, but the solver is 'dopri5'; build the model with a "
            "fixed-step solver"
        )
    if isinstance(network.cell, LiquidCell):
        assert network.circuit is not None
        return _jacobian_over_unfoldings(
            network, network.circuit, network.cell, h, x, (d / network.unfolds).unsqueeze(-1)
        )
    return _jacobian_by_output(network, h, x, d)


def points_per_chunk(network: Network) -> int:
    """Return how many points to evaluate at once, so that an intermediate tensor has about `CHUNK` numbers."""
    m, n = network.hidden_size, network.input_size
    passes = 1 if isinstance(network.cell, LiquidCell) else network.readout.shape[0]
    return max(1, CHUNK // (m * (m + n) * passes))


def _jacobian_over_unfoldings(
    network: Network, circuit: Circuit, cell: LiquidCell, h: Tensor, x: Tensor, d: Tensor
) -> Tensor:
    """Compute do/dy (N, K, J) over all unfoldings of size d (N, 1)."""
    method, m = SOLVERS[cell.solver], cell.hidden_size
    assert not isinstance(method, DormandPrince)
    if isinstance(method, ExplicitRungeKutta):
        total = torch.eye(m, m + x.shape[1], dtype=h.dtype, device=h.device).expand(h.shape[0], -1, -1)
        slope = _unit_map(circuit, x, lambda decay, drive, h, d: drive - decay * h, cell.switches())
        for _ in range(cell.unfolds):
            h, total = _explicit_step(method, slope, h, total, d)
        return network.readout @ total

    def step(decay: Tensor, drive: Tensor, h: Tensor, d: Tensor) -> Tensor:
        return method.step(lambda _: (decay, drive), h, d)

    step_map, jacobians = _unit_map(circuit, x, step, cell.switches()), []
    for _ in range(cell.unfolds):
        h, jacobian = step_map(h, d)
        jacobians.append(jacobian)
    # Multiplying from the output backwards costs K rows per product, which are usually fewer than m.
    states, inputs = network.readout, x.new_zeros(())
    for jacobian in reversed(jacobians):
        product = states @ jacobian
        states, inputs = product[..., :m], inputs + product[..., m:]
    return torch.cat([states, inputs], -1)


def _explicit_step(
    method: ExplicitRungeKutta, slope: UnitMap, h: Tensor, total: Tensor, d: Tensor
) -> tuple[Tensor, Tensor]:
    """Take one explicit step of h and of its derivative (N, m, J), stage by stage."""
    slopes: list[tuple[Tensor, Tensor]] = []
    for row in method.matrix:
        stage, stage_jacobian = h, total
        for factor, (value, jacobian) in zip(row, slopes, strict=True):
            if factor:
                stage = stage + d * factor * value
                stage_jacobian = stage_jacobian + d.unsqueeze(-1) * factor * jacobian
        value, jacobian = slope(stage, d)
        slopes.append((value, _apply_chain_rule(jacobian, stage_jacobian)))
    for weight, (value, jacobian) in zip(method.weights, slopes, strict=True):
        h = h + d * weight * value
        total = total + d.unsqueeze(-1) * weight * jacobian
    return h, total


def _apply_chain_rule(jacobian: Tensor, inner: Tensor) -> Tensor:
    """Return d/dy of a map of [h(y), x] with the given Jacobian (N, m, J), where inner (N, m, J) is dh/dy."""
    m = inner.shape[-2]
    through = jacobian[..., :m] @ inner
    return torch.cat([through[..., :m], through[..., m:] + jacobian[..., m:]], -1)


def _unit_map(
    circuit: Circuit, x: Tensor, formula: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], switches: Switches
) -> UnitMap:
    """Return formula(decay, drive, h, d) of every unit as a function of y = [h, x], with its derivative."""

    # A single unit is treated as a network of its own: its state has no outgoing synapse, and its input is all of y.
    def one_unit(letters: dict[str, Tensor], h: Tensor, y: Tensor, d: Tensor) -> Tensor:
        unit = Circuit(**letters)
        decay, drive = liquid.split(unit, liquid.input_currents(unit, y), h, switches)
        return formula(decay, drive, h, d).squeeze(0)

    circuit_by_unit = {name: _split_by_unit(values) for name, values in circuit._asdict().items() if values is not None}
    by_unit = torch.func.vmap(torch.func.grad_and_value(one_unit, argnums=(1, 2)), (0, 0, None, None))
    by_point = torch.func.vmap(by_unit, (None, 0, 0, 0))

    def value_and_jacobian(h: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        (own, jacobian), value = by_point(circuit_by_unit, h.unsqueeze(-1), torch.cat([h, x], -1), d)
        diagonal = torch.diag_embed(own.squeeze(-1))
        return value, jacobian + torch.nn.functional.pad(diagonal, (0, x.shape[-1]))

    return value_and_jacobian


def _split_by_unit(values: Tensor) -> Tensor:
    """Split a letter of the circuit by unit: (m,) -> (m, 1); (J, m) -> (m, 1 + J, 1), with a zero synapse first."""
    if values.dim() == 1:
        return values.unsqueeze(-1)
    return torch.nn.functional.pad(values.t(), (1, 0)).unsqueeze(-1)


def _jacobian_by_output(network: Network, h: Tensor, x: Tensor, d: Tensor) -> Tensor:
    """Compute do/dy (N, K, J) of any cell by torch.func.jacrev."""
    cell, m = network.cell, network.hidden_size
    values = cell.values()

    def output(y: Tensor, d: Tensor) -> Tensor:
        state = cell.advance(values, cell.input_terms(values, y[None, m:]), y[None, :m], d.reshape(1, 1))
        return (state @ network.readout.t()).squeeze(0)

    jacobian: Tensor = torch.func.vmap(torch.func.jacrev(output))(torch.cat([h, x], -1), d)
    return jacobian
