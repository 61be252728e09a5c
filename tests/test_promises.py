"""What the library promises to the torch ecosystem, one test for each promise, for a layer of every kind.

Folders, the hub's mixin, ONNX and C have files of their own: tests/test_folders.py and tests/export.
"""

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune, spectral_norm, weight_norm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import lrcnet

NAMES = ["lrcu", "lrc", "ltc", "mgu", "gru", "lstm", "ctrnn", "gru-ode"]
CELLED = [name for name in NAMES if name not in ("gru", "lstm")]
every_layer = pytest.mark.parametrize("name", NAMES)
# torch warns of the lists of weights inside its own GRU and LSTM when it traces them.
torchs_layers_warn = pytest.mark.filterwarnings("ignore:.*_flat_weights.*:UserWarning", "ignore:The .grad attribute")


class Model(nn.Module):
    """A model as users write it: a layer of the library among modules of torch."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__()
        self.before = nn.Linear(3, 4)
        self.rnn = lrcnet.LAYERS[name](4, 6, batch_first=True, **options)
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.rnn(self.before(x))
        return self.head(output[:, -1])


def make(name: str, **options: Any) -> tuple[Model, Tensor]:
    return Model(name, **options).eval(), torch.randn(5, 7, 3)


def parameter_of(name: str) -> str:
    """Return the name of a matrix among a cell's parameters."""
    return "k" if name in ("lrcu", "lrc", "ltc") else "weight_hh"


@every_layer
def test_deepcopy_gives_an_independent_twin(name: str) -> None:
    model, x = make(name)
    twin = copy.deepcopy(model)
    expected = model(x)
    assert torch.equal(twin(x), expected)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    assert torch.equal(model(x), expected)


@every_layer
def test_pickle_gives_the_same_model(name: str) -> None:
    model, x = make(name)
    assert torch.equal(pickle.loads(pickle.dumps(model))(x), model(x))


@every_layer
def test_a_state_dict_carries_everything(name: str) -> None:
    model, x = make(name)
    twin, _ = make(name)
    assert not torch.equal(twin(x), model(x))
    assert twin.load_state_dict(model.state_dict()) == ([], [])
    assert torch.equal(twin(x), model(x))


@every_layer
def test_torch_load_reads_a_whole_model_of_known_classes_only(name: str) -> None:
    model, x = make(name)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    with torch.serialization.safe_globals([*lrcnet.safe_globals(), Model]):
        assert torch.equal(torch.load(file, weights_only=True)(x), model(x))


@torchs_layers_warn
@every_layer
def test_torch_export_follows_the_batch(name: str) -> None:
    model, x = make(name)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    other = torch.randn(3, 7, 3)
    torch.testing.assert_close(program.module()(other), model(other))


@pytest.mark.parametrize("name", CELLED)
def test_torch_export_follows_the_length(name: str) -> None:
    model, x = make(name)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=(axes,))
        other = torch.randn(3, 19, 3)
        torch.testing.assert_close(program.module()(other), model(other))


# torch.compile itself instantiates the autograd function behind the constraints, which torch deprecates.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@torchs_layers_warn
@every_layer
def test_torch_compile_computes_the_same(name: str) -> None:
    model, x = make(name)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager")
    torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("name", CELLED)
def test_pruned_synapses_stay_pruned(name: str) -> None:
    model, x = make(name)
    cell, parameter = model.rnn.cells[0], parameter_of(name)
    prune.l1_unstructured(cell, parameter, amount=0.5)
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    model.train()(x).sum().backward()
    optimiser.step()
    pruned = model.eval()(x)
    assert (getattr(cell, parameter) == 0).float().mean() >= 0.49
    prune.remove(cell, parameter)
    torch.testing.assert_close(model(x), pruned)


# torch recommends torch.nn.utils.parametrizations in place of the older weight_norm, but people still use it.
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("norm", [weight_norm, spectral_norm])
@pytest.mark.parametrize("name", CELLED)
def test_the_older_norms_train(name: str, norm: Any) -> None:
    model, x = make(name)
    before = model(x)
    norm(model.rnn.cells[0], parameter_of(name))
    model.train()(x).square().sum().backward()
    gradients = [p.grad for p in model.rnn.cells[0].parameters() if p.requires_grad]
    assert all(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients)
    if norm is weight_norm:
        torch.testing.assert_close(model.eval()(x), before)


@every_layer
def test_an_exponential_moving_average_follows_the_weights(name: str) -> None:
    model, x = make(name)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    average.update_parameters(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    average.update_parameters(model)
    mean = {key: 0.5 * value for key, value in model.named_parameters()}
    for key, value in average.module.named_parameters():
        torch.testing.assert_close(value, mean[key] + 0.5 * (dict(model.named_parameters())[key] - 0.1))
    assert average(x).isfinite().all()


@every_layer
def test_data_parallel_passes_through_without_devices_and_replicates(name: str) -> None:
    model, x = make(name)
    assert torch.equal(nn.DataParallel(model)(x), model(x))
    # DataParallel replicates through this method, which devices of the CPU do not need.
    replica = model.rnn._replicate_for_data_parallel()
    assert type(replica) is type(model.rnn)


@every_layer
def test_functional_call_takes_other_weights(name: str) -> None:
    model, x = make(name)
    twin, _ = make(name)
    values = {**dict(twin.named_parameters()), **dict(twin.named_buffers())}
    torch.testing.assert_close(torch.func.functional_call(model, values, (x,)), twin(x))


# torch deprecates its quantisation in favour of another package, but people still use it.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", CELLED)
def test_dynamic_quantisation_of_the_rest_leaves_the_layer_alone(name: str) -> None:
    model, x = make(name)
    quantised = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    assert type(quantised.head) is not nn.Linear
    assert type(quantised.rnn) is type(model.rnn)
    assert (quantised(x) - model(x)).abs().max() < 0.05


@pytest.mark.filterwarnings("ignore")  # Lightning warns of loggers, workers and step counts of a run this small.
def test_lightning_trains_it(tmp_path: Path) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model("lrcu")

        def training_step(self, batch: Any, _: int) -> Tensor:
            x, y = batch
            return nn.functional.cross_entropy(self.model(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), 1e-2)

    data = torch.utils.data.TensorDataset(torch.randn(16, 7, 3), torch.arange(16) % 2)
    module = Module()
    before = copy.deepcopy(module.model.rnn.cells[0].k)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=8))
    assert not torch.equal(module.model.rnn.cells[0].k, before)
    trainer.save_checkpoint(tmp_path / "model.ckpt")
    state = torch.load(tmp_path / "model.ckpt", weights_only=True)["state_dict"]
    assert torch.equal(state["model.rnn.cells.0.k"], module.model.rnn.cells[0].k)


@pytest.mark.filterwarnings("ignore")  # skorch calls functions that scikit-learn deprecates.
def test_skorch_trains_it() -> None:
    skorch = pytest.importorskip("skorch")
    y = np.arange(32) % 2
    x = np.random.default_rng(0).normal(size=(32, 7, 3)).astype(np.float32) + y[:, None, None].astype(np.float32)
    network = skorch.NeuralNetClassifier(
        Model, module__name="lrcu", criterion=nn.CrossEntropyLoss, max_epochs=30, lr=0.01, verbose=0, train_split=None
    )
    network.set_params(optimizer=torch.optim.Adam)
    network.fit(x, y.astype(np.int64))
    assert network.score(x, y) > 0.9
