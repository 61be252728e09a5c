"""A box of states and inputs, on which a bound holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet.theory.elastance import elastance_limit
from lrcnet.theory.network import Model, Network, bounded_circuit, check_dt, read_model

Side = float | Tensor
Range = tuple[Side, Side]


@dataclass(frozen=True)
class Domain:
    """All y = [h, x] with every state and every input between two numbers.

    Args:
        states: (low, high), each a number for all units or a tensor (m,).
        inputs: (low, high), each a number for all inputs or a tensor (n,); None for a model without inputs.

    Raises:
        TypeError, ValueError: if the box is not given as pairs of numbers, is empty, or is not finite.

    >>> from lrcnet.theory import Domain
    >>> box = Domain(states=(-1.0, 1.0), inputs=(torch.zeros(3), torch.ones(3)))
    >>> Domain(states=(1.0, -1.0))
    Traceback (most recent call last):
    ValueError: the domain of states must not be empty, but its low end 1 is above its high end -1; swap them
    """

    states: Range
    inputs: Range | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", _check_range("states", self.states))
        if self.inputs is not None:
            object.__setattr__(self, "inputs", _check_range("inputs", self.inputs))

    @classmethod
    def around(cls, states: Tensor, inputs: Tensor) -> Domain:
        """Return the smallest box around given states (N, m) and inputs (N, n)."""
        if states.dim() != 2 or inputs.dim() != 2 or not states.shape[0] or states.shape[0] != inputs.shape[0]:
            raise ValueError(
                f"a domain around data needs states (N, m) and inputs (N, n) with the same N of at least 1, but they "
                f"have shapes {tuple(states.shape)} and {tuple(inputs.shape)}"
            )
        return cls((states.amin(0), states.amax(0)), (inputs.amin(0), inputs.amax(0)))

    @classmethod
    def invariant(cls, model: Model, *, inputs: Range | None = None, h0: Side = 0.0, dt: float = 1.0) -> Domain:
        """Return the box that states never leave: |h_i| <= 2 |e_l_i|, since sigma(f) >= 1/2 and |tau(u)| <= 1.

        Args:
            model: STC, LRC or LRCU, as in `lipschitz_bound`.
            inputs: (low, high) of the inputs; None for a model without inputs.
            h0: the initial state, a number, (m,) or (B, m).
            dt: the largest time step of the sequences.

        Raises:
            ValueError: if h0 lies outside the box, or an explicit step is so large that it can leave the box.

        >>> lrcu = lrcnet.LRCU(3, 5)
        >>> box = lrcnet.theory.Domain.invariant(lrcu, inputs=(-1.0, 1.0))
        >>> bool((box.states[1] == 2 * lrcu.circuit()["e_l"].abs()).all())
        True
        """
        network, dt = read_model(model), check_dt(dt)
        circuit = bounded_circuit(network)
        edge = 2 * circuit.e_l.abs()
        first = _tensor(h0).to(edge)
        if first.dim() > 2 or (first.dim() and first.shape[-1] != edge.shape[0]):
            raise ValueError(
                f"h0 must be a number or have {edge.shape[0]} entries in its last dimension, but has shape "
                f"{tuple(first.shape)}"
            )
        # Written with `not` so that NaN counts as outside.
        if not bool((first.abs() <= edge).all()):
            excess = (first.abs() - edge).expand(*first.shape[:-1], -1).reshape(-1, edge.shape[0]).amax(0)
            unit = int(excess.nan_to_num(torch.inf).argmax())
            raise ValueError(
                f"h0 must lie inside the invariant box |h_i| <= 2 |e_l_i|, but leaves it at unit {unit}, where "
                f"2 |e_l| is {edge[unit].item():g}; start inside it, or give the box of states yourself"
            )
        box = cls((-edge, edge), inputs)
        size = dt / network.unfolds
        if network.solver == "euler" and size > 1:
            low, high = box.ends(network)
            # While d eps sigma(f) <= 1, an Euler step is a weighted mean of the old state and one inside the box.
            forget = torch.sigmoid(circuit.g.sum(0) + circuit.g_l)
            largest = float((elastance_limit(circuit, low, high).largest * forget).max())
            if size * largest > 1:
                raise ValueError(
                    f"an explicit step must be at most {1 / largest:.4g} to keep states in the invariant box, but is "
                    f"{size:g}; use more unfolds, solver='hybrid' or 'exponential', or give the box yourself"
                )
        return box

    def ends(self, network: Network) -> tuple[Tensor, Tensor]:
        """Return the lowest and the highest y, each (m + n,) in float64, for a network.

        Raises:
            ValueError: if a side given as a tensor does not have the network's size.
        """
        like, n = network.readout, network.input_size
        if n and self.inputs is None:
            raise ValueError(
                f"the domain must say where the {n} inputs lie, but has no inputs; pass inputs=(low, high)"
            )
        sides = []
        for what, pair, size in (
            ("states", self.states, network.hidden_size),
            ("inputs", self.inputs or (0.0, 0.0), n),
        ):
            for side in pair:
                value = _tensor(side).to(like)
                if value.dim() and value.shape != (size,):
                    raise ValueError(
                        f"the domain of {what} must be numbers or tensors of shape ({size},) for this model, but has "
                        f"shape {tuple(value.shape)}"
                    )
                sides.append(value.expand(size))
        return torch.cat(sides[0::2]), torch.cat(sides[1::2])


def _tensor(side: Side) -> Tensor:
    """Return a number or tensor as a tensor; a number becomes float64."""
    return side if isinstance(side, Tensor) else torch.tensor(side, dtype=torch.float64)


def _check_range(what: str, pair: Range) -> Range:
    """Check that a (low, high) pair is finite and not empty; return it with tensors copied."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(
            f"the domain of {what} must be a pair (low, high), but is {pair!r}; pass two numbers or tensors"
        )
    for side in pair:
        if isinstance(side, bool) or not isinstance(side, int | float | Tensor):
            raise TypeError(f"the domain of {what} must be numbers or tensors, but is given {side!r}")
        if isinstance(side, Tensor) and side.dim() > 1:
            raise ValueError(
                f"the domain of {what} must be given as numbers or one-dimensional tensors, but has shape "
                f"{tuple(side.shape)}"
            )
    low, high = (_tensor(side).detach().clone() for side in pair)
    if not bool(low.isfinite().all()) or not bool(high.isfinite().all()):
        raise ValueError(
            f"the domain of {what} must be finite, but has an end that is infinite or not a number; the bound grows "
            "with |h|, so pass a box of finite size"
        )
    if low.dim() and high.dim() and low.shape != high.shape:
        raise ValueError(
            f"both ends of the domain of {what} must have one shape, but have {tuple(low.shape)} and "
            f"{tuple(high.shape)}"
        )
    if bool((low > high).any()):
        shape = (low > high).shape
        low, high = low.expand(shape), high.expand(shape)
        first = int((low > high).flatten().nonzero()[0])
        raise ValueError(
            f"the domain of {what} must not be empty, but its low end {low.flatten()[first].item():g} is above its "
            f"high end {high.flatten()[first].item():g}; swap them"
        )
    return (low, high) if low.dim() or high.dim() else (float(low), float(high))
