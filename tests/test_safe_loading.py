"""`lrcnet.safe_globals()` lets torch.load(weights_only=True) read whole models; importing registers nothing."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import lrcnet
from lrcnet.models import Classifier, Tagger
from tests.collection import NAMES, make_cell, make_layer, output_size


def assert_reloads(model: nn.Module, file: Path, *inputs: Any) -> None:
    model(*inputs)
    torch.save(model, file)
    with torch.serialization.safe_globals(lrcnet.safe_globals()):
        again = torch.load(file, weights_only=True)
    expected, result = model(*inputs), again(*inputs)
    torch.testing.assert_close(result, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_whole_layers_reload(name: str, tmp_path: Path) -> None:
    x = torch.randn(7, 2, 3, dtype=torch.float64)
    assert_reloads(make_layer(name), tmp_path / "layer.pt", x)
    assert_reloads(make_layer(name, num_layers=2, bidirectional=True, batch_first=True), tmp_path / "stack.pt", x)
    assert_reloads(make_cell(name), tmp_path / "cell.pt", x[0])


@pytest.mark.parametrize("name", NAMES)
def test_models_around_a_layer_reload(name: str, tmp_path: Path) -> None:
    x = torch.randn(7, 2, 3)
    for kind in (Classifier, Tagger):
        layer = make_layer(name, batch_first=True, dtype=torch.float32)
        assert_reloads(kind(layer, output_size(name), 2), tmp_path / "model.pt", x)
    layer = make_layer(name, 8, batch_first=True, dtype=torch.float32)
    tokens = torch.tensor([[0, 3, 1]])
    assert_reloads(Classifier(layer, output_size(name), 2, vocabulary=20, embedding=8), tmp_path / "text.pt", tokens)


def test_neural_odes_reload(tmp_path: Path) -> None:
    start, times = torch.randn(2, 2), torch.linspace(0, 1, 5)
    for field in (lrcnet.LRCField(2, units=4), lrcnet.MLPField(2)):
        assert_reloads(lrcnet.NeuralODE(field), tmp_path / "ode.pt", start, times)


def test_every_module_of_the_library_is_listed() -> None:
    listed = set(lrcnet.safe_globals())
    names = [info.name for info in pkgutil.walk_packages(lrcnet.__path__, "lrcnet.")]
    homes = ("lrcnet.cells", "lrcnet.layers", "lrcnet.models", "lrcnet.neural_ode", "lrcnet.torch_layers")
    for name in (name for name in names if name.startswith(homes)):
        for value in vars(importlib.import_module(name)).values():
            if inspect.isclass(value) and issubclass(value, nn.Module):
                assert value in listed


def test_without_the_list_torch_refuses(tmp_path: Path) -> None:
    torch.save(lrcnet.LRCU(3, 5), tmp_path / "layer.pt")
    with pytest.raises(Exception, match=r"lrcnet\.layers\.LRCU"):
        torch.load(tmp_path / "layer.pt", weights_only=True)


def test_importing_registers_nothing() -> None:
    code = (
        "import torch; before = set(torch.serialization.get_safe_globals()); from lrcnet import *; safe_globals(); "
        "print(set(torch.serialization.get_safe_globals()) == before)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "True"
