"""Accuracy on unscaled inputs: LRCU-S with and without `calibrate` beside torch.nn.GRU, on a toy and on a real set.

Every network has 32 units and trains with Adam at the same rate, for the same epochs and seeds. Person activity takes
part where its file is found (`lrcnet data get person`), with dt = 1; its labels are per step, the toy's per sequence.
"""

import warnings
from collections.abc import Callable, Iterator
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, threads
from lrcnet.errors import InputRangeWarning
from lrcnet_paper import tasks

UNITS, RATE, SEEDS = 32, 1e-2, 3
# Accuracy of the calibrated network on unscaled inputs, over the same network's on the inputs as they are.
LEAST_SHARE = 0.97


class Scale(NamedTuple):
    """The unit in which inputs are given: factor * x + offset."""

    factor: float = 1.0
    offset: float = 0.0

    def __str__(self) -> str:
        return f"x {self.factor:g}" + (f" + {self.offset:g}" if self.offset else "")

    def apply(self, x: Tensor) -> Tensor:
        return self.factor * x + self.offset


AS_THEY_ARE = Scale()
SCALES = (Scale(100.0), Scale(100.0, 1000.0))


class Problem(NamedTuple):
    """Sequences and labels for training and testing: x (sequence, time, channel), y (sequence) or (sequence, time)."""

    name: str
    classes: int
    epochs: int
    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]


class Network(nn.Module):
    """A recurrent layer with a linear read-out: of its last output, or of all outputs if labels are per step."""

    def __init__(self, layer: nn.Module, classes: int, per_step: bool) -> None:
        super().__init__()
        self.layer, self.head, self.per_step = layer, nn.Linear(UNITS, classes), per_step

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.layer(x)
        logits: Tensor = self.head(output if self.per_step else output[:, -1])
        return logits


def measure() -> list[Measurement]:
    # The networks are too small to share among several threads.
    with threads(1):
        return [one for problem in (_toy(), *_person()) for one in _compare(problem)]


def _compare(problem: Problem) -> list[Measurement]:
    inputs = problem.train[0].shape[-1]

    def lrcu() -> nn.Module:
        return lrcnet.LRCU(inputs, UNITS, batch_first=True)

    def gru() -> nn.Module:
        return nn.GRU(inputs, UNITS, batch_first=True)

    what, against = f"LRCU-S {UNITS}, {problem.name}, inputs", f"GRU {UNITS}"
    with warnings.catch_warnings():
        # The uncalibrated network is here to show the price of what the warning says.
        warnings.simplefilter("ignore", InputRangeWarning)
        plain, rival = _accuracy(problem, lrcu), _accuracy(problem, gru)
        rows = [Measurement(f"{what} as they are", plain, "%", against, rival, plain / rival)]
        for scale in SCALES:
            rival = _accuracy(problem, gru, scale)
            for calibrate in (False, True):
                label = f"{what} {scale}" + (", calibrated" if calibrate else "")
                accuracy = _accuracy(problem, lrcu, scale, calibrate=calibrate)
                rows.append(Measurement(label, accuracy, "%", against, rival, accuracy / rival))
            share = accuracy / plain
            rows.append(Measurement(label, accuracy, "%", "as they are", plain, share, LEAST_SHARE, at_least=True))
    return rows


def _accuracy(
    problem: Problem, layer: Callable[[], nn.Module], scale: Scale = AS_THEY_ARE, *, calibrate: bool = False
) -> float:
    """Return the mean test accuracy in percent over the seeds."""
    return mean(_train(problem, layer, scale, calibrate, seed) for seed in range(SEEDS))


def _train(problem: Problem, layer: Callable[[], nn.Module], scale: Scale, calibrate: bool, seed: int) -> float:
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        (x, y), (test_x, test_y) = problem.train, problem.test
        x, test_x = scale.apply(x), scale.apply(test_x)
        network = Network(layer(), problem.classes, per_step=y.dim() == 2)
        if calibrate:
            assert isinstance(network.layer, lrcnet.LRCU)
            network.layer.calibrate(x)
        optimizer = torch.optim.Adam(network.parameters(), RATE)
        for rows in _batches(len(x), problem.epochs):
            optimizer.zero_grad()
            logits = network(x[rows])
            loss = nn.functional.cross_entropy(logits.flatten(0, -2), y[rows].flatten())
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            return 100 * float((network(test_x).argmax(-1) == test_y).double().mean())


def _batches(count: int, epochs: int, size: int = 32) -> Iterator[Tensor]:
    for _ in range(epochs):
        yield from torch.split(torch.randperm(count), size)


def _toy() -> Problem:
    """Make four classes of waves that differ in amplitude, under noise."""
    generator = torch.Generator().manual_seed(0)
    time = torch.linspace(0, 1, 30)

    def draw(count: int) -> tuple[Tensor, Tensor]:
        y = torch.randint(0, 4, (count,), generator=generator)
        start = torch.rand(count, 1, generator=generator)
        angles = 2 * torch.pi * (torch.stack([2 * time, 3 * time], -1) + start.unsqueeze(-1))
        noise = 0.2 * torch.randn(count, 30, 2, generator=generator)
        return 0.5 * (1 + y).view(-1, 1, 1) * torch.sin(angles) + noise, y

    return Problem("amplitudes", 4, 8, draw(600), draw(600))


def _person() -> list[Problem]:
    task = tasks.find("person", "a01-a04-clean")
    try:
        (x, _, y), (test_x, _, test_y) = task.load("train")[:], task.load("test")[:]
    except FileNotFoundError as error:
        print(f"person activity is left out: {error}")
        return []
    return [Problem("person activity", task.output_size, 10, (x, y), (test_x, test_y))]
