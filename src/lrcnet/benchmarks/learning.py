"""Accuracy over the learning rate: liquid layers in place of torch.nn.GRU, with the same lines of training code.

The data are generated, so that the benchmark needs no files: noisy oscillations of random phase and amplitude, whose
class is their period. Every layer has 32 units and is trained by Adam for the same number of epochs.
"""

import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, threads

CLASSES, STEPS, UNITS, EPOCHS, BATCH = 4, 60, 32, 20, 16
RATES = (1e-3, 3e-3, 1e-2)
SEEDS = 3
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "GRU": lambda: nn.GRU(2, UNITS, batch_first=True),
    "LSTM": lambda: nn.LSTM(2, UNITS, batch_first=True),
    "LRCU-S": lambda: lrcnet.LRCU(2, UNITS, batch_first=True),
    "LRCU-A": lambda: lrcnet.LRCU(2, UNITS, batch_first=True, elastance="asymmetric"),
    "LRC-S": lambda: lrcnet.LRC(2, UNITS, batch_first=True),
    "STC": lambda: lrcnet.STC(2, UNITS, batch_first=True),
    "LTC": lambda: lrcnet.LTC(2, UNITS, batch_first=True),
    "LRCU-S, init='paper', 'sigma-mu'": lambda: lrcnet.LRCU(
        2, UNITS, batch_first=True, init="paper", parametrisation="sigma-mu"
    ),
}


def oscillations(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Make noisy oscillations (count, 60, 2) and their classes (count,)."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(CLASSES, (count,), generator=generator)
    phase, amplitude, noise = (torch.rand(count, 1, generator=generator) for _ in range(3))
    period = 6.0 + 3 * classes[:, None]
    wave = (0.5 + amplitude) * torch.sin(2 * torch.pi * (torch.arange(STEPS) / period + phase))
    disturbance = 0.3 * noise[..., None] * torch.randn(count, STEPS, 2, generator=generator)
    return torch.stack([wave, wave.roll(5, 1)], -1) + disturbance, classes


class Classifier(nn.Module):
    """A recurrent layer and a linear read-out of its last output."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(UNITS, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, classes)."""
        output, _ = self.layer(x)
        logits: Tensor = self.head(output[:, -1])
        return logits


def accuracy_after_training(layer: nn.Module, rate: float = 1e-3) -> float:
    """Train a layer and return its accuracy on new data; random numbers come from torch's global generator."""
    x, y = oscillations(256, seed=0)
    network = Classifier(layer)
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    for _ in range(EPOCHS):
        for batch in torch.split(torch.randperm(len(x)), BATCH):
            loss = nn.functional.cross_entropy(network(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    x, y = oscillations(512, seed=1)
    with torch.no_grad():
        return float((network(x).argmax(-1) == y).double().mean())


def measure() -> list[Measurement]:
    """Train every layer at every rate; one row per layer and rate, beside the GRU at that rate."""
    with threads(1):
        return [row for rate in RATES for row in _measure_rate(rate)]


def _measure_rate(rate: float) -> list[Measurement]:
    percent = {name: 100 * _mean_accuracy(make, rate) for name, make in LAYERS.items()}
    gru = percent["GRU"]
    return [
        Measurement(f"{name}, Adam {rate:g}", value, "%", "" if name == "GRU" else "GRU", gru, value / gru)
        for name, value in percent.items()
    ]


def _mean_accuracy(make: Callable[[], nn.Module], rate: float) -> float:
    accuracies = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        accuracies.append(accuracy_after_training(make(), rate))
    return statistics.mean(accuracies)
