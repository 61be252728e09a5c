"""The damping of an STC by an elastance: the slopes of STC and LRC over a sweep of one state and one input."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet import liquid
from lrcnet.cells.liquid import LiquidCell
from lrcnet.errors import check_kind, positive_size
from lrcnet.theory.domain import Domain
from lrcnet.theory.network import Model, bounded_circuit, read_model


@dataclass(frozen=True)
class Damping:
    """dh/dt of one unit over a grid of S values of its own state and X values of one input.

    Attributes:
        states: (S,), the values of the unit's state.
        inputs: (X,), the values of the input; a single 0 for a model without inputs.
        stc: (S, X), dh/dt of the STC.
        lrc: (S, X), dh/dt of the LRC, equal to elastance * stc.
        elastance: (S, X), between 0 and 1.
    """

    states: Tensor
    inputs: Tensor
    stc: Tensor
    lrc: Tensor
    elastance: Tensor


@torch.no_grad()
def damping(lrc: Model, domain: Domain, *, unit: int = 0, channel: int = 0, points: int = 101) -> Damping:
    """Compute dh/dt of an LRC and of the STC with the same synapses, over a sweep of a state and an input.

    Args:
        lrc: an LRC or LRCU, as in `lipschitz_bound`; its STC is the same network with elastance 1.
        domain: the ranges of the sweep; all other states and inputs stay in the middle of their range.
        unit: the unit of the swept state and of the slopes.
        channel: the swept input.
        points: the number of values, S and X.

    Raises:
        ValueError: for a model without elastance, or a unit or channel that it does not have.

    >>> sweep = lrcnet.theory.damping(lrcnet.LRCU(1, 4), lrcnet.theory.Domain((-1.0, 1.0), (-3.0, 3.0)))
    >>> sweep.elastance.shape, bool(((sweep.elastance > 0) & (sweep.elastance < 1)).all())
    (torch.Size([101, 101]), True)
    """
    check_kind("domain", domain, Domain, "a Domain")
    network = read_model(lrc)
    circuit = bounded_circuit(network)
    if circuit.o is None:
        raise ValueError("damping needs a model with an elastance, but this one is an STC; see associated_lrc")
    m, n = network.hidden_size, network.input_size
    positive_size("points", points, least=2)
    positive_size("unit", unit, least=0)
    positive_size("channel", channel, least=0)
    if not 0 <= unit < m or (n and not 0 <= channel < n):
        raise ValueError(
            f"unit must be below {m} and channel below {n} for this model, but they are {unit} and {channel}"
        )
    low, high = domain.ends(network)
    t = torch.linspace(0, 1, points, dtype=low.dtype, device=low.device)
    sweep = low + t.unsqueeze(-1) * (high - low)
    states = sweep[:, unit]
    inputs = sweep[:, m + channel] if n else low.new_zeros(1)
    y = ((low + high) / 2).expand(len(states), len(inputs), -1).clone()
    y[..., unit] = states.unsqueeze(-1)
    if n:
        y[..., m + channel] = inputs
    h, x = y[..., :m], y[..., m:]
    cell = network.cell
    assert isinstance(cell, LiquidCell)  # checked by `bounded_circuit`
    forget, update, elastance = liquid.gates(circuit, liquid.input_currents(circuit, x), h, cell.switches())
    assert elastance is not None
    slope = update * circuit.e_l - forget * h
    return Damping(states, inputs, slope[..., unit], (elastance * slope)[..., unit], elastance[..., unit])
