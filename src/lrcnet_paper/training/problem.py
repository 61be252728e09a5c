"""What a training loop must know about a task: its batches, the loss of one, and how to judge a network.

Randomness is a function of the seed and of the place in the run, never of what ran before: a resumed run draws what an
uninterrupted one would have drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from lrcnet_paper.tasks import Split, Task
from lrcnet_paper.training.checkpoint import Row


@dataclass(frozen=True)
class Share:
    """Which part of the work this process does: `rank` of `world` processes, on one device."""

    rank: int
    world: int
    device: torch.device


@dataclass(frozen=True)
class Batch:
    """Samples of one step for this process, and how much their mean loss weighs against the other processes'."""

    samples: tuple[Tensor, Tensor | None, Tensor]
    weight: float


class Problem(ABC):
    """A task as a training loop sees it.

    A run is counted in a unit: epochs, or iterations. It goes from one evaluation to the next (`stop_after`).
    """

    unit: str

    def __init__(self, task: Task, total: int, batch_size: int, seed: int, share: Share) -> None:
        self.task, self.total, self.batch_size, self.seed, self.share = task, total, batch_size, seed, share

    @abstractmethod
    def steps(self, units: int) -> int:
        """Optimiser steps in the first so many units."""

    @abstractmethod
    def stop_after(self, done: int) -> int:
        """Where the next evaluation is, counted in units, when so many are done."""

    @abstractmethod
    def batches(self, done: int, stop: int) -> Iterator[Batch]:
        """The training batches between two evaluations."""

    @abstractmethod
    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Mean loss of a batch, a scalar to call backward on."""

    @abstractmethod
    def evaluate(self, network: nn.Module) -> Row:
        """Columns for the table of metrics, as sums over processes have made them."""

    @abstractmethod
    def report(self, network: nn.Module, history: list[Row]) -> Row:
        """The numbers of the finished run, the reported one under the task's own name of it."""

    def reached(self, history: list[Row]) -> Row:
        """The numbers that stand although the run broke off after this history."""
        return {}

    def generator(self, *place: int) -> torch.Generator:
        """Randomness of a place in the run."""
        state = np.random.SeedSequence([self.seed, *place]).generate_state(1, np.uint64)
        # torch wants a signed number.
        return torch.Generator().manual_seed(int(state[0]) >> 1)

    def batch(self, samples: Split, chosen: Tensor) -> Batch:
        """This process' part of the samples chosen for a step of all processes."""
        world, rank = self.share.world, self.share.rank
        if world == 1:
            return Batch(samples[chosen], 1.0)
        mine = chosen[rank::world]
        if not len(mine):
            # Every process must take part in the exchange of gradients, if only with nothing.
            return Batch(samples[chosen[:1]], 0.0)
        return Batch(samples[mine], len(mine) * world / len(chosen))


def load(task: Task, split: str, data: str | None, limit: int | None, device: torch.device) -> Split:
    """A split of a task on a device, or `limit` of its samples."""
    samples = task.load(split, data)
    return (samples if limit is None else samples.spread(limit)).to(device)
