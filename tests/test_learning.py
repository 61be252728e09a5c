"""A liquid layer in place of torch.nn.GRU learns with the same four lines of training code and Adam's usual rate."""

import pytest
import torch
from torch import Tensor, nn

import lrcnet

CLASSES, STEPS, UNITS, EPOCHS = 4, 60, 32, 20


def oscillations(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Make noisy oscillations (count, 60, 2) of random phase and amplitude; the class is the period."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(CLASSES, (count,), generator=generator)
    phase, amplitude, noise = (torch.rand(count, 1, generator=generator) for _ in range(3))
    time = torch.arange(STEPS)
    wave = (0.5 + amplitude) * torch.sin(2 * torch.pi * (time / (6.0 + 3 * y[:, None]) + phase))
    x = torch.stack([wave, wave.roll(5, 1)], -1) + 0.3 * noise[..., None] * torch.randn(
        count, STEPS, 2, generator=generator
    )
    return x, y


class Network(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(UNITS, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.layer(x)
        logits: Tensor = self.head(output[:, -1])
        return logits


def accuracy_after_training(layer: nn.Module) -> float:
    x, y = oscillations(256, seed=0)
    network = Network(layer)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(16):
            loss = nn.functional.cross_entropy(network(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    x, y = oscillations(512, seed=1)
    with torch.no_grad():
        return float((network(x).argmax(-1) == y).double().mean())


@pytest.fixture(scope="module")
def gru_accuracy() -> float:
    torch.manual_seed(0)
    return accuracy_after_training(nn.GRU(2, UNITS, batch_first=True))


@pytest.mark.parametrize("layer", [lrcnet.LRCU, lrcnet.LRC])
def test_a_liquid_layer_learns_as_well_as_the_gru_it_replaces(layer: type[nn.Module], gru_accuracy: float) -> None:
    assert accuracy_after_training(layer(2, UNITS, batch_first=True)) > gru_accuracy - 0.02


def test_the_papers_initial_values_and_parameters_learn_more_slowly() -> None:
    """The reason for the defaults; if this fails, the test above says nothing."""
    paper = lrcnet.LRCU(2, UNITS, batch_first=True, init="paper", parametrisation="sigma-mu")
    assert accuracy_after_training(paper) < accuracy_after_training(lrcnet.LRCU(2, UNITS, batch_first=True)) - 0.1
