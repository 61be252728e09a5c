"""The contract between a training loop and a task: batches, the loss of a batch, and the evaluation of a network.

Random numbers are a function of the seed and of the position in the run, never of earlier draws: a resumed run draws
the same numbers as an uninterrupted one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lrcnet_paper.tasks import SampleSet, Task
from lrcnet_paper.training.checkpoint import Row


def _only_process(values: Tensor) -> Tensor:
    return values


@dataclass(frozen=True)
class ProcessShare:
    """The part of the work that this process does.

    Attributes:
        rank: number of this process.
        world: number of processes.
        device: device of this process.
        sum: sums a tensor over all processes.
    """

    rank: int
    world: int
    device: torch.device
    sum: Callable[[Tensor], Tensor] = _only_process


@dataclass(frozen=True)
class ProblemSettings:
    """The choices of a run that decide its batches.

    Attributes:
        length: length of the run in the problem's unit.
        batch_size: samples per step and process.
        seed: random seed of the sample order.
        data: folder of the task's files; None for the usual places.
        limit: number of samples to take from each split; None for all.
        piece: number of steps of each sequence to train on, at a random position; None for all.
    """

    length: int
    batch_size: int
    seed: int
    data: str | None = None
    limit: int | None = None
    piece: int | None = None


@dataclass(frozen=True)
class Batch:
    """The samples of one step for this process, and the weight of their mean loss among all processes."""

    samples: tuple[Tensor, Tensor | None, Tensor]
    weight: float


class Problem(ABC):
    """A task as a training loop sees it.

    A run is counted in a unit: epochs, or iterations. It goes from one evaluation to the next (`next_evaluation`).

    Attributes:
        unit: "epoch" or "iteration".
        default_threads: threads of a run if the user does not choose; None for torch's own choice.
    """

    unit: ClassVar[str]
    default_threads: ClassVar[int | None] = None

    def __init__(self, task: Task, settings: ProblemSettings, share: ProcessShare) -> None:
        self.task, self.settings, self.share = task, settings, share

    @abstractmethod
    def steps(self, units: int) -> int:
        """Return the number of optimiser steps in the first `units` units."""

    @abstractmethod
    def next_evaluation(self, done: int) -> int:
        """Return the position of the next evaluation, in units, after `done` units."""

    @abstractmethod
    def batches(self, done: int, stop: int) -> Iterator[Batch]:
        """Yield the training batches from `done` to `stop`, in units."""

    @abstractmethod
    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss of a batch, a scalar to call backward on."""

    @abstractmethod
    def evaluate(self, network: nn.Module) -> Row:
        """Return this evaluation's columns of the table of metrics, over the samples of all processes."""

    @abstractmethod
    def report(self, network: nn.Module, history: list[Row]) -> Row:
        """Return the numbers of the finished run; the reported metric has the task's own name for it."""

    def partial_report(self, history: list[Row]) -> Row:
        """Return the numbers that remain valid although the run stopped after this history."""
        return {}

    def generator(self, *position: int) -> torch.Generator:
        """Return the random generator of a position in the run."""
        state = np.random.SeedSequence([self.settings.seed, *position]).generate_state(1, np.uint64)
        # torch needs a signed number.
        return torch.Generator().manual_seed(int(state[0]) >> 1)

    def batch(self, samples: SampleSet, chosen: Tensor) -> Batch:
        """Return this process' part of the samples chosen for one step of all processes."""
        world, rank = self.share.world, self.share.rank
        if world == 1:
            return Batch(samples[chosen], 1.0)
        mine = chosen[rank::world]
        if not len(mine):
            # Every process must take part in the exchange of gradients, even with weight zero.
            return Batch(samples[chosen[:1]], 0.0)
        return Batch(samples[mine], len(mine) * world / len(chosen))

    def load(self, split: str) -> SampleSet:
        """Load a split of the task onto this process' device, or `limit` evenly spaced samples of it."""
        samples, limit = self.task.load(split, self.settings.data), self.settings.limit
        return (samples if limit is None else samples.evenly_spaced(limit)).to(self.share.device)
