"""Public functions with one or two bad arguments: each must give a clear error, or an answer that makes sense."""

from collections.abc import Callable, Mapping
from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

import lrcnet
from lrcnet import interpret, theory
from lrcnet.errors import check_target
from lrcnet.models import Classifier, Tagger
from lrcnet_paper.driving.world import World
from lrcnet_paper.interpret.neurons import correlation
from lrcnet_paper.models.recurrent import parse_solver, recurrent_layer
from lrcnet_paper.road_seeds import split_roads
from lrcnet_paper.training.spec import RunSpec, parse_option
from tests.fuzz import call_targets
from tests.fuzz.call_targets import Target
from tests.fuzz.outcomes import WRONG, Outcome

Arguments = Mapping[str, Any]


class BadCall(NamedTuple):
    """A call of a target, with some of its arguments replaced by bad values, given by their names."""

    target: str
    replaced: tuple[tuple[str, str], ...]


BAD_VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "zero": lambda: 0,
    "minus one": lambda: -1,
    "minus a half": lambda: -0.5,
    "one and a half": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "text": lambda: "abc",
    "empty text": lambda: "",
    "number as text": lambda: "1",
    "list": lambda: [1.0, 2.0],
    "empty list": list,
    "tuple": lambda: (torch.zeros(2, 4), torch.zeros(2, 4)),
    "dictionary": lambda: {"a": 1},
    "object": object,
    "array": lambda: np.ones((4, 2, 3), dtype=np.float32),
    "complex number": lambda: 1j,
    "numpy integer": lambda: np.int64(3),
    "0-d tensor": lambda: torch.tensor(1.0),
    "1-d tensor": lambda: torch.ones(3),
    "2-d tensor": lambda: torch.ones(4, 2),
    "4-d tensor": lambda: torch.ones(1, 4, 2, 3),
    "wrong features": lambda: torch.ones(4, 2, 5),
    "no features": lambda: torch.ones(4, 2, 0),
    "empty tensor": lambda: torch.empty(0),
    "integers": lambda: torch.ones(4, 2, 3, dtype=torch.int64),
    "float64": lambda: torch.ones(4, 2, 3, dtype=torch.float64),
    "half": lambda: torch.ones(4, 2, 3, dtype=torch.float16),
    "complex tensor": lambda: torch.ones(4, 2, 3, dtype=torch.complex64),
    "meta tensor": lambda: torch.ones(4, 2, 3, device="meta"),
    "sparse tensor": lambda: torch.ones(4, 2, 3).to_sparse(),
    "nan tensor": lambda: torch.full((4, 2), torch.nan),
    "negative tensor": lambda: -torch.ones(4, 2),
    "module": lambda: torch.nn.Linear(2, 2),
    "type": lambda: int,
}


def _layer(kind: str, **options: Any) -> Any:
    return lrcnet.LAYERS[kind](3, 4, **options)


def _x() -> Tensor:
    return torch.randn(4, 2, 3)


def _make_layer(kind: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        layer = lrcnet.LAYERS[kind](**options)
        return layer(torch.zeros(2, 2, options["input_size"]))[0]

    return make


def _make_cell(kind: str) -> Callable[..., Any]:
    def make(**options: Any) -> Any:
        return lrcnet.CELLS[kind](**options)

    return make


def _run_layer(kind: str, **options: Any) -> Callable[..., Any]:
    def run(**arguments: Any) -> Any:
        return _layer(kind, **options)(**arguments)[0]

    return run


def _run_step(kind: str, grad: bool) -> Callable[..., Any]:
    def run(**arguments: Any) -> Any:
        with torch.set_grad_enabled(grad):
            return _layer(kind).step(**arguments)[0]

    return run


def _load_circuit(**letters: Any) -> Any:
    layer = lrcnet.LRCU(3, 4)
    layer.load_circuit(letters)
    return layer(_x())[0]


def _roll_out(**arguments: Any) -> Any:
    y0, t = arguments.pop("y0"), arguments.pop("t")
    return lrcnet.NeuralODE(lrcnet.MLPField(3), **arguments)(y0, t)


def _drive(action: Any) -> Any:
    return World([0, 1], length=50).step(action)


def _find_rate(**arguments: Any) -> Any:
    model = torch.nn.Linear(3, 1)
    loader = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
    return lrcnet.find_rate(model, loader, loss=torch.nn.functional.mse_loss, progress=False, **arguments)


_LAYER: Arguments = {"input_size": 3, "hidden_size": 4, "num_layers": 1, "bias": True, "batch_first": False}
_LAYER_MORE: Arguments = {"dropout": 0.0, "bidirectional": False, "device": None, "dtype": None}
_LIQUID: Arguments = {
    "unfolds": 1,
    "negative_dt": "error",
    "input_map": True,
    "output_map": False,
    "parametrisation": "scaled",
    "constraint": "clamp",
    "init": "balanced",
    "backend": "auto",
    "time_scale": 1.0,
    "fill_first_gap": False,
}
_KINDS = tuple(lrcnet.LAYERS)
_TIMED = ("ltc", "lrcu", "ctrnn", "gru-ode", "cfc", "diagonal-lrc")

TARGETS: dict[str, Target] = {
    **call_targets.TARGETS,
    **{
        f"make {kind}": Target(
            _make_layer(kind),
            lambda kind=kind: {**_LAYER, **_LAYER_MORE, **(_LIQUID if kind in ("ltc", "stc", "lrc", "lrcu") else {})},
        )
        for kind in _KINDS
    },
    **{
        f"make cell {kind}": Target(_make_cell(kind), lambda: {"input_size": 3, "hidden_size": 4, "bias": True})
        for kind in _KINDS
    },
    **{f"run {kind}": Target(_run_layer(kind), lambda: {"input": _x(), "hx": None}) for kind in _KINDS},
    **{f"run {kind} with dt": Target(_run_layer(kind), lambda: {"input": _x(), "dt": 0.5}) for kind in _TIMED},
    **{
        f"run {kind} with a time feature": Target(
            _run_layer(kind, time_feature=True), lambda: {"input": _x(), "dt": torch.rand(4, 2)}
        )
        for kind in ("mgu", "gru-reset-before", "lstm", "gru", "lrcu")
    },
    **{
        f"step {kind} {'with' if grad else 'without'} gradient": Target(
            _run_step(kind, grad), lambda: {"x": torch.randn(2, 3), "state": None, "dt": None}
        )
        for kind in ("lrcu", "lrc", "mgu", "gru-reset-before", "gru", "ctrnn", "cfc", "diagonal-lrc")
        for grad in (True, False)
    },
    "call a cell": Target(
        lambda **given: lrcnet.LRCUCell(3, 4)(**given), lambda: {"x": torch.ones(2, 3), "h": None, "dt": 1.0}
    ),
    "call a GRU cell": Target(
        lambda **given: lrcnet.GRUCell(3, 4, time_feature=True)(**given), lambda: {"input": torch.ones(2, 3), "dt": 1.0}
    ),
    "derivative": Target(
        lambda **given: lrcnet.LRCCell(3, 4).derivative(**given),
        lambda: {"x": torch.ones(2, 3), "h": torch.zeros(2, 4)},
    ),
    "load circuit": Target(_load_circuit, lambda: dict(lrcnet.LRCU(3, 4).circuit())),
    "circuit": Target(lambda **given: lrcnet.LRCU(3, 4).circuit(**given), lambda: {"layer": 0, "reverse": False}),
    "calibrate": Target(lambda x: lrcnet.LRCU(3, 4).calibrate(x), lambda: {"x": torch.randn(20, 2, 3)}),
    "calibrate time": Target(lambda dt: lrcnet.LRCU(3, 4).calibrate_time(dt), lambda: {"dt": torch.rand(4, 2)}),
    "project": Target(lambda module: lrcnet.project_(module), lambda: {"module": lrcnet.LRCU(3, 4)}),
    "find rate": Target(_find_rate, lambda: {"low": 1e-4, "high": 1e-1, "steps": 10}),
    "roll out": Target(
        _roll_out,
        lambda: {
            "y0": torch.ones(2, 3),
            "t": torch.linspace(0, 1, 3),
            "solver": "dopri5",
            "relative_tolerance": 1e-4,
            "absolute_tolerance": 1e-4,
            "backend": "auto",
        },
    ),
    "make a field": Target(
        lambda **given: lrcnet.LRCField(**given), lambda: {"size": 2, "units": 4, "elastance": "symmetric"}
    ),
    "make an MLP field": Target(lambda **given: lrcnet.MLPField(**given), lambda: {"size": 2, "hidden": (4, 4)}),
    "trace": Target(
        lambda **given: interpret.trace(lrcnet.LRCU(3, 4), **given),
        lambda: {"x": _x(), "dt": None, "hx": None, "depth": -1, "reverse": False},
    ),
    "shares": Target(
        lambda **given: interpret.shares(lrcnet.LRCU(3, 4), **given),
        lambda: {"x": _x(), "output": lambda y: y[-1, :, 0], "dt": None},
    ),
    "rank": Target(lambda **given: interpret.rank(**given), lambda: {"parts": torch.rand(3), "names": None}),
    "Lipschitz bound": Target(
        lambda **given: theory.lipschitz_bound(lrcnet.LRCU(3, 4), **given),
        lambda: {"domain": theory.Domain((-1.0, 1.0), (-1.0, 1.0)), "dt": 1.0, "kind": "paper"},
    ),
    "domain": Target(theory.Domain, lambda: {"states": (-1.0, 1.0), "inputs": (-1.0, 1.0)}),
    "damping": Target(
        lambda **given: theory.damping(lrcnet.LRCU(3, 4), **given),
        lambda: {"domain": theory.Domain((-1.0, 1.0), (-1.0, 1.0)), "unit": 0, "channel": 0, "points": 11},
    ),
    "tagger": Target(
        lambda **given: Tagger(lrcnet.LRCU(3, 4, batch_first=True), **given), lambda: {"width": 4, "classes": 2}
    ),
    "classifier": Target(
        lambda **given: Classifier(lrcnet.LRCU(3, 4, batch_first=True), **given),
        lambda: {"width": 4, "classes": 2, "vocabulary": 0, "embedding": 0},
    ),
    "target of a page": Target(check_target, lambda: {"path": "page.html"}),
    "run": Target(
        RunSpec,
        lambda: {
            "task": "person",
            "variant": "coarse",
            "model": "gru",
            "solver": "",
            "seed": 0,
            "epochs": 1,
            "batch_size": 4,
            "learning_rate": 0.1,
            "budget": "paper",
            "clip": None,
            "schedule": "constant",
        },
    ),
    "model by name": Target(recurrent_layer, lambda: {"model": "lrcu-s", "input_size": 3, "units": 4, "solver": ""}),
    "parse option": Target(parse_option, lambda: {"text": "units=3"}),
    "parse solver": Target(parse_solver, lambda: {"text": "hybrid-6"}),
    "split roads": Target(split_roads, lambda: {"train": 3, "validation": 2, "test": 1}),
    "correlation": Target(correlation, lambda: {"activity": torch.randn(5, 2), "signal": torch.randn(5)}),
    "drive": Target(_drive, lambda: {"action": torch.zeros(2)}),
}

CASES = st.sampled_from(tuple(TARGETS)).flatmap(
    lambda name: st.builds(
        BadCall,
        st.just(name),
        st.lists(
            st.tuples(st.sampled_from(tuple(TARGETS[name].arguments())), st.sampled_from(tuple(BAD_VALUES))),
            min_size=1,
            max_size=2,
            unique_by=lambda pair: pair[0],
        ).map(tuple),
    )
)


def attack(case: BadCall) -> Outcome | None:
    """Call the target; a tensor that it returns must be finite unless a bad value was not."""
    target = TARGETS[case.target]
    bad = {name: BAD_VALUES[value]() for name, value in case.replaced}
    # A bad value may be taken as the name of a file that is written.
    with TemporaryDirectory() as folder, chdir(folder):
        answer = target.call(**{**target.arguments(), **bad})
    infinite = any(word in value for _, value in case.replaced for word in ("nan", "inf", "meta", "complex"))
    if isinstance(answer, Tensor) and not infinite and not bool(answer.isfinite().all()):
        return Outcome(WRONG, f"a finite call gave numbers that are not finite: {case}")
    return None
