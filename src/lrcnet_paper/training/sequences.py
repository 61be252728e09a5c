"""Training on labelled sequences: epochs over a permuted split, loss and metrics over whole splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from lrcnet_paper.tasks import Task
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.problem import Batch, Problem, Share, load

# Samples per forward pass of an evaluation, and numbers in them: bounds the memory of long sequences and of pictures.
EVALUATION_BATCH, EVALUATION_NUMBERS = 256, 2**23
Sum = Callable[[Tensor], Tensor]


class SequenceProblem(Problem):
    """A task with one answer per step or per sequence.

    Args:
        task, total, batch_size, seed, share: see `Problem`; batch_size is per process.
        data: folder of the files.
        limit: samples to take of each split, None for all.
        piece: steps of each sequence to train on, somewhere in it; None for all of them.
        reduce: sums a tensor over all processes.
    """

    unit = "epoch"

    def __init__(
        self,
        task: Task,
        total: int,
        batch_size: int,
        seed: int,
        share: Share,
        *,
        data: str | None,
        limit: int | None,
        reduce: Sum,
        piece: int | None = None,
    ) -> None:
        super().__init__(task, total, batch_size, seed, share)
        if piece is not None and (task.kind == "label-per-sequence" or piece > task.length):
            raise ValueError(
                f"pieces need a task with an answer at each of at least {piece} steps; {task.name} is "
                f"{task.kind} with {task.length}: leave piece out or make it shorter"
            )
        self.reduce, self.piece = reduce, piece
        self.splits = {split: load(task, split, data, limit, share.device) for split in task.splits}

    def steps(self, units: int) -> int:
        together = self.batch_size * self.share.world
        return units * -(-len(self.splits["train"]) // together)

    def stop_after(self, done: int) -> int:
        return done + 1

    def batches(self, done: int, stop: int) -> Iterator[Batch]:
        samples = self.splits["train"]
        for epoch in range(done, stop):
            generator = self.generator(epoch)
            order = samples.order(generator).to(self.share.device)
            for chosen in torch.split(order, self.batch_size * self.share.world):
                batch = self.batch(samples, chosen)
                yield batch if self.piece is None else self.cut(batch, self.piece, generator)

    def cut(self, batch: Batch, piece: int, generator: torch.Generator) -> Batch:
        """A batch of so many consecutive steps, the same ones of every sequence."""
        first = int(torch.randint(self.task.length - piece + 1, (), generator=generator))
        x, dt, y = batch.samples
        part = slice(first, first + piece)
        return replace(batch, samples=(x[:, part], None if dt is None else dt[:, part], y[:, part]))

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        x, dt, y = batch.samples
        return self.task.loss(network(x, dt), y)

    def evaluate(self, network: nn.Module) -> Row:
        # Where a task has no validation set, the test set's curve is shown; nothing is chosen by it.
        split = "validation" if "validation" in self.splits else "test"
        return {f"{split}_{name}": value for name, value in self.judge(network, split).items()}

    def report(self, network: nn.Module, history: list[Row]) -> Row:
        test = self.judge(network, "test")
        return {**{name: test[name] for name in self.task.metrics}, "test_loss": test["loss"]}

    @torch.no_grad()
    def judge(self, network: nn.Module, split: str) -> Row:
        """Mean loss and metrics over a whole split."""
        samples = self.splits[split]
        network.eval()
        sums = torch.zeros(1 + len(self.task.metrics), dtype=torch.float64)
        mine = torch.arange(self.share.rank, len(samples), self.share.world, device=self.share.device)
        size = min(EVALUATION_BATCH, max(1, EVALUATION_NUMBERS // samples[mine[:1]][0].numel())) if len(mine) else 1
        for chosen in torch.split(mine, size):
            x, dt, y = samples[chosen]
            output = network(x, dt)
            measures = [self.task.loss(output, y), *(metric(output, y) for metric in self.task.metrics.values())]
            sums += len(chosen) * torch.stack([value.double().cpu() for value in measures])
        network.train()
        means = self.reduce(sums) / len(samples)
        return dict(zip(("loss", *self.task.metrics), means.tolist(), strict=True))
