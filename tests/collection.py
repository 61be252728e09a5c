"""The layers and cells for which the laws are tested, by name; a new member of CELLS is included automatically."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.wirings import FullyConnected, Layered, Random, Wiring

# Options beyond the defaults that deserve the laws too.
EXTRA: dict[str, dict[str, Any]] = {
    "lrcu-asymmetric": {"elastance": "asymmetric"},
    "lrc-exponential": {"solver": "exponential", "unfolds": 2},
    "lrc-rk4": {"solver": "rk4"},
    "lrc-dopri5": {"solver": "dopri5"},
    "stc-euler": {"solver": "euler", "unfolds": 1},
    "lrcu-ab": {"parametrisation": "ab", "output_map": True},
    "lrcu-sigma-mu": {"parametrisation": "sigma-mu", "output_map": True},
    "lrcu-softplus": {"constraint": "softplus", "input_map": False},
    "mgu-timed": {"time_feature": True},
    "lstm-timed": {"time_feature": True},
    "gru-timed": {"time_feature": True},
    "cfc-pure": {"mode": "pure", "backbone_layers": 2, "backbone_units": 5},
    "cfc-no_gate": {"mode": "no_gate", "backbone_layers": 0},
    "diagonal-lrc-channels": {"synapses": "per-channel", "elastance": "asymmetric", "solver": "hybrid", "unfolds": 2},
    "diagonal-lrc-contracting": {"contraction": 0.02, "solver": "exponential"},
    "diagonal-lrc-rk4": {"solver": "rk4"},
    "cfc-silu": {"activation": "silu", "negative_dt": "clamp"},
}
# Wirings for a number of units; only the last has fewer motor neurons than units.
WIRED: dict[str, Callable[[int], Wiring]] = {
    "ltc-wired": lambda units: Random(units, sparsity_level=0.3),
    "lrcu-wired": lambda units: FullyConnected(units, self_connections=False),
    "lrc-layered": lambda units: Layered([units - 2, 1, 1]),
}
# Members inside a mixed memory.
MEMORY: dict[str, str] = {
    "lrcu-memory": "lrcu",
    "ltc-memory": "ltc",
    "ctrnn-memory": "ctrnn",
    "cfc-memory": "cfc",
}
# Wired members, whose units are those of the wiring.
WIRED_CFC = "wired-cfc"
NAMES = [*lrcnet.CELLS, *EXTRA, *WIRED, *MEMORY, WIRED_CFC]
# They take dt, but have no derivative: a step of 0 changes their state too.
CFC_NAMES = [name for name in NAMES if "cfc" in name and name not in MEMORY]
_GATED = ("mgu", "lstm", "gru")
ODE_NAMES = [
    name
    for name in NAMES
    if name not in MEMORY and name not in CFC_NAMES and (name.split("-")[0] not in _GATED or name.startswith("gru-ode"))
]
# Options of time, which layers have and their cells do not.
LAYER_EXTRA: dict[str, dict[str, Any]] = {
    "lrcu-scaled": {"time_scale": 0.8, "fill_first_gap": True},
    "gru-ode-scaled": {"time_scale": 2.5},
    "lrc-timed": {"time_feature": True, "time_scale": 3.0},
    "ctrnn-timed": {"time_feature": True},
    "cfc-scaled": {"time_scale": 0.8, "fill_first_gap": True},
    "cfc-timed": {"time_feature": True},
}
LAYER_NAMES = [*NAMES, *LAYER_EXTRA]
TIMED_NAMES = [*ODE_NAMES, *CFC_NAMES, *MEMORY, "mgu-timed", "lstm-timed", "gru-timed", *LAYER_EXTRA]


# The modules whose state is a pair (h, c).
PAIRED = (nn.LSTM, nn.LSTMCell, lrcnet.MixedMemory, lrcnet.MixedMemoryCell)


def base_name(name: str) -> str:
    return next(
        known
        for known in ("gru-ode", "diagonal-lrc", name, name.split("-")[0])
        if known in lrcnet.CELLS and known in name
    )


def extra_options(name: str, hidden_size: int) -> dict[str, Any]:
    return {"wiring": WIRED[name](hidden_size)} if name in WIRED else EXTRA.get(name, {})


def output_size(name: str, hidden_size: int = 4) -> int:
    return WIRED[name](hidden_size).output_size if name in WIRED else hidden_size


def make_layer(name: str, input_size: int = 3, hidden_size: int = 4, **options: Any) -> Any:
    """Build a float64 layer on the plain loop, so that the laws test the equation and not one kernel."""
    if name in MEMORY:
        return lrcnet.MixedMemory(make_layer(MEMORY[name], input_size, hidden_size, **options))
    if name == WIRED_CFC:
        return lrcnet.WiredCfC(input_size, **{"dtype": torch.float64, "wiring": _wire(hidden_size), **options})
    options = {"dtype": torch.float64, **extra_options(name, hidden_size), **LAYER_EXTRA.get(name, {}), **options}
    if base_name(name) in ("ltc", "stc", "lrc", "lrcu", "diagonal-lrc"):
        options.setdefault("backend", "reference")
    if base_name(name) == "cfc":
        options.setdefault("backbone_units", 6)
    return lrcnet.LAYERS[base_name(name)](input_size, hidden_size, **options)


def _wire(units: int) -> Wiring:
    """Return a wiring with half of the synapses, in which every unit is an output and reachable."""
    return Random(units, sparsity_level=0.5, random_seed=3)


def make_cell(name: str, input_size: int = 3, hidden_size: int = 4, **options: Any) -> Any:
    if name in MEMORY:
        return lrcnet.MixedMemoryCell(make_cell(MEMORY[name], input_size, hidden_size, **options))
    if name == WIRED_CFC:
        return lrcnet.WiredCfCCell(input_size, **{"dtype": torch.float64, "wiring": _wire(hidden_size), **options})
    options = {"dtype": torch.float64, **extra_options(name, hidden_size), **options}
    if base_name(name) == "cfc":
        options.setdefault("backbone_units", 6)
    return lrcnet.CELLS[base_name(name)](input_size, hidden_size, **options)


def state_map(function: Callable[[Tensor], Tensor], state: Any) -> Any:
    """Apply a function to a state, which is a tensor or an LSTM's pair."""
    return tuple(map(function, state)) if isinstance(state, tuple) else function(state)


def copy_values(layer: Any, index: int, target: Any) -> None:
    """Copy the values of one layer and direction to a cell, or to a layer with a single cell."""
    single = isinstance(target, lrcnet.layers.RecurrentLayer | lrcnet.MixedMemory)
    if isinstance(layer, lrcnet.MixedMemory):
        memory = target.memories[0] if single else target.memory
        memory.load_state_dict(layer.memories[index].state_dict())
    if isinstance(layer, lrcnet.MixedMemory) and not single:
        target = target.cell
    (target.cells[0] if single else target).load_state_dict(layer.cells[index].state_dict())


def random_state(layer: nn.Module, *shape: int) -> Any:
    state = torch.randn(*shape, dtype=torch.float64) * 0.3
    return (state, torch.randn_like(state)) if isinstance(layer, PAIRED) else state


def random_dt(name: str, *shape: int) -> Tensor | None:
    return torch.rand(*shape, dtype=torch.float64) if name in TIMED_NAMES else None


def take(dt: Tensor | None, index: Any) -> Tensor | None:
    return None if dt is None else dt[index]
