"""Training on a dynamical system: random windows of its trajectory, then a roll-out of all of it from the start."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from lrcnet.errors import DivergenceError
from lrcnet.neural_ode import NeuralODE
from lrcnet_paper.tasks import Samples, Task
from lrcnet_paper.tasks.neural_ode import find
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.problem import Batch, Problem, Share, load

# Iterations between two roll-outs; divides the paper's 1000, 2000 and 4000.
EVERY = 100
SHOWN_AT = (1000, 2000, 4000)
TEST_SOLVER = "euler"


class TrajectoryProblem(Problem):
    """A Neural-ODE task, counted in iterations.

    A batch is random windows, each integrated from its first point over the first times of the grid. The test rolls the
    whole trajectory out with Euler, and with the solver of training as well where that is another one.
    """

    unit = "iteration"

    def __init__(self, task: Task, total: int, batch_size: int, seed: int, share: Share) -> None:
        super().__init__(task, total, batch_size, seed, share)
        self.windows = cast("Samples", load(task, "train", None, None, share.device))
        self.whole = cast("Samples", load(task, "test", None, None, share.device))
        self.times = find(task.variant).times().to(self.windows.x.dtype).to(share.device)
        self.window_times = self.times[: self.windows.y.shape[1]]

    def steps(self, units: int) -> int:
        return units

    def stop_after(self, done: int) -> int:
        return min((done // EVERY + 1) * EVERY, self.total)

    def batches(self, done: int, stop: int) -> Iterator[Batch]:
        for iteration in range(done, stop):
            order = torch.randperm(len(self.windows), generator=self.generator(iteration))
            yield self.batch(self.windows, order[: self.batch_size * self.share.world].to(self.share.device))

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        start, _, window = batch.samples
        return self.task.loss(network(start, self.window_times).transpose(0, 1), window)

    def evaluate(self, network: nn.Module) -> Row:
        row = {f"test_{self.task.metric}": self.roll_out(network, TEST_SOLVER)}
        solver = _solver(network)
        if solver != TEST_SOLVER:
            row[f"test_{self.task.metric}_{solver}"] = self.roll_out(network, solver)
        return row

    @torch.no_grad()
    def roll_out(self, network: nn.Module, solver: str) -> float:
        """The metric of the whole trajectory from its first point; infinite where it diverges."""
        try:
            states = network(self.whole.x, self.times, solver=solver).transpose(0, 1)
        except DivergenceError:
            return math.inf
        return float(self.task.metrics[self.task.metric](states, self.whole.y))

    def report(self, network: nn.Module, history: list[Row]) -> Row:
        """Last and least of every roll-out, and both after 1000, 2000 and 4000 iterations as far as trained."""
        return self._numbers(history)

    def reached(self, history: list[Row]) -> Row:
        # Not the last and the least: they would be numbers of a length that nobody asked for.
        return {name: value for name, value in self._numbers(history).items() if "@" in name} if history else {}

    def _numbers(self, history: list[Row]) -> Row:
        numbers: Row = {}
        for column in history[-1]:
            if not column.startswith("test_"):
                continue
            name = column.removeprefix("test_")
            numbers[name] = history[-1][column]
            numbers[f"{name}_min"] = min(row[column] for row in history)
            for mark in SHOWN_AT:
                before = [row[column] for row in history if row[self.unit] <= mark]
                if history[-1][self.unit] >= mark and before:
                    numbers[f"{name}@{mark}"] = before[-1]
                    numbers[f"{name}_min@{mark}"] = min(before)
        return numbers


def _solver(network: nn.Module) -> str:
    """The solver that a roll-out was trained with, through whatever a strategy wrapped around it."""
    return next(part.solver for part in network.modules() if isinstance(part, NeuralODE))
