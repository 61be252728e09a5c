"""Models as folders: the same numbers after a round trip, nothing executed, clear errors for damaged files."""

import errno
import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import lrcnet
from lrcnet import folders, saving
from tests.collection import LAYER_NAMES, make_layer, random_dt


class Own(lrcnet.LRCU):
    """A user's own layer."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, 4, time_scale="auto")


@pytest.mark.parametrize("name", LAYER_NAMES)
def test_every_layer_computes_the_same_after_a_round_trip(name: str, tmp_path: Path) -> None:
    layer = make_layer(name, num_layers=2)
    x, dt = torch.randn(5, 2, 3, dtype=torch.float64), random_dt(name, 5, 2)
    twin = lrcnet.load(layer.save(tmp_path / "model"))
    assert type(twin) is type(layer)
    assert not twin.training
    torch.testing.assert_close(twin(x, dt=dt)[0], layer.eval()(x, dt=dt)[0], rtol=0, atol=0)


def test_the_folder_holds_weights_and_plain_data(tmp_path: Path) -> None:
    lrcnet.LRC(3, 5, 2, solver="rk4", device="cpu").save(tmp_path, extra={"classes": ["a", "b"]})
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]
    config = json.loads((tmp_path / "config.json").read_text())
    arguments = {"input_size": 3, "hidden_size": 5, "num_layers": 2, "solver": "rk4"}
    assert config["model"] == {"class": "LRC", "dtype": "float32", "arguments": arguments}
    assert folders.read_extra(tmp_path) == {"classes": ["a", "b"]}


def test_calibrations_are_part_of_the_folder(tmp_path: Path) -> None:
    layer = lrcnet.LRCU(1, 4, time_scale="auto")
    layer.calibrate(1000 + torch.randn(50, 2, 1))
    layer.calibrate_time(torch.rand(50, 2) * 3600)
    twin = lrcnet.load(layer.save(tmp_path))
    assert twin.time_scale == layer.time_scale
    assert not twin.cells[0].input_scale.requires_grad


def scaled(model: Any) -> Any:
    """Give a model scaling of inputs, answers and time."""
    model.set_input_scaling(torch.tensor([1000.0, 0.0, 5.0]), torch.tensor([20.0, 1.0, 2.0]))
    model.set_target_scaling(torch.tensor([7.0, 8.0]), torch.tensor([3.0, 2.0]))
    model.set_time_unit(60.0)
    return model


MODELS: dict[str, Callable[[], Any]] = {
    "classifier": lambda: lrcnet.Classifier(lrcnet.LRCU(3, 5, batch_first=True), 5, 2, pooling="mean"),
    "regressor": lambda: scaled(lrcnet.Regressor(lrcnet.LRC(3, 5), 5, 2)),
    "tagger": lambda: lrcnet.Tagger(lrcnet.GRU(3, 5, time_feature=True, batch_first=True), 5, 2),
    "forecaster": lambda: scaled(lrcnet.Forecaster(lrcnet.LRC(3, 5, batch_first=True), 5, 2, residual=False)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_keep_their_scaling(name: str, tmp_path: Path) -> None:
    model = MODELS[name]().eval()
    x, dt = torch.randn(4, 6, 3), torch.rand(4, 6)
    assert torch.equal(lrcnet.load(model.save(tmp_path))(x, dt), model(x, dt))


def test_tokens_and_neural_odes_can_be_saved_too(tmp_path: Path) -> None:
    layer = lrcnet.LRCU(4, 5, batch_first=True)
    model = lrcnet.Classifier(layer, 5, 2, vocabulary=10, embedding=4).eval()
    tokens = torch.tensor([[3, 1, 4]])
    assert torch.equal(lrcnet.load(model.save(tmp_path / "tokens"))(tokens), model(tokens))
    ode = lrcnet.NeuralODE(lrcnet.LRCField(2, units=4), solver="rk4").eval()
    y, t = torch.randn(3, 2), torch.linspace(0, 1, 4)
    assert torch.equal(lrcnet.load(ode.save(tmp_path / "ode"))(y, t), ode(y, t))


def test_a_wiring_is_part_of_the_folder(tmp_path: Path) -> None:
    layer, x = lrcnet.LRC(3, wiring=lrcnet.wirings.AutoNCP(12, 3, seed=1)).eval(), torch.randn(5, 2, 3)
    twin = lrcnet.load(layer.save(tmp_path))
    assert twin.cells[0].wiring == layer.cells[0].wiring
    assert torch.equal(twin(x)[0], layer(x)[0])


def test_a_layer_of_ones_own_is_found_by_its_module(tmp_path: Path) -> None:
    assert isinstance(lrcnet.load(Own(3).save(tmp_path)), Own)


def test_loading_leaves_random_numbers_alone(tmp_path: Path) -> None:
    layer = lrcnet.LRCU(3, 5)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    lrcnet.load(layer.save(tmp_path))
    assert torch.rand(1) == expected


def test_an_interrupted_save_keeps_the_earlier_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = lrcnet.LRCU(3, 5)
    earlier.save(tmp_path)

    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(saving.os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        lrcnet.LRCU(3, 5).save(tmp_path)
    assert torch.equal(lrcnet.load(tmp_path).cells[0].k, earlier.cells[0].k)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]


def edit(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Return a function that changes config.json."""

    def damage(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return damage


def truncate(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-20])


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (lambda folder: [file.unlink() for file in folder.iterdir()], "must hold config.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "must hold model.safetensors"),
    "half a config": (truncate("config.json"), "is not the description of a model"),
    "half the weights": (truncate("model.safetensors"), "is damaged, or does not belong"),
    "another config": (lambda folder: (folder / "config.json").write_text("[1]"), "is not the description of a model"),
    "weights of another model": (
        lambda folder: (folder / "model.safetensors").write_bytes(b"\0" * 16),
        "does not belong to config.json",
    ),
    "unknown class": (edit(lambda c: c["model"].update({"class": "os.system"})), "import the module that defines it"),
    "unknown argument": (edit(lambda c: c["model"]["arguments"].update(size=1)), "does not describe a model"),
    "unknown dtype": (edit(lambda c: c["model"].update(dtype="float1")), "does not describe a model"),
    "another size": (edit(lambda c: c["model"]["arguments"].update(hidden_size=6)), "does not fit the model"),
    "newer format": (edit(lambda c: c.update(format=99)), "update lrcnet"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_refused_in_one_sentence(damage: str, tmp_path: Path) -> None:
    lrcnet.LRCU(3, 5).save(tmp_path)
    do, message = DAMAGE[damage]
    do(tmp_path)
    with pytest.raises(ValueError, match=message) as caught:
        lrcnet.load(tmp_path)
    assert "\n" not in str(caught.value)


def test_models_that_arguments_do_not_describe_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="PyTorchModelHubMixin"):
        folders.save(nn.Linear(3, 2), tmp_path)
    pruned = lrcnet.MGU(3, 5)
    prune.l1_unstructured(pruned.cells[0], "weight_hh", 0.5)
    with pytest.raises(ValueError, match="remove pruning"):
        pruned.save(tmp_path)
    assert not list(tmp_path.iterdir())


def test_help_shows_the_arguments_of_the_constructor() -> None:
    assert list(inspect.signature(lrcnet.LSTM).parameters)[:2] == ["input_size", "hidden_size"]
    assert list(inspect.signature(lrcnet.LRCU).parameters)[:2] == ["input_size", "hidden_size"]


def test_the_mixin_of_the_hub_saves_and_loads_layers_and_models(tmp_path: Path) -> None:
    from huggingface_hub import PyTorchModelHubMixin

    class HubLayer(lrcnet.LRCU, PyTorchModelHubMixin):
        """A layer for the hub."""

    class HubModel(nn.Module, PyTorchModelHubMixin):
        """A model with a layer inside."""

        def __init__(self, channels: int, units: int) -> None:
            super().__init__()
            self.model = lrcnet.Classifier(lrcnet.LRC(channels, units, batch_first=True), units, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.model(x)

    x = torch.randn(4, 2, 3)
    layer, model = HubLayer(input_size=3, hidden_size=5, time_scale=60.0).eval(), HubModel(channels=3, units=4).eval()
    layer.save_pretrained(tmp_path / "layer")
    model.save_pretrained(tmp_path / "model")
    same = HubLayer.from_pretrained(tmp_path / "layer")
    assert same.time_scale == 60
    assert torch.equal(same(x)[0], layer(x)[0])
    assert torch.equal(HubModel.from_pretrained(tmp_path / "model")(x), model(x))


def test_a_full_disk_is_named_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*model\.safetensors"):
        lrcnet.LRCU(3, 4).save(tmp_path)
    assert list(tmp_path.iterdir()) == []
