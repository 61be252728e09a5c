"""The networks whose exports are tested, by name: every layer, every fixed-step solver, every model."""

from collections.abc import Callable
from typing import Any

import torch

import lrcnet
from lrcnet import wirings
from lrcnet.cells.cfc_equation import ACTIVATIONS, MODES
from lrcnet.export.forms import network_of
from lrcnet.solvers import SOLVERS, DormandPrince

FIXED_SOLVERS = [name for name, method in SOLVERS.items() if not isinstance(method, DormandPrince)]
CHANNELS, UNITS = 3, 6


def layer(name: str, layers: int = 2, **options: Any) -> Any:
    return lrcnet.LAYERS[name](CHANNELS, UNITS, layers, **options)


def with_scaling(model: Any) -> Any:
    """Give a model the scaling of inputs around 1000 and of two answers."""
    model.set_input_scaling(torch.tensor([1000.0, 0.0, 5.0]), torch.tensor([20.0, 1.0, 2.0]))
    model.set_target_scaling(torch.tensor([7.0, 8.0]), torch.tensor([3.0, 2.0]))
    return model


def calibrated() -> Any:
    rnn = lrcnet.LRC(CHANNELS, UNITS, solver="exponential", time_scale=60.0, fill_first_gap=True)
    return rnn.calibrate(1000 + 20 * torch.randn(50, 4, CHANNELS))


def sparse() -> Any:
    """Build a network most of whose synapses are absent."""
    rnn = layer("lrcu")
    for index in range(2):
        letters = rnn.circuit(index)
        keep = torch.rand(letters["g"].shape) < 0.3
        rnn.load_circuit({**letters, **{name: letters[name] * keep for name in ("g", "k", "o")}}, index)
    return rnn


def lrc_ssm(**options: Any) -> Any:
    """Build an LrcSSM whose norms and maps are not those of initialisation."""
    model = lrcnet.LrcSSM(CHANNELS, 2, hidden_size=8, states=UNITS, **options)
    with torch.no_grad():
        for block in model.network.layer.blocks:
            for value in (block.norm.weight, block.norm.bias, block.skip):
                value += 0.3 * torch.randn_like(value)
    return model


ODE_LAYERS = [name for name in lrcnet.LAYERS if hasattr(lrcnet.CELLS[name], "solvers")]
QUICK: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: layer(name) for name in lrcnet.LAYERS},
    "wired-cfc": lambda: lrcnet.WiredCfC(CHANNELS, wiring=wirings.AutoNCP(12, 3, seed=1)),
    "mixed-memory": lambda: lrcnet.MixedMemory(layer("lrc", input_map=True)),
    "tokens": lambda: lrcnet.Classifier(lrcnet.LRCU(CHANNELS, UNITS), UNITS, 2, vocabulary=9, embedding=CHANNELS),
    "classifier": lambda: lrcnet.Classifier(layer("lrc", solver="rk4"), UNITS, 2, pooling="mean"),
    "regressor": lambda: with_scaling(lrcnet.Regressor(layer("gru", time_feature=True), UNITS, 2)),
    "forecaster": lambda: with_scaling(lrcnet.Forecaster(layer("lrc", time_scale=30.0), UNITS, 2)),
    "calibrated": calibrated,
    "lrc-ssm": lambda: lrc_ssm(pooling="mean", time_scale=30.0),
}
SLOW: dict[str, Callable[[], Any]] = {
    **{
        f"{name}-{solver}": lambda name=name, solver=solver: layer(name, solver=solver, unfolds=2, time_warnings=False)
        for name in ODE_LAYERS
        for solver in FIXED_SOLVERS
        if solver in lrcnet.CELLS[name].solvers
    },
    **{f"cfc-{mode}": lambda mode=mode: layer("cfc", mode=mode, backbone_layers=0) for mode in MODES},
    **{
        f"cfc-{name}": lambda name=name: layer("cfc", activation=name, backbone_units=8, backbone_layers=2)
        for name in ACTIVATIONS
    },
    "cfc-timed": lambda: lrcnet.Classifier(layer("cfc", time_scale=30.0), UNITS, 2, pooling="mean"),
    "wired-cfc-pure": lambda: lrcnet.WiredCfC(CHANNELS, num_layers=2, wiring=wirings.AutoNCP(12, 3), mode="pure"),
    "mixed-wired-cfc": lambda: lrcnet.MixedMemory(lrcnet.WiredCfC(CHANNELS, wiring=wirings.AutoNCP(12, 3, seed=1))),
    "mixed-gru": lambda: lrcnet.Tagger(lrcnet.MixedMemory(layer("gru-reset-before")), UNITS, 2),
    "mixed-calibrated": lambda: lrcnet.MixedMemory(calibrated()),
    "tokens-timed": lambda: lrcnet.Classifier(
        lrcnet.LTC(CHANNELS, UNITS, time_feature=True), UNITS, 2, pooling="max", vocabulary=9, embedding=CHANNELS
    ),
    "diagonal-per-channel": lambda: layer("diagonal-lrc", synapses="per-channel", elastance="asymmetric"),
    "lrc-ssm-per-reading": lambda: lrc_ssm(pooling=None, time_feature=True, blocks=3),
    "lrc-ssm-per-channel": lambda: lrc_ssm(pooling="max", synapses="per-channel", elastance="asymmetric"),
    "lrc-ssm-contraction": lambda: lrc_ssm(pooling="last", contraction=0.01, solver="exponential"),
    "diagonal-contraction": lambda: layer("diagonal-lrc", contraction=0.01, time_warnings=False),
    "asymmetric": lambda: layer("lrcu", elastance="asymmetric", output_map=True, bias=False),
    "softplus": lambda: layer("lrc", constraint="softplus", input_map=False, parametrisation="sigma-mu"),
    "time-feature": lambda: layer("lrcu", time_feature=True, time_scale=60.0),
    "mgu-timed": lambda: layer("mgu", time_feature=True),
    "lstm-timed": lambda: layer("lstm", time_feature=True),
    "max-pooling": lambda: lrcnet.Classifier(layer("lstm"), UNITS, 2, pooling="max"),
    "tagger": lambda: lrcnet.Tagger(layer("ltc"), UNITS, 2),
    "sparse": sparse,
    "wired": lambda: lrcnet.LRC(CHANNELS, num_layers=2, wiring=wirings.AutoNCP(12, 3, seed=1)),
    "wired-ltc": lambda: lrcnet.LTC(CHANNELS, wiring=wirings.AutoNCP(12, 3, seed=1), output_map=True),
    "wired-mean": lambda: lrcnet.Classifier(
        lrcnet.LRCU(CHANNELS, wiring=wirings.Random(8, sparsity_level=0.6, random_seed=1)), 8, 2, pooling="mean"
    ),
}
ALL = {**QUICK, **SLOW}


def build(name: str) -> Any:
    """Build a network by name, always the same one."""
    torch.manual_seed(sum(map(ord, name)))
    return network_of(ALL[name]()).eval()
