"""Training on labelled sequences: epochs over a shuffled split, loss and metrics over whole splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from lrcnet_paper.tasks import Task
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.problems.problem import Batch, Problem, ProblemSettings, ProcessShare

# Largest numbers of samples and of input values per forward pass of an evaluation. The second one bounds the memory
# that long sequences and camera frames take.
EVALUATION_BATCH, EVALUATION_NUMBERS = 256, 2**23


class SequenceProblem(Problem):
    """A task with one target for every step of a sequence, counted in epochs."""

    unit = "epoch"
    target_per_step: ClassVar[bool] = True

    def __init__(self, task: Task, settings: ProblemSettings, share: ProcessShare) -> None:
        super().__init__(task, settings, share)
        piece = settings.piece
        if piece is not None and (not self.target_per_step or piece > task.length):
            raise ValueError(
                f"pieces need a task with an answer at each of at least {piece} steps; {task.name} is "
                f"{task.kind} with {task.length}: leave piece out or make it shorter"
            )
        self.splits = {split: self.load(split) for split in task.splits}

    @property
    def _samples_per_step(self) -> int:
        return self.settings.batch_size * self.share.world

    def steps(self, units: int) -> int:
        return units * -(-len(self.splits["train"]) // self._samples_per_step)

    def next_evaluation(self, done: int) -> int:
        every = self.task.recipe.evaluate_every
        return min((done // every + 1) * every, max(self.settings.length, done + 1))

    def batches(self, done: int, stop: int) -> Iterator[Batch]:
        samples, piece = self.splits["train"], self.settings.piece
        for epoch in range(done, stop):
            generator = self.generator(epoch)
            order = samples.order(generator).to(self.share.device)
            for chosen in torch.split(order, self._samples_per_step):
                batch = self.batch(samples, chosen)
                yield batch if piece is None else self.random_piece(batch, piece, generator)

    def random_piece(self, batch: Batch, piece: int, generator: torch.Generator) -> Batch:
        """Keep `piece` consecutive steps of a batch, the same ones of every sequence."""
        first = int(torch.randint(self.task.length - piece + 1, (), generator=generator))
        x, dt, y = batch.samples
        part = slice(first, first + piece)
        return replace(batch, samples=(x[:, part], None if dt is None else dt[:, part], y[:, part]))

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        x, dt, y = batch.samples
        return self.task.loss(network(x, dt), y)

    def evaluate(self, network: nn.Module) -> Row:
        # Where a task has no validation split, the test curve is shown; nothing is chosen by it.
        split = "validation" if "validation" in self.splits else "test"
        return {f"{split}_{name}": value for name, value in self.evaluate_split(network, split).items()}

    def report(self, network: nn.Module, history: list[Row]) -> Row:
        test = self.evaluate_split(network, "test")
        return {**{name: test[name] for name in self.task.metrics}, "test_loss": test["loss"]}

    @torch.no_grad()
    def evaluate_split(self, network: nn.Module, split: str) -> Row:
        """Return the mean loss and metrics over a whole split."""
        samples, share = self.splits[split], self.share
        network.eval()
        sums = torch.zeros(1 + len(self.task.metrics), dtype=torch.float64)
        mine = torch.arange(share.rank, len(samples), share.world, device=share.device)
        size = min(EVALUATION_BATCH, max(1, EVALUATION_NUMBERS // samples[mine[:1]][0].numel())) if len(mine) else 1
        for chosen in torch.split(mine, size):
            x, dt, y = samples[chosen]
            output = network(x, dt)
            values = [self.task.loss(output, y), *(metric(output, y) for metric in self.task.metrics.values())]
            sums += len(chosen) * torch.stack([value.double().cpu() for value in values])
        network.train()
        means = share.sum(sums) / len(samples)
        return dict(zip(("loss", *self.task.metrics), means.tolist(), strict=True))


class LabelPerSequenceProblem(SequenceProblem):
    """A task with one target for a whole sequence, so that no piece of it can be trained on alone."""

    target_per_step = False
