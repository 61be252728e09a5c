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
from lrcnet_paper.tasks.neural_ode import find_system
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.problems.problem import Batch, Problem, ProblemSettings, ProcessShare

# Iterations between two roll-outs; divides the paper's 1000, 2000 and 4000.
EVERY = 100
SHOWN_AT = (1000, 2000, 4000)
# The two solvers of the paper; a test uses the network's own one, and the other one beside it.
SOLVERS = ("euler", "dopri5")


class TrajectoryProblem(Problem):
    """A Neural-ODE task, counted in iterations.

    A batch is a set of random windows, each integrated from its first point over the first times of the grid. The test
    rolls out the whole trajectory with the solver of training, and beside it with the other solver of the paper.
    """

    unit = "iteration"
    # The tensors of a vector field are tiny: a second thread would only wait.
    default_threads = 1

    def __init__(self, task: Task, settings: ProblemSettings, share: ProcessShare) -> None:
        super().__init__(task, settings, share)
        # Always whole: the windows are generated, and there are few of them.
        self.windows = cast("Samples", task.load("train").to(share.device))
        self.whole = cast("Samples", task.load("test").to(share.device))
        self.times = find_system(task.variant).times().to(self.windows.x.dtype).to(share.device)
        self.window_times = self.times[: self.windows.y.shape[1]]

    def steps(self, units: int) -> int:
        return units

    def next_evaluation(self, done: int) -> int:
        return min((done // EVERY + 1) * EVERY, self.settings.length)

    def batches(self, done: int, stop: int) -> Iterator[Batch]:
        size = self.settings.batch_size * self.share.world
        for iteration in range(done, stop):
            order = torch.randperm(len(self.windows), generator=self.generator(iteration))
            yield self.batch(self.windows, order[:size].to(self.share.device))

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        start, _, window = batch.samples
        return self.task.loss(network(start, self.window_times).transpose(0, 1), window)

    def evaluate(self, network: nn.Module) -> Row:
        own = _training_solver(network)
        column = f"test_{self.task.metric}"
        others = {f"{column}_{name}": self.roll_out(network, name) for name in SOLVERS if name != own}
        return {column: self.roll_out(network, own)} | others

    @torch.no_grad()
    def roll_out(self, network: nn.Module, solver: str) -> float:
        """Return the metric of the whole trajectory from its first point; infinite where it diverges."""
        try:
            states = network(self.whole.x, self.times, solver=solver).transpose(0, 1)
        except DivergenceError:
            return math.inf
        return float(self.task.metrics[self.task.metric](states, self.whole.y))

    def report(self, network: nn.Module, history: list[Row]) -> Row:
        """Return the last and the smallest error of the roll-outs; both also after 1000, 2000 and 4000 iterations."""
        return self._errors(history)

    def partial_report(self, history: list[Row]) -> Row:
        # Without the last and the smallest error: they would belong to a length that nobody asked for.
        return {name: value for name, value in self._errors(history).items() if "@" in name} if history else {}

    def _errors(self, history: list[Row]) -> Row:
        errors: Row = {}
        for column in history[-1]:
            if not column.startswith("test_"):
                continue
            name = column.removeprefix("test_")
            errors[name] = history[-1][column]
            errors[f"{name}_min"] = min(row[column] for row in history)
            for mark in SHOWN_AT:
                before = [row[column] for row in history if row[self.unit] <= mark]
                if history[-1][self.unit] >= mark and before:
                    errors[f"{name}@{mark}"] = before[-1]
                    errors[f"{name}_min@{mark}"] = min(before)
        return errors


def _training_solver(network: nn.Module) -> str:
    """Return the solver that a Neural ODE trains with, also inside the wrapper of a parallel strategy."""
    return next(part.solver for part in network.modules() if isinstance(part, NeuralODE))
