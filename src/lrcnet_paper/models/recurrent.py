"""The recurrent layer of each model name with the paper's settings, and solver strings such as "hybrid-6"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from lrcnet.errors import one_of
from lrcnet.layers import CTRNN, GRUODE, LRC, LRCU, LTC, MGU, STC
from lrcnet.solvers import SOLVERS
from lrcnet.torch_layers import GRU, LSTM

# The paper gives LRCU 64 units and the gated layers 100, so that they have similar numbers of parameters. The other
# liquid models have the parameters of an LRCU, and a comparison of solvers needs equal networks: 64 as well.
LIQUID_UNITS = 64
OTHER_UNITS = 100


@dataclass(frozen=True)
class Recurrent:
    """The layer of a model name.

    Attributes:
        layer: class of the layer.
        kind: "liquid", "ode" (other ODE cells) or "gated"; decides which options the layer takes.
        solver: solver and unfoldings; "" for gated units.
        options: arguments that turn the layer into this model.
    """

    layer: type[nn.Module]
    kind: str
    solver: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """Number of hidden units in the paper's tasks."""
        return LIQUID_UNITS if self.kind == "liquid" else OTHER_UNITS


RECURRENT: dict[str, Recurrent] = {
    "ltc": Recurrent(LTC, "liquid", "hybrid-6"),
    "stc": Recurrent(STC, "liquid", "hybrid-6"),
    "lrc-a": Recurrent(LRC, "liquid", "hybrid-1", {"elastance": "asymmetric"}),
    "lrc-s": Recurrent(LRC, "liquid", "hybrid-1", {"elastance": "symmetric"}),
    "lrcu-a": Recurrent(LRCU, "liquid", "euler-1", {"elastance": "asymmetric"}),
    "lrcu-s": Recurrent(LRCU, "liquid", "euler-1", {"elastance": "symmetric"}),
    "lstm": Recurrent(LSTM, "gated"),
    "gru": Recurrent(GRU, "gated"),
    "mgu": Recurrent(MGU, "gated"),
    "ctrnn": Recurrent(CTRNN, "ode", "euler-6"),
    "gru-ode": Recurrent(GRUODE, "ode", "euler-1"),
}


def parse_solver(text: str) -> tuple[str, int]:
    """Split a solver string into the solver's name and the number of unfoldings.

    >>> parse_solver("hybrid-6")
    ('hybrid', 6)

    Raises:
        ValueError: if the string is not a known solver, a dash and a whole number of at least 1.
    """
    name, dash, count = text.rpartition("-")
    if not dash or not count.isdecimal() or int(count) < 1:
        raise ValueError(f"solver must be a name and a number of unfoldings, such as 'hybrid-6', but is {text!r}")
    return one_of("the solver's name", name, SOLVERS), int(count)


def recurrent_layer(
    model: str,
    input_size: int,
    *,
    units: int | None = None,
    solver: str = "",
    irregular: bool = False,
    negative_dt: str = "error",
    **options: Any,
) -> nn.Module:
    """Make the layer of a model name, batch first, with the paper's settings.

    Liquid layers learn sigma and mu and have both maps. Gated layers get dt as one more input where time is irregular.

    Args:
        model: a key of `RECURRENT`.
        input_size: n.
        units: m; None for the paper's size.
        solver: solver and unfoldings, such as "hybrid-6"; "" for the model's own.
        irregular: whether the layer will be called with dt.
        negative_dt: the task's wish; "allow" becomes "clamp" under a solver that cannot step back in time.
        options: further arguments of the layer.

    Raises:
        ValueError: for an unknown model, or a solver for a model that solves no ODE.
    """
    entry = RECURRENT[one_of("model", model, RECURRENT)]
    if "batch_first" in options:
        raise ValueError("batch_first is set by the tasks, whose samples come first, but was given; leave it out")
    arguments: dict[str, Any] = {"batch_first": True, **entry.options}
    if entry.kind == "gated":
        if solver:
            raise ValueError(f"{model} solves no ODE, so it takes no solver, but {solver!r} was given; leave it out")
        arguments["time_feature"] = irregular
    else:
        arguments["solver"], arguments["unfolds"] = parse_solver(solver or entry.solver)
        # Only an explicit Euler step can go back in time; under the other solvers a negative gap counts as 0.
        clamps = negative_dt == "allow" and arguments["solver"] != "euler"
        arguments["negative_dt"] = "clamp" if clamps else negative_dt
        # The paper steps over gaps of up to 5 and from first gaps of 0, and so do we.
        arguments["time_warnings"] = False
    if entry.kind == "liquid":
        arguments |= {"init": "paper", "parametrisation": "sigma-mu", "input_map": True, "output_map": True}
    return entry.layer(input_size, entry.units if units is None else units, **(arguments | options))
