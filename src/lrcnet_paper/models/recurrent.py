"""The recurrent layer of each model name, as the paper's tasks use it, and variant strings such as "hybrid-6"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from lrcnet.errors import one_of
from lrcnet.layers import CTRNN, GRUODE, LRC, LRCU, LTC, MGU, STC
from lrcnet.solvers import SOLVERS
from lrcnet.torch_layers import GRU, LSTM

# The paper gives LRCU 64 units and the gated ones 100, so that the parameters come out alike. The other liquid models
# have an LRCU's parameters, and a comparison of solvers needs equal networks: 64 as well.
LIQUID_UNITS = 64
OTHER_UNITS = 100


@dataclass(frozen=True)
class Recurrent:
    """A model name's layer.

    Attributes:
        layer: the layer's class.
        kind: "liquid", "ode" (other ODE cells) or "gated"; decides which options the layer takes.
        solver: solver and unfoldings, "" for gated units.
        options: arguments that make the layer this model.
    """

    layer: type[nn.Module]
    kind: str
    solver: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """Hidden units in the paper's tasks."""
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


def parse_solver(variant: str) -> tuple[str, int]:
    """Solver and unfoldings of a variant string.

    >>> parse_solver("hybrid-6")
    ('hybrid', 6)

    Raises:
        ValueError: if it is not a known solver, a dash and a whole number of at least 1.
    """
    name, dash, count = variant.rpartition("-")
    if not dash or not count.isdecimal() or int(count) < 1:
        raise ValueError(f"solver must be a name and a number of unfoldings, such as 'hybrid-6', but is {variant!r}")
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
    """The layer behind a model name, batch first, with the paper's settings.

    Liquid layers learn sigma and mu and have both maps. Gated ones get dt as one more input where time is irregular.

    Args:
        model: a key of `RECURRENT`.
        input_size: n.
        units: m; the paper's size if None.
        solver: such as "hybrid-6"; the model's own if "".
        irregular: whether the layer will be called with dt.
        negative_dt: what the task asks for; "allow" becomes "clamp" under a solver that cannot step back in time.
        options: further arguments of the layer.

    Raises:
        ValueError: for an unknown model, or a solver where the model has none.
    """
    entry = RECURRENT[one_of("model", model, RECURRENT)]
    arguments: dict[str, Any] = {"batch_first": True, **entry.options}
    if entry.kind == "gated":
        if solver:
            raise ValueError(f"{model} solves no ODE, so it takes no solver, but {solver!r} was given; leave it out")
        arguments["time_feature"] = irregular
    else:
        arguments["solver"], arguments["unfolds"] = parse_solver(solver or entry.solver)
        # Only an explicit Euler step can go back in time; for the others a reading out of order takes no time.
        back = negative_dt == "allow" and arguments["solver"] != "euler"
        arguments["negative_dt"] = "clamp" if back else negative_dt
    if entry.kind == "liquid":
        arguments |= {"parametrisation": "sigma-mu", "input_map": True, "output_map": True}
    return entry.layer(input_size, entry.units if units is None else units, **(arguments | options))
