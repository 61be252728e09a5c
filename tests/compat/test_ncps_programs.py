"""Five kinds of program that people write with ncps run with one import line changed, with the same losses.

Each program is a function of the library it imports: `library.torch` and `library.wirings` are ncps' or ours. It builds
a model, trains it for a few steps and returns the losses. The same seed draws the same weights in both libraries.
"""

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.tolerances import NCPS

LIBRARIES = {"ncps": "ncps", "lrcnet": "lrcnet.compat.ncps"}
STEPS = 4


def load_library(name: str) -> Any:
    """Import ncps, or the package that takes its place."""
    modules = {part: importlib.import_module(f"{LIBRARIES[name]}.{part}") for part in ("torch", "wirings")}
    return SimpleNamespace(**modules)


def train(model: nn.Module, loss: Callable[[], Tensor]) -> list[float]:
    """Return the loss before each of a few steps of Adam."""
    optimizer, losses = torch.optim.Adam(model.parameters(), 0.01), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def fit_sinusoid(library: Any) -> tuple[list[float], tuple[int, ...]]:
    """Drive an NCP of LTC neurons by a sine and a cosine to a sine of twice the frequency."""
    steps = torch.arange(48) / 48 * 3 * np.pi
    x = torch.stack([steps.sin(), steps.cos()], -1).unsqueeze(0)
    y = (2 * steps).sin().reshape(1, 48, 1)
    model = library.torch.LTC(2, library.wirings.AutoNCP(16, 1), batch_first=True)
    losses = train(model, lambda: nn.functional.mse_loss(model(x)[0], y))
    assert model.rnn_cell.synapse_count > 0
    return losses, tuple(model(x)[0].shape)


def fit_irregular_series(library: Any) -> tuple[list[float], tuple[int, ...]]:
    """Classify series with gaps of their own, one series at a time, which ncps computes right."""
    rng = np.random.default_rng(0)
    gaps = torch.from_numpy(rng.exponential(size=(3, 20)).astype(np.float32))
    x = torch.sin(gaps.cumsum(1) * torch.tensor([[0.5], [1.0], [2.0]])).unsqueeze(-1)
    model = library.torch.CfC(1, 12, proj_size=3, return_sequences=False, mixed_memory=True)
    labels = torch.arange(3)

    def loss() -> Tensor:
        logits = [model(x[i : i + 1], timespans=gaps[i : i + 1])[0] for i in range(3)]
        return nn.functional.cross_entropy(torch.cat(logits), labels)

    losses = train(model, loss)
    return losses, tuple(model(x[:1], timespans=gaps[:1])[0].shape)


def fit_stacked_layers(library: Any) -> tuple[list[float], tuple[int, ...]]:
    """Stack a CfC and a wired CfC to forecast the next value of a series."""

    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lower = library.torch.CfC(3, 10, backbone_units=16, backbone_layers=2, activation="silu")
            self.upper = library.torch.CfC(10, library.wirings.AutoNCP(14, 3), mode="no_gate")

        def forward(self, x: Tensor) -> Tensor:
            hidden, _ = self.lower(x)
            output, _ = self.upper(hidden)
            return output

    x = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 15, 3)).astype(np.float32)).cumsum(1) * 0.3
    model = Stack()
    losses = train(model, lambda: nn.functional.mse_loss(model(x[:, :-1]), x[:, 1:]))
    return losses, tuple(model(x).shape)


def clone_behaviour(library: Any) -> tuple[list[float], tuple[int, ...]]:
    """Clone actions from frames: a convolutional head over every frame, then a CfC; the state goes on in use."""

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Sequential(
                nn.Conv2d(3, 8, 5, 3),
                nn.ReLU(),
                nn.Conv2d(8, 12, 3, 2),
                nn.ReLU(),
                nn.AdaptiveAvgPool2d(2),
                nn.Flatten(),
            )
            self.rnn = library.torch.CfC(48, 20, batch_first=True, proj_size=4)

        def forward(self, frames: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
            batch, steps = frames.shape[:2]
            features = self.head(frames.flatten(0, 1)).view(batch, steps, -1)
            logits, hx = self.rnn(features, hx)
            return logits, hx

    rng = np.random.default_rng(2)
    frames = torch.from_numpy(rng.random((2, 6, 3, 32, 32)).astype(np.float32))
    actions = torch.from_numpy(rng.integers(0, 4, (2, 6)))
    policy = Policy()
    losses = train(policy, lambda: nn.functional.cross_entropy(policy(frames)[0].flatten(0, 1), actions.flatten()))
    state, single = None, frames[:1, 0:1]
    for _ in range(3):
        logits, state = policy(single, state)
    return losses, tuple(logits.shape)


def train_with_explicit_constraints(library: Any) -> tuple[list[float], tuple[int, ...]]:
    """Loop over an LTCCell by hand, with a hand-made wiring and constraints applied after each step."""
    wiring = library.wirings.Wiring(6)
    wiring.build(2)
    wiring.set_output_dim(2)
    for neuron in range(6):
        wiring.add_sensory_synapse(neuron % 2, neuron, polarity=1)
        wiring.add_synapse(neuron, (neuron + 1) % 6, polarity=-1 if neuron % 2 else 1)
    cell = library.torch.LTCCell(wiring, 2, ode_unfolds=3, output_mapping="linear", implicit_param_constraints=False)
    x = torch.from_numpy(np.random.default_rng(3).normal(size=(10, 5, 2)).astype(np.float32))
    target = x.cumsum(0).tanh()

    def loss() -> Tensor:
        cell.apply_weight_constraints()
        state, total = torch.zeros(5, cell.state_size), torch.zeros(())
        for reading, wanted in zip(x, target, strict=True):
            output, state = cell(reading, state, 0.5)
            total = total + nn.functional.mse_loss(output, wanted)
        return total

    return train(cell, loss), (cell.state_size, cell.output_size)


PROGRAMS = [
    fit_sinusoid,
    fit_irregular_series,
    fit_stacked_layers,
    clone_behaviour,
    train_with_explicit_constraints,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_changing_the_import_line_is_enough(program: Callable[[Any], tuple[list[float], tuple[int, ...]]]) -> None:
    pytest.importorskip("ncps", reason="ncps is not installed: pip install 'lrcnet[dev]'")
    results = {}
    for name in LIBRARIES:
        torch.manual_seed(0)
        results[name] = program(load_library(name))
    (theirs, their_shape), (ours, our_shape) = results["ncps"], results["lrcnet"]
    assert our_shape == their_shape
    assert ours == pytest.approx(theirs, abs=NCPS)
    assert theirs[-1] != theirs[0]
