"""Public functions around the layers, with arguments that are right: a row for each, attacked by `bad_calls`."""

import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

import lrcnet
from lrcnet import interpret, theory
from lrcnet.data import from_long
from lrcnet.estimators import LiquidClassifier
from lrcnet.export import export_c
from lrcnet.trajectories import cut_windows, read_trajectories
from lrcnet.wirings import NCP, AutoNCP, FullyConnected, Layered, Random, Wiring


class Target(NamedTuple):
    """A function and arguments that are right."""

    call: Callable[..., Any]
    arguments: Callable[[], dict[str, Any]]


def _x() -> Tensor:
    return torch.randn(4, 2, 3)


def _table() -> dict[str, Any]:
    return {"who": np.array([1, 1, 2]), "at": np.array([0.0, 1.0, 0.0]), "v": np.array([1.0, 2.0, 3.0])}


def _run_wired(wiring: Any) -> Any:
    return lrcnet.LRCU(3, wiring=wiring)(_x())[0]


def _run_ssm(**options: Any) -> Any:
    return lrcnet.LrcSSM(**options)(torch.randn(2, 4, 3))


def _stream(reading: Any, time: Any, name: Any, **options: Any) -> Any:
    stream = lrcnet.Stream(lrcnet.LRCU(3, 4), **options)
    stream([0.0, 0.0, 0.0], 0.0, name)
    return stream(reading, time, name)


def _fit_ode(times: Any, values: Any, **options: Any) -> Any:
    return lrcnet.LiquidODE(iterations=2, **options).fit(times, values)


def _classify(x: Any, y: Any, **options: Any) -> Any:
    return LiquidClassifier(progress=False, **options).fit(x, y).predict(x)


def _export(**options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return export_c(lrcnet.LRCU(3, 4), f"{folder}/model.c", **options).source


def _save(directory: Any, extra: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model" if directory == "model" else directory
        return lrcnet.load(lrcnet.LRCU(3, 4).save(path, extra))(_x())[0]


def _curve() -> dict[str, Any]:
    times = np.linspace(0, 1, 12)
    return {"times": times, "values": np.stack([np.cos(times), np.sin(times)], -1)}


TARGETS: dict[str, Target] = {
    "wiring NCP": Target(
        lambda **given: _run_wired(NCP(**given)),
        lambda: {
            **{"inter_neurons": 4, "command_neurons": 3, "motor_neurons": 2, "sensory_fanout": 2, "inter_fanout": 2},
            **{"recurrent_command_synapses": 2, "motor_fanin": 2, "seed": 1},
        },
    ),
    "wiring AutoNCP": Target(
        lambda **given: _run_wired(AutoNCP(**given)),
        lambda: {"units": 8, "output_size": 2, "sparsity_level": 0.5, "seed": 1},
    ),
    "wiring Random": Target(
        lambda **given: _run_wired(Random(**given)),
        lambda: {"units": 5, "output_dim": 2, "sparsity_level": 0.5, "random_seed": 1},
    ),
    "wiring FullyConnected": Target(
        lambda **given: _run_wired(FullyConnected(**given)),
        lambda: {"units": 5, "output_dim": 2, "erev_init_seed": 1, "self_connections": True},
    ),
    "wiring Layered": Target(
        lambda **given: _run_wired(Layered(**given)),
        lambda: {"layers": [4, 3, 2], "sparsity_level": 0.5, "fanouts": None, "recurrent_synapses": None, "seed": 1},
    ),
    "wiring from text": Target(
        lambda text: _run_wired(Wiring.from_json(text)), lambda: {"text": AutoNCP(8, 2).to_json()}
    ),
    "wired layer": Target(
        lambda **given: lrcnet.LTC(**given)(_x())[0], lambda: {"input_size": 3, "wiring": AutoNCP(8, 2)}
    ),
    "wired CfC": Target(
        lambda **given: lrcnet.WiredCfC(**given)(_x())[0],
        lambda: {"input_size": 3, "wiring": AutoNCP(8, 2), "mode": "default", "dense_gates": False},
    ),
    "LrcSSM": Target(
        _run_ssm,
        lambda: {
            **{"input_size": 3, "output_size": 2, "hidden_size": 6, "states": 4, "blocks": 2, "pooling": "mean"},
            **{"dropout": 0.0, "contraction": 0.02, "synapses": "mixed", "elastance": "symmetric"},
        },
    ),
    "run an LrcSSM": Target(
        lambda **given: lrcnet.LrcSSM(3, 2, hidden_size=6, states=4)(**given),
        lambda: {"x": torch.randn(4, 2, 3), "dt": None, "lengths": None},
    ),
    "step an LrcSSM": Target(
        lambda **given: lrcnet.LrcSSM(3, 2, hidden_size=6, states=4).step(**given)[0],
        lambda: {"x": torch.randn(2, 3), "state": None, "dt": None},
    ),
    "make a mixed memory": Target(
        lambda layer: lrcnet.MixedMemory(layer)(_x())[0], lambda: {"layer": lrcnet.LRCU(3, 4)}
    ),
    "run a mixed memory": Target(
        lambda **given: lrcnet.MixedMemory(lrcnet.LRCU(3, 4))(**given)[0],
        lambda: {"input": _x(), "hx": None, "dt": None},
    ),
    "step a mixed memory": Target(
        lambda **given: lrcnet.MixedMemory(lrcnet.DiagonalLRC(3, 4)).step(**given)[0],
        lambda: {"x": torch.randn(2, 3), "state": None, "dt": None},
    ),
    "make a diagonal LRC": Target(
        lambda **given: lrcnet.DiagonalLRC(3, 4, **given)(_x())[0],
        lambda: {
            **{"elastance": "symmetric", "synapses": "mixed", "solver": "euler", "unfolds": 1, "negative_dt": "error"},
            **{"contraction": None, "backend": "auto", "time_scale": 1.0},
        },
    ),
    "letters of a diagonal LRC": Target(
        lambda **given: lrcnet.DiagonalLRC(3, 4).circuit(**given), lambda: {"layer": 0, "reverse": False}
    ),
    "make a CfC": Target(
        lambda **given: lrcnet.CfC(3, 4, **given)(_x())[0],
        lambda: {
            **{"mode": "default", "backbone_layers": 1, "backbone_units": 8, "backbone_dropout": 0.0},
            **{"activation": "lecun_tanh", "negative_dt": "error", "time_scale": 1.0},
        },
    ),
    "contraction factor": Target(
        theory.contraction_factor,
        lambda: {"c": 0.02, "dt": torch.tensor([0.5, 1.0]), "solver": "euler", "unfolds": 1},
    ),
    "certify": Target(
        theory.certify,
        lambda: {
            "stc": lrcnet.STC(3, 4, solver="euler", unfolds=1),
            "lrc": lrcnet.LRC(3, 4, solver="euler", unfolds=1),
            "domain": theory.Domain((-1.0, 1.0), (-1.0, 1.0)),
            "dt": 1.0,
        },
    ),
    "associated LRC": Target(
        lambda **given: theory.associated_lrc(lrcnet.STC(3, 4, solver="euler", unfolds=1), **given),
        lambda: {"margin": 0.1, "elastance": "symmetric", "bias": 0.0, "k_eps": 1.0, "dt": 1.0},
    ),
    "empirical Lipschitz": Target(
        lambda **given: theory.empirical_lipschitz(lrcnet.LRCU(3, 4), **given),
        lambda: {"data": _x(), "domain": None, "dt": 1.0, "starts": 2, "steps": 3, "seed": 0},
    ),
    "generalisation bound": Target(
        lambda **given: theory.generalisation_bound((lrcnet.LRCU(3, 4), torch.nn.Linear(4, 1)), **given),
        lambda: {
            **{"training": (_x(), torch.rand(4, 2, 1)), "validation": (_x(), torch.rand(4, 2, 1)), "dt": 1.0},
            **{"h0": None, "kind": "tighter", "pairing": "nearest"},
        },
    ),
    "visited points": Target(
        lambda **given: theory.visited_points(lrcnet.LRCU(3, 4), **given)[0],
        lambda: {"inputs": _x(), "h0": None, "dt": 1.0},
    ),
    "integrated gradients": Target(
        lambda **given: interpret.integrated_gradients(lambda x: x.sum(-1), **given),
        lambda: {"x": torch.ones(2, 3), "baseline": 0.0, "steps": 4},
    ),
    "visual backprop": Target(
        lambda **given: interpret.visual_backprop(**given),
        lambda: {
            "layers": torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU()),
            "pictures": torch.rand(2, 1, 8, 8),
        },
    ),
    "heat map": Target(
        lambda **given: interpret.heat_map(interpret.trace(lrcnet.LRCU(3, 4), _x()), **given),
        lambda: {"sample": 0, "names": ("state",), "order": None, "events": None, "title": ""},
    ),
    "stream": Target(
        _stream,
        lambda: {
            **{"reading": [0.5, 1.0, 2.0], "time": 1.0, "name": "one", "unit": "seconds", "backwards": "error"},
            **{"reset_after": None, "horizon": None},
        },
    ),
    "update streams": Target(
        lambda readings: lrcnet.Stream(lrcnet.LRCU(3, 4)).update(readings),
        lambda: {"readings": {"one": ([0.5, 1.0, 2.0], 1.0)}},
    ),
    "restore a stream": Target(
        lambda snapshot: lrcnet.Stream(lrcnet.LRCU(3, 4)).restore(snapshot),
        lambda: {"snapshot": lrcnet.Stream(lrcnet.LRCU(3, 4)).snapshot()},
    ),
    "table as tensors": Target(
        from_long, lambda: {"frame": _table(), "id": "who", "time": "at", "channels": ["v"], "label": None}
    ),
    "trajectories": Target(read_trajectories, _curve),
    "windows": Target(cut_windows, lambda: {"data": read_trajectories(**_curve()), "length": 4}),
    "liquid ODE": Target(
        _fit_ode,
        lambda: {**_curve(), "field": "lrc", "units": 4, "solver": "rk4", "window": 4, "learning_rate": 0.01},
    ),
    "classify": Target(
        _classify,
        lambda: {
            **{"x": np.random.default_rng(0).normal(size=(6, 5, 2)), "y": np.array([0, 1, 0, 1, 0, 1])},
            **{"cell": "lrcu", "units": 4, "layers": 1, "epochs": 1, "batch_size": 2, "learning_rate": 0.01},
            **{"pooling": "last", "dropout": 0.0, "validation_share": 0.2, "random_state": 0, "class_weight": None},
        },
    ),
    "forecaster": Target(
        lambda **given: lrcnet.Forecaster(lrcnet.LRCU(3, 4, batch_first=True), **given),
        lambda: {"width": 4, "channels": 3, "residual": True},
    ),
    "regressor": Target(
        lambda **given: lrcnet.Regressor(lrcnet.LRCU(3, 4, batch_first=True), **given),
        lambda: {"width": 4, "classes": 2, "pooling": "last"},
    ),
    "export C": Target(_export, lambda: {"arithmetic": "float32", "own_exp": False, "timed": None}),
    "save and load": Target(_save, lambda: {"directory": "model", "extra": None}),
}  # fmt: skip
