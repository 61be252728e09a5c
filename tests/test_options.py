"""The options of layers are those of their cells: in signatures, in messages, and for type checkers."""

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

import lrcnet
from lrcnet.cells.base import NEGATIVE_DT
from lrcnet.cells.cfc_equation import ACTIVATIONS, MODES, CfCActivation, CfCMode
from lrcnet.constraints import CONSTRAINTS, Constraint
from lrcnet.continuous_layer import ContinuousLayer
from lrcnet.kernels import CHOICES
from lrcnet.layers import LiquidLayer, ODELayer
from lrcnet.liquid import ELASTANCES, PARAMETRISATIONS, Elastance, Parametrisation
from lrcnet.options import (
    BackendChoice,
    CfCOptions,
    DiagonalOptions,
    GatedOptions,
    LiquidOptions,
    NegativeDt,
    ODEOptions,
)
from lrcnet.recurrent_layer import keyword_only
from lrcnet.solvers import FIELD_SOLVERS, SOLVERS, DormandPrince, ExplicitRungeKutta, FieldSolverName, SolverName
from lrcnet.wirings import Wiring

ROOT = Path(__file__).parent.parent
NAMES = list(lrcnet.LAYERS)


def options_of(name: str) -> dict[str, Any]:
    """Return the annotations of a layer's options, as a type checker sees them."""
    layer = lrcnet.LAYERS[name]
    if issubclass(layer, LiquidLayer):
        return get_type_hints(LiquidOptions)
    if issubclass(layer, lrcnet.CfC):
        return get_type_hints(CfCOptions)
    if issubclass(layer, lrcnet.DiagonalLRC):
        return get_type_hints(DiagonalOptions)
    return get_type_hints(ODEOptions if issubclass(layer, ODELayer) else GatedOptions)


def widen(annotation: Any) -> Any:
    """Replace the names of a Literal by str, which a cell's own annotation may use."""
    if get_origin(annotation) is Literal:
        return str
    if get_origin(annotation) in (Union, types.UnionType):
        return Union[tuple(widen(part) for part in get_args(annotation))]  # noqa: UP007
    return annotation


@pytest.mark.parametrize("name", NAMES)
def test_declared_options_are_the_keyword_only_parameters_of_the_cell_and_of_time(name: str) -> None:
    constructors = [lrcnet.CELLS[name].__init__]
    if issubclass(lrcnet.LAYERS[name], ContinuousLayer):
        constructors.append(ContinuousLayer.__init__)
    own = {}
    for constructor in constructors:
        annotations = get_type_hints(constructor)
        own |= {option: annotations[option] for option in keyword_only(constructor)}
    declared = options_of(name)
    assert list(declared) == list(own)
    for option, annotation in declared.items():
        assert own[option] in (annotation, widen(annotation)), option


@pytest.mark.parametrize("name", NAMES)
def test_the_signature_is_that_of_torch_followed_by_the_options(name: str) -> None:
    parameters = list(inspect.signature(lrcnet.LAYERS[name]).parameters.values())
    first = ["input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"]
    assert [p.name for p in parameters] == [*first, "device", "dtype", *options_of(name)]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters[9:])


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("lstm", "gru")])
def test_an_unknown_option_is_an_error_that_lists_the_valid_ones(name: str) -> None:
    layer = lrcnet.LAYERS[name]
    with pytest.raises(TypeError) as raised:
        layer(3, 5, elastence="symmetric")
    assert str(raised.value) == f"{layer.__name__} has no option elastence; it takes {', '.join(options_of(name))}"


def test_names_in_types_are_the_names_that_are_accepted() -> None:
    assert get_args(SolverName) == tuple(SOLVERS)
    by_field = (name for name, method in SOLVERS.items() if isinstance(method, ExplicitRungeKutta | DormandPrince))
    assert get_args(FieldSolverName) == FIELD_SOLVERS == tuple(by_field)
    assert get_args(NegativeDt) == NEGATIVE_DT
    assert get_args(BackendChoice) == CHOICES
    assert get_args(Elastance) == tuple(ELASTANCES)
    assert get_args(Parametrisation) == PARAMETRISATIONS
    assert get_args(Constraint) == CONSTRAINTS
    assert get_args(CfCMode) == MODES
    assert get_args(CfCActivation) == tuple(ACTIVATIONS)


def good_values(annotation: Any) -> list[str]:
    """Return source text of values that an annotation allows."""
    if get_origin(annotation) is Literal:
        return [repr(value) for value in get_args(annotation)]
    if get_origin(annotation) in (Union, types.UnionType):
        return [value for part in get_args(annotation) for value in good_values(part)]
    by_type = {float: ["2.5", "2"], int: ["2"], bool: ["True"], types.NoneType: ["None"], Wiring: ["AutoNCP(5, 1)"]}
    return by_type[annotation]


def good_calls() -> Iterator[str]:
    for name, layer in lrcnet.LAYERS.items():
        kind = f"lrcnet.{layer.__name__}"
        yield f"{kind}(3, 5, 2, True, False, 0.1, True, 'cpu', torch.float64)"
        for option, annotation in options_of(name).items():
            yield from (f"{kind}(3, 5, batch_first=True, {option}={value})" for value in good_values(annotation))
    yield "lrcnet.LRCU(3, wiring=AutoNCP(5, 1))"
    yield "lrcnet.LAYERS['lrcu'](3, 5, num_layers=2).step(torch.ones(2, 3))"
    yield "lrcnet.CELLS['lrcu'](3, 5).reset_parameters()"
    yield "lrcnet.LRCField(2, elastance='none', saturated=False, constraint='softplus')"
    yield "lrcnet.NeuralODE(lrcnet.MLPField(2), solver='rk4', backend='reference')"
    yield "lrcnet.project_(lrcnet.LRCU(3, 5))"


def bad_calls() -> Iterator[str]:
    for name, layer in lrcnet.LAYERS.items():
        kind = f"lrcnet.{layer.__name__}"
        yield f"{kind}(3, 5, elastence='a')"
        yield f"{kind}(3, '5')"
        for option in options_of(name):
            yield f"{kind}(3, 5, {option}='nonsense')"
            yield f"{kind}(3, 5, {option}s=True)"
    yield "lrcnet.LRCUCell(3, 5, elastence='a')"
    yield "lrcnet.LAYERS['lrcu'](3, '5')"
    yield "lrcnet.LRCField(2, elastance='some')"
    yield "lrcnet.NeuralODE(lrcnet.MLPField(2), solver='hybrid')"
    yield "lrcnet.LRCX"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Write a program of good calls followed by bad calls, one per line."""
    file = tmp_path / "calls.py"
    imports = ["import torch", "import lrcnet", "from lrcnet.wirings import AutoNCP"]
    file.write_text("\n".join([*imports, *good_calls(), *bad_calls(), ""]))
    return file


def bad_lines(program: Path) -> dict[int, str]:
    bad = set(bad_calls())
    return {i: line for i, line in enumerate(program.read_text().splitlines(), 1) if line in bad}


@pytest.mark.slow
def test_mypy_refuses_the_bad_calls_and_no_good_one(program: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(program)]
    environment = {**os.environ, "MYPYPATH": str(Path(lrcnet.__file__).parents[1])}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    # Match the file's name only: mypy's cache repeats errors of an unchanged program with the path of an earlier run.
    numbers = [int(number) for number in re.findall(rf"^.*{program.name}:(\d+): error:", ran.stdout, re.MULTILINE)]
    lines = program.read_text().splitlines()
    refused = {number: lines[number - 1] for number in numbers}
    assert refused == bad_lines(program), ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("basedpyright") is None, reason="basedpyright is not installed: pip install 'lrcnet[slow]'"
)
def test_pyright_refuses_the_bad_calls_and_no_good_one(program: Path) -> None:
    settings = {
        "typeCheckingMode": "standard",
        "include": [program.name],
        "extraPaths": [str(Path(lrcnet.__file__).parents[1])],
        "pythonVersion": "3.11",
    }
    config = program.with_name("pyrightconfig.json")
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(config)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = program.read_text().splitlines()
    errors = [d for d in json.loads(ran.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    refused = {d["range"]["start"]["line"] + 1: lines[d["range"]["start"]["line"]] for d in errors}
    assert refused == bad_lines(program), ran.stdout + ran.stderr
