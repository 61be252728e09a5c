"""Initial values of liquid networks by name: "balanced", the default, and the values of the paper's authors.

With the paper's values a layer is hard to train at ordinary learning rates. Its states are small, because |e_l| <= 0.2
and because the weights of few inputs are as small as those of many states; and it forgets within two or three steps,
because the elastance starts near its largest value. "balanced" changes these three things: units remember by a small
elastance, and where there is none, by a small leak (LTC) or by exciting themselves (STC).

The synapses of a network with elastance are also softer, respond to either sign and are nearly closed at rest. If they
were half open, every change of k and g would add up over all synapses of a unit, and move it far more than its signals
do. docs/learning.md has the measurements.

Axes: m hidden units, n inputs, J = m + n presynaptic rows.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from lrcnet.circuit import ELASTANCES, LETTERS, Switches

Init = Literal["balanced", "paper"]

SHORTEST_MEMORY, LONGEST_MEMORY = 2.0, 50.0
"""Range of the initial time constants of "balanced", in steps of dt = 1; they are log-uniform in it."""
SHORTEST_WITH_ELASTANCE = 1.1
"""The shortest memory of a network with elastance, about that of a GRU; the others start no faster than above."""
WIDTH = 4.0
"""The width k_eps of a symmetric elastance that reaches 1 / 1.1: its largest value is tanh(k_eps / 2)."""


class Draw(NamedTuple):
    """The sizes of a network and a source of random numbers: torch's global generator.

    Attributes:
        inputs: n.
        units: m.
        like: a tensor with the device and dtype of the values.
    """

    inputs: int
    units: int
    like: Tensor

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Return numbers between low and high."""
        return torch.empty(shape, device=self.like.device, dtype=self.like.dtype).uniform_(low, high)

    def orthogonal(self, rows: int) -> Tensor:
        """Return a block (rows, m) with orthonormal rows or columns."""
        block = torch.empty(rows, self.units, device=self.like.device, dtype=self.like.dtype)
        return nn.init.orthogonal_(block) if rows else block

    def sign(self) -> Tensor:
        """Return -1 or 1 for every unit."""
        return self.uniform(-1, 1, self.units).sign()

    def rates(self, shortest: float = SHORTEST_MEMORY, longest: float = LONGEST_MEMORY) -> Tensor:
        """Return a rate for every unit, the inverse of a time constant from the shortest to the longest memory."""
        return torch.exp(-self.uniform(math.log(shortest), math.log(longest), self.units))

    def constant(self, name: str) -> Tensor:
        """Return the constant initial value of a letter."""
        letter = LETTERS[name]
        return self.like.new_full(letter.shape(self.inputs, self.units), letter.start)


def _paper(draw: Draw, switches: Switches) -> dict[str, Tensor]:
    """Draw the values of the authors' release."""
    n, m = draw.inputs, draw.units
    a = draw.uniform(3, 8, m + n, m)
    values = {
        "a": a,
        "b": -a * draw.uniform(0.3, 0.8, m + n, m),
        "g": draw.uniform(0.001, 1, m + n, m),
        "k": torch.cat([draw.orthogonal(m), draw.orthogonal(n)]),
        "g_l": draw.uniform(0.001, 1, m),
        "e_l": draw.uniform(-0.2, 0.2, m),
    }
    if switches.elastance != "none":
        glorot = (6 / (m + n + m)) ** 0.5
        values["o"] = draw.uniform(-glorot, glorot, m + n, m)
    return values


def _balanced(draw: Draw, switches: Switches) -> dict[str, Tensor]:
    """Draw values from which a network learns at ordinary rates: larger states, and memories of 2 to 50 steps."""
    values, (n, m) = _paper(draw, switches), draw[:2]
    if 0 < n < m:
        # The rows of an orthogonal block have norm 1: its columns, the sums over n inputs, get it as well.
        values["k"][m:] *= (m / n) ** 0.5
    values["e_l"] = draw.sign() * draw.uniform(0.5, 1, m)
    form = ELASTANCES[switches.elastance]
    if form.inverse is not None:
        _soften_synapses(draw, values)
        values["k_eps"] = draw.like.new_full((m,), WIDTH)
        # F(f) is close to 1, so the elastance alone is the rate at which a unit forgets.
        values["p"] = form.inverse(draw.rates(SHORTEST_WITH_ELASTANCE), *(values[name] for name in form.letters))
    elif switches.saturated:
        _excite_themselves(draw, values)
    else:
        # An LTC forgets at the rate f itself. Its drive has the same scale, so that its states are of order 1.
        rates = draw.rates()
        values["g_l"] = rates
        values["g"] = rates * draw.uniform(0, 2 / (m + n), m + n, m)
        values["k"] = rates * values["k"]
    return values


def _soften_synapses(draw: Draw, values: dict[str, Tensor]) -> None:
    """Let synapses open with one sign of their input, each its own, and units rest at u = g_l, where tanh responds."""
    n, m = draw[:2]
    steepness = draw.uniform(1, 3, m + n, m)
    values["a"] = steepness * draw.uniform(-1, 1, m + n, m).sign()
    values["b"] = -steepness * draw.uniform(0, 1, m + n, m)
    values["g"] = draw.uniform(0, 12 / (m + n), m + n, m)
    values["g_l"] = draw.uniform(0, 0.2, m)
    at_rest = torch.sigmoid(values["b"])
    k = 2 * values["k"]
    values["k"] = k - at_rest * (k * at_rest).sum(0) / at_rest.square().sum(0)


def _excite_themselves(draw: Draw, values: dict[str, Tensor]) -> None:
    """Let the units of an STC remember by their own synapses.

    A saturated unit without elastance forgets at the rate sigmoid(f) >= 1/2, within two steps. A synapse onto itself
    with k e_l > 0 gives a part of the state back: near h = 0, dh/dt = -(sigmoid(f) - a k e_l / 4) h if the unit is at
    rest there, that is if b = 0 and k / 2 + g_l = 0. So e_l decides on the time constant.
    """
    n, m = draw[:2]
    own = range(m)
    values["g"] = draw.uniform(0, 8 / (m + n), m + n, m)
    values["g_l"] = draw.uniform(0.15, 0.35, m)
    values["a"][own, own] = 8.0
    values["b"][own, own] = 0.0
    values["k"][:m] *= 0.2
    values["k"][own, own] = -2 * values["g_l"]
    forgetting = torch.sigmoid((values["g"] * torch.sigmoid(values["b"])).sum(0) + values["g_l"])
    values["e_l"] = (forgetting - draw.rates()) / (2 * values["k"][own, own])


def _sign_synapses(values: dict[str, Tensor], polarities: Tensor) -> dict[str, Tensor]:
    """Take the synapses that exist, and give k * e_l the sign of their polarity (J, m)."""
    exists = polarities != 0
    wired = {name: torch.where(exists, value, 0.0) if value.dim() == 2 else value for name, value in values.items()}
    # A polarity speaks of synapses that open as their input rises.
    wired["a"] = wired["a"].abs()
    # An e_l of exactly 0 has no sign to go by.
    signs = torch.where(values["e_l"] < 0, -1.0, 1.0).to(polarities)
    return {**wired, "k": wired["k"].abs() * polarities * signs}


def _balance_synapses(values: dict[str, Tensor], polarities: Tensor) -> dict[str, Tensor]:
    """Let sums over the synapses that exist have the size of sums over all synapses.

    The weights k of a unit keep their norm, separately for states and inputs. The sizes of o and g depend on the number
    of synapses of a neuron instead of the number of rows.
    """
    wired = _sign_synapses(values, polarities)
    rows, m = polarities.shape
    for block in (slice(None, m), slice(m, None)):
        lost = values["k"][block].norm(dim=0) / wired["k"][block].norm(dim=0)
        wired["k"][block] *= torch.where(lost.isfinite(), lost, 1.0)
    exists = (polarities != 0).to(polarities)
    into, out_of = exists.sum(0, keepdim=True).clamp(min=1), exists.sum(1, keepdim=True)
    if "o" in wired:
        wired["o"] *= ((rows + m) / (into + out_of)).sqrt()
        _cancel_at_rest(wired)
    wired["g"] *= rows / into
    return wired


def _cancel_at_rest(values: dict[str, Tensor]) -> None:
    """Bring the positive and negative parts of u at rest closer together, without changing a sign of k."""
    current = values["k"] * torch.sigmoid(values["b"])
    up, down = current.clamp(min=0).sum(0), (-current).clamp(min=0).sum(0)
    # At most a factor of 4 between the two, and none for a unit all of whose synapses agree.
    share = torch.where((up > 0) & (down > 0), down / up, 1.0).sqrt().clamp(0.5, 2)
    values["k"] *= torch.where(values["k"] > 0, share, 1 / share)


def wire_values(init: str, values: dict[str, Tensor], polarities: Tensor) -> dict[str, Tensor]:
    """Return drawn values for a network with a wiring.

    The paper's values stay as they are, but for the sign of k; the balanced ones are scaled by the number of synapses.

    Args:
        init: a name in `INITS`.
        values: the letters that it drew.
        polarities: (J, m), -1 or 1, and 0 where a synapse is missing.
    """
    return _sign_synapses(values, polarities) if init == "paper" else _balance_synapses(values, polarities)


INITS: dict[str, Callable[[Draw, Switches], dict[str, Tensor]]] = {"balanced": _balanced, "paper": _paper}
"""name -> function that draws the letters which do not start at a constant (`Letter.start`)."""
assert tuple(INITS) == get_args(Init)
