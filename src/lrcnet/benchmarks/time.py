"""Error of layers on irregularly sampled data, by the way they use the gaps; about five minutes on one core.

Forecasting: damped oscillations of random frequency, read at random times. Each step gets a reading and the gap that
follows it, and predicts the next reading. Classification: whether a noisy signal decays slowly or fast, with the same
gaps in hours and in seconds, and with other gaps in use than in training. For each seed, all layers see the same data
in the same order.
"""

import math
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, threads

UNITS = 32
SEEDS = (0, 1, 2)
RATE = 1e-2
BATCH = 64
SERIES, STEPS = 1024, 40
STRETCHES = (0.5, 2.0, 4.0)


@dataclass(frozen=True)
class Contestant:
    """One row of the table: a layer and its way of using the gaps."""

    name: str
    layer: Any
    options: dict[str, Any]
    gets_gaps: bool = True

    def build(self, outputs: int, seed: int) -> "Network":
        """Return the layer with a linear read-out of every output, initial values from the seed."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return Network(self.layer(1, UNITS, batch_first=True, **self.options), outputs, self.gets_gaps)


class Network(nn.Module):
    """A layer and a linear read-out of every output."""

    def __init__(self, layer: nn.Module, outputs: int, gets_gaps: bool) -> None:
        super().__init__()
        self.layer, self.gets_gaps = layer, gets_gaps
        self.head = nn.Linear(UNITS, outputs)

    def forward(self, x: Tensor, gaps: Tensor) -> Tensor:
        """Return the outputs (N, T, outputs) for readings (N, T, 1) and gaps (N, T)."""
        states, _ = self.layer(x, dt=gaps) if self.gets_gaps else self.layer(x)
        output: Tensor = self.head(states)
        return output


LIQUID: dict[str, tuple[Any, dict[str, Any]]] = {
    "LRCU": (lrcnet.LRCU, {}),
    "LRC hybrid": (lrcnet.LRC, {}),
    "LRC exponential": (lrcnet.LRC, {"solver": "exponential"}),
}
WAYS: dict[str, dict[str, Any] | None] = {
    "no gaps": None,
    "gaps": {},
    "gaps, time_scale='auto'": {"time_scale": "auto"},
    "time_feature": {"time_feature": True, "time_scale": "auto"},
}
FORECASTERS = (
    *(
        Contestant(f"{name}, {way}", layer, {**options, **(more or {}), "time_warnings": False}, more is not None)
        for name, (layer, options) in LIQUID.items()
        for way, more in WAYS.items()
    ),
    Contestant("GRU, no gaps", lrcnet.GRU, {}, gets_gaps=False),
    Contestant("GRU, time_feature", lrcnet.GRU, {"time_feature": True}),
)
CLASSIFIERS = tuple(one for one in FORECASTERS if not one.name.startswith("LRC hybrid"))


def measure() -> list[Measurement]:
    with threads(1), warnings.catch_warnings():
        # Gaps in seconds make an explicit step diverge: this is measured here.
        warnings.simplefilter("ignore", lrcnet.DivergenceWarning)
        return [*_measure_forecasts(), *_measure_classifications()]


def _measure_forecasts() -> list[Measurement]:
    errors = {one.name: [forecast_error(one, seed) for seed in SEEDS] for one in FORECASTERS}
    rival = "GRU, time_feature"
    reference = statistics.mean(errors[rival])
    measurements = []
    for name, values in errors.items():
        what, mean = f"forecast: {name} (± {statistics.stdev(values):.2g})", statistics.mean(values)
        measurements.append(Measurement(what, mean, "mean squared error", rival, reference, mean / reference))
    return measurements


def _measure_classifications() -> list[Measurement]:
    hours, seconds = (
        {one.name: [accuracies(one, seed, factor) for seed in SEEDS] for one in CLASSIFIERS} for factor in (1.0, 3600.0)
    )
    measurements = []
    for data, results, place in (
        ("gaps in hours", hours, 0),
        ("gaps in seconds", seconds, 0),
        *((f"gaps in hours, {times:g} times those of training", hours, i) for i, times in enumerate(STRETCHES, 1)),
    ):
        for name, runs in results.items():
            values = [run[place] for run in runs]
            what = f"classification, {data}: {name} (± {statistics.stdev(values):.2g})"
            measurements.append(Measurement(what, statistics.mean(values), "%"))
    return measurements


def oscillations(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return readings (N, T, 1), the gaps that follow them (N, T), and the next readings (N, T, 1)."""
    gaps = _random_gaps(generator)
    frequency, damping, phase = torch.rand(3, SERIES, 1, generator=generator)
    times = torch.cat([torch.zeros(SERIES, 1), gaps.cumsum(1)], 1)
    values = torch.exp(-0.1 * damping * times) * torch.sin((1 + frequency) * times + 2 * math.pi * phase)
    return values[:, :-1, None], gaps, values[:, 1:, None]


def decays(generator: torch.Generator, stretch: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Return noisy readings (N, T, 1), the gaps before them (N, T), and whether the signal decays fast, (N,).

    With `stretch` the same kind of signal is read at gaps that are so many times longer.
    """
    gaps = stretch * _random_gaps(generator)
    fast = torch.rand(SERIES, generator=generator) < 0.5
    rate = torch.where(fast, 0.25, 0.1).unsqueeze(-1)
    height = 0.5 + torch.rand(SERIES, 1, generator=generator)
    signal = height * torch.exp(-rate * gaps.cumsum(1)) + 0.1 * torch.randn(SERIES, STEPS, generator=generator)
    return signal.unsqueeze(-1), gaps, fast.long()


def _random_gaps(generator: torch.Generator) -> Tensor:
    """Return gaps (N, T) of median 0.5; one in ten is longer than 1.8."""
    return 0.5 * torch.exp(torch.randn(SERIES, STEPS, generator=generator))


def forecast_error(contestant: Contestant, seed: int) -> float:
    """Train on one half of the oscillations and return the mean squared error on the other."""
    network = contestant.build(1, seed)
    x, gaps, target = oscillations(torch.Generator().manual_seed(seed))
    output = _fit(network, x, gaps, target, seed, 80, nn.functional.mse_loss)
    return float(nn.functional.mse_loss(output, target[SERIES // 2 :]))


def accuracies(contestant: Contestant, seed: int, factor: float) -> list[float]:
    """Train on one half of the decays, their gaps in hours times `factor`, and return accuracies in %.

    The first is on the other half, the others are on signals with the gaps of training times each of `STRETCHES`.
    """
    network = contestant.build(2, seed)
    x, gaps, label = decays(torch.Generator().manual_seed(seed))
    output = _fit(network, x, gaps * factor, label, seed, 40, lambda o, y: nn.functional.cross_entropy(o[:, -1], y))
    results = [_percent_right(output, label[SERIES // 2 :])]
    for stretch in STRETCHES:
        x, gaps, label = decays(torch.Generator().manual_seed(1000 + seed), stretch)
        with torch.no_grad():
            results.append(_percent_right(network(x, gaps * factor), label))
    return results


def _percent_right(output: Tensor, label: Tensor) -> float:
    return 100 * float((output[:, -1].argmax(-1) == label).float().mean())


def _fit(
    network: Network,
    x: Tensor,
    gaps: Tensor,
    target: Tensor,
    seed: int,
    epochs: int,
    loss: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """Train on the first half of the series; return the outputs for the second half."""
    half = SERIES // 2
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(half, generator=order), BATCH):
            optimizer.zero_grad()
            torch.autograd.backward(loss(network(x[rows], gaps[rows]), target[rows]))
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
    network.eval()
    with torch.no_grad():
        output: Tensor = network(x[half:], gaps[half:])
        return output
