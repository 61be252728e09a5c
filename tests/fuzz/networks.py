"""The networks that kernel cases draw: every layer of the library by name, built from the fields of a case.

A row of `NETWORKS` is one network. `tests/fuzz/test_fuzz.py` checks that no layer of `lrcnet.LAYERS` is missing.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import nn

import lrcnet
from lrcnet.cells import cfc, gated_sequence
from lrcnet.cells.cfc_equation import MODES
from lrcnet.contraction import CONTRACTING_SOLVERS
from lrcnet.lrc_ssm import LrcSSMLayer
from lrcnet.wirings import AutoNCP, FullyConnected, Random, Wiring

SOLVERS = ("hybrid", "exponential", "euler", "heun", "rk4")
NCP = "ncp"
WIRINGS = (None, None, 0.0, 0.5, 0.9, NCP)
"""The share of absent synapses of a random wiring, a wiring in layers, or None for a layer without a wiring."""


class Options(NamedTuple):
    """The fields of a case that describe its network; each network reads the ones that it has."""

    solver: str
    unfolds: int
    elastance: str
    parametrisation: str
    constraint: str
    flags: tuple[bool, bool, bool]
    depth: int
    bidirectional: bool
    batch_first: bool
    double: bool
    inputs: int
    units: int
    wiring: float | str | None
    mode: str

    def shape(self) -> dict[str, Any]:
        """Return the options that every layer has."""
        dtype = torch.float64 if self.double else torch.float32
        return {
            "num_layers": self.depth,
            "batch_first": self.batch_first,
            "bidirectional": self.bidirectional,
            "dtype": dtype,
        }


class Network(NamedTuple):
    """How a network is built, and what a call of it looks like."""

    build: Callable[[Options], nn.Module]
    has_pair: bool = False
    """Whether its state is a pair (h, c)."""
    timed: Callable[[Options], bool] = lambda options: True
    """Whether it takes a dt."""
    only_forward: bool = False
    """Whether it has one direction, and time as the second axis."""
    dense_saved: bool = False
    """Whether its saved tensors must come back dense: torch's own LSTM and LayerNorm read other strides wrongly."""


def _make_wiring(options: Options) -> Wiring | None:
    if options.wiring is None:
        return None
    if options.wiring == NCP:
        return AutoNCP(options.units + 6, 1 + options.units % 3)
    assert isinstance(options.wiring, float)
    full = not options.wiring
    return FullyConnected(options.units) if full else Random(options.units, sparsity_level=options.wiring)


def _liquid(kind: str) -> Network:
    def build(options: Options) -> nn.Module:
        bias, input_map, output_map = options.flags
        own: dict[str, Any] = {"bias": bias, "input_map": input_map, "output_map": output_map}
        own |= {"parametrisation": options.parametrisation, "constraint": options.constraint, "time_warnings": False}
        own |= {"unfolds": options.unfolds}
        if kind in ("lrc", "lrcu"):
            own["elastance"] = options.elastance
        if kind != "lrcu":
            own["solver"] = options.solver
        wiring = _make_wiring(options)
        if wiring is not None:
            own["wiring"] = wiring
        units = None if options.wiring == NCP else options.units
        return lrcnet.LAYERS[kind](options.inputs, units, **options.shape(), **own)

    return Network(build)


def _build_cfc(options: Options) -> nn.Module:
    bias, whole, _ = options.flags
    # The compiled loops need whole vectors of units.
    units = 16 * (1 + options.units // 17) if whole else options.units
    own = {"mode": options.mode, "backbone_layers": options.unfolds - 1, "backbone_units": 16 if whole else 10}
    return lrcnet.CfC(options.inputs, units, bias=bias, **options.shape(), **own)


def _build_wired_cfc(options: Options) -> nn.Module:
    wiring = AutoNCP(options.units + 6, 1 + options.units % 3)
    return lrcnet.WiredCfC(options.inputs, wiring=wiring, mode=options.mode, **options.shape())


def _diagonal(options: Options) -> dict[str, Any]:
    _, contraction, mixed = options.flags
    # Only some solvers have steps that are proved to contract.
    contraction = contraction and options.solver in CONTRACTING_SOLVERS
    return {
        "elastance": options.elastance,
        "synapses": "mixed" if mixed else "per-channel",
        "solver": options.solver,
        "unfolds": options.unfolds,
        "contraction": 0.02 if contraction else None,
        "time_warnings": False,
    }


def _build_diagonal(options: Options) -> nn.Module:
    own = _diagonal(options)
    return lrcnet.DiagonalLRC(options.inputs, options.units, bias=options.flags[0], **options.shape(), **own)


def _build_lrc_ssm(options: Options) -> nn.Module:
    # The norm of very few features has gradients that no float32 can have.
    layer = LrcSSMLayer(options.inputs, 8 + options.units, options.units, options.depth, **_diagonal(options))
    return layer.double() if options.double else layer


def _gated(kind: str, **kind_of_call: Any) -> Network:
    def build(options: Options) -> nn.Module:
        own = {"bias": options.flags[0], "time_feature": options.flags[1]}
        return lrcnet.LAYERS[kind](options.inputs, options.units, **options.shape(), **own)

    return Network(build, timed=lambda options: options.flags[1], **kind_of_call)


def _ode(kind: str) -> Network:
    def build(options: Options) -> nn.Module:
        own = {"bias": options.flags[0], "solver": options.solver, "unfolds": options.unfolds, "time_warnings": False}
        return lrcnet.LAYERS[kind](options.inputs, options.units, **options.shape(), **own)

    return Network(build)


def _with_memory(name: str) -> Network:
    def build(options: Options) -> nn.Module:
        return lrcnet.MixedMemory(NETWORKS[name].build(options))  # type: ignore[arg-type]

    return Network(build, has_pair=True, timed=NETWORKS[name].timed)


NETWORKS: dict[str, Network] = {
    **{kind: _liquid(kind) for kind in ("ltc", "stc", "lrc", "lrcu")},
    "cfc": Network(_build_cfc),
    "diagonal-lrc": Network(_build_diagonal),
    "wired-cfc": Network(_build_wired_cfc),
    "lrc-ssm": Network(_build_lrc_ssm, only_forward=True, dense_saved=True),
    "mgu": _gated("mgu"),
    "gru-reset-before": _gated("gru-reset-before"),
    "gru": _gated("gru"),
    "lstm": _gated("lstm", has_pair=True, dense_saved=True),
    "ctrnn": _ode("ctrnn"),
    "gru-ode": _ode("gru-ode"),
}
NETWORKS |= {f"{name} with memory": _with_memory(name) for name in ("lrcu", "diagonal-lrc", "cfc", "mgu")}
FUSED = ("ltc", "stc", "lrc", "lrcu", "cfc", "diagonal-lrc")
"""Those with compiled loops of their own, which are drawn more often."""
CFC_MODES = MODES


def state_size(layer: Any) -> int:
    """Return the number of units of one state."""
    units: int = layer.blocks[0].recurrence.hidden_size if isinstance(layer, LrcSSMLayer) else layer.hidden_size
    return units


def output_size(layer: Any, directions: int) -> int:
    """Return the number of features of the output."""
    size: int = layer.hidden_size if isinstance(layer, LrcSSMLayer) else layer.proj_size or layer.hidden_size
    return size * directions


@contextmanager
def plain_loops(layer: nn.Module) -> Iterator[None]:
    """Let a layer compute with plain loops only."""
    for module in layer.modules():
        if hasattr(module, "backend"):
            module.backend = "reference"
    with ExitStack() as stack:
        for home in (cfc, gated_sequence):
            stack.enter_context(mock.patch.object(home, "serves", return_value=False))
        yield
