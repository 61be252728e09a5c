"""`Task`: a benchmark as a frozen description of its sizes, loss, metrics and recipe, with a way to load its splits.

Axes everywhere in this package: sample, time, feature; the batch comes first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.utils.data import Dataset

from .data_folders import find_files

DataPath = str | os.PathLike[str]
Index = int | slice | Sequence[int] | Tensor
# The number of samples of a split that depends on the user's files.
ANY_NUMBER = -1
Measure = Callable[[Tensor, Tensor], Tensor]


class Samples(Dataset[tuple[Tensor, Tensor | None, Tensor]]):
    """One split in memory, indexed by a number, a slice, a list or a tensor of numbers.

    `samples[index]` is `(x, dt, y)`. A list selects a whole batch by one gather per tensor, so
    `DataLoader(samples, sampler=BatchSampler(...), batch_size=None)` is the fast way to feed a training loop.

    Args:
        x: inputs, (sample, ...).
        dt: the gap before each reading, (sample, time), or None where time is regular.
        y: targets, (sample, ...).

    Raises:
        ValueError: when x, dt and y differ in their number of samples.

    Example:
        >>> split = Samples(torch.zeros(5, 8, 3), None, torch.zeros(5, 8, dtype=torch.long))
        >>> x, dt, y = split[[0, 3]]
        >>> x.shape, dt, y.shape
        (torch.Size([2, 8, 3]), None, torch.Size([2, 8]))
    """

    def __init__(self, x: Tensor, dt: Tensor | None, y: Tensor) -> None:
        lengths = {"x": len(x), "y": len(y)} | ({} if dt is None else {"dt": len(dt)})
        if len(set(lengths.values())) != 1:
            raise ValueError(f"x, dt and y must hold the same number of samples; they hold {lengths}")
        self.x, self.dt, self.y = x, dt, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Index) -> tuple[Tensor, Tensor | None, Tensor]:
        if not isinstance(index, (int, slice, Tensor)):
            index = torch.as_tensor(index, dtype=torch.long)
        return self.x[index], None if self.dt is None else self.dt[index], self.y[index]

    def order(self, generator: torch.Generator) -> Tensor:
        """Return the indices of the samples of one epoch, in the order of training."""
        return torch.randperm(len(self), generator=generator)

    def evenly_spaced(self, count: int) -> Samples:
        """Select `count` samples, evenly spaced because some files are sorted by class."""
        return Samples(*self[torch.arange(count) * len(self) // count]) if count < len(self) else self

    def to(self, device: torch.device) -> Samples:
        """Move the samples to a device."""
        return Samples(self.x.to(device), None if self.dt is None else self.dt.to(device), self.y.to(device))


class SampleSet(Protocol):
    """One split as training uses it. `Samples` keeps it in memory and documents the methods."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Index) -> tuple[Tensor, Tensor | None, Tensor]: ...
    def order(self, generator: torch.Generator) -> Tensor: ...
    def evenly_spaced(self, count: int) -> SampleSet: ...
    def to(self, device: torch.device) -> SampleSet: ...


@dataclass(frozen=True)
class Recipe:
    """The paper's hyper-parameters for a task.

    Attributes:
        optimizer: name of the optimiser, a key of `lrcnet_paper.training.optimisers.OPTIMISERS`.
        learning_rate: learning rate of the first step.
        rho: decay of RMSprop's mean square (torch calls it alpha); None for other optimisers.
        eps: number added to the denominator of the update.
        batch_size: samples per step.
        epochs: passes over the training split; None if the length is counted in `iterations`.
        iterations: training steps; None if the length is counted in `epochs`.
        reported: the weights that the reported number comes from: those after the last step, or those of the best
            validation epoch.
        weight_decay: weight decay of AdamW.
        schedule: schedule of the learning rate, a key of `lrcnet_paper.training.schedules.SCHEDULES`.
        evaluate_every: epochs from one evaluation to the next.
        patience: evaluations without a better validation after which a run stops; None to train to the end.
    """

    optimizer: str
    learning_rate: float
    rho: float | None
    eps: float
    batch_size: int
    epochs: int | None
    iterations: int | None
    reported: Literal["last", "best-validation"]
    weight_decay: float = 0.0
    schedule: str = "constant"
    evaluate_every: int = 1
    patience: int | None = None


@dataclass(frozen=True)
class Task:
    """A benchmark in one of its variants: its data, and the loss and metrics of an output. It knows no network.

    Attributes:
        name: name of the benchmark, a key of `TASKS`.
        variant: name of the data and protocol; a report labels its numbers with it.
        variants: every variant of this benchmark, the default one first.
        title: one line for people.
        kind: the kind of target, a key of `lrcnet_paper.models.BUILDERS` and of
            `lrcnet_paper.training.problems.PROBLEMS`: a label per step or per sequence, a label per sequence of
            unequal lengths, a trajectory, or a steering command per step.
        input_size: features per step; 0 for tokens, for which the model chooses the size of the embedding.
        vocabulary: number of token indices; 0 if the inputs are not tokens.
        output_size: number of logits or coordinates of a model's output.
        length: number of steps of a sequence.
        splits: name of each split -> its number of samples. `load` checks it, so that a truncated file is not mistaken
            for the real one; `ANY_NUMBER` is not checked.
        irregular: whether `load` returns a dt.
        negative_dt: treatment of negative gaps, the argument of that name of a layer.
        loss: `loss(output, target)`, a scalar tensor.
        metrics: name -> `metric(output, target)`, the mean over the batch; the first one is reported.
        maximise: whether a larger reported metric is better.
        recipe: the paper's hyper-parameters.
        citation: the publication to cite for the data.
        licence: terms of use of the data.
        notes: facts about this variant that a reader of its numbers must know.
        reader: function that `load` calls with the variant, the split and the folder.
        files: for each file that `reader` needs, its names in order of preference; empty if the data is generated.
        takes_data: whether `reader` uses the folder that it is given, although it names no files.
        masked: number k of channels that may be missing: the first k inputs are their last values, the next k are 1
            where the value was measured at that reading and 0 where it is an older one.
    """

    name: str
    variant: str
    variants: tuple[str, ...]
    title: str
    kind: str
    input_size: int
    vocabulary: int
    output_size: int
    length: int
    splits: Mapping[str, int]
    irregular: bool
    negative_dt: Literal["error", "allow"]
    loss: Measure
    metrics: Mapping[str, Measure]
    maximise: bool
    recipe: Recipe
    citation: str
    licence: str
    notes: str
    reader: Callable[[str, str, DataPath | None], SampleSet] = field(repr=False)
    files: tuple[tuple[str, ...], ...] = ()
    takes_data: bool = False
    masked: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", MappingProxyType(dict(self.splits)))
        object.__setattr__(self, "metrics", MappingProxyType(dict(self.metrics)))

    @property
    def metric(self) -> str:
        """Name of the reported metric."""
        return next(iter(self.metrics))

    def available(self, data: DataPath | None = None) -> bool:
        """Tell whether every file that `load` needs exists. No file is opened.

        Args:
            data: as in `load`.
        """
        return not self.missing(data)

    def missing(self, data: DataPath | None = None) -> str:
        """Say which file is missing, where it was looked for and how to get it; "" if the task is available.

        Tasks that generate their data need no files and miss none.

        Args:
            data: as in `load`.
        """
        if not self.files:
            return ""
        try:
            find_files(self.name, self.files, data)
        except FileNotFoundError as error:
            return str(error)
        return ""

    def load(self, split: str, data: DataPath | None = None) -> SampleSet:
        """Load one split.

        Args:
            split: one of `splits`.
            data: folder (or file) that holds the data; None searches `LRCNET_DATA`, then the cache.

        Returns:
            The samples of the split.

        Raises:
            ValueError: for an unknown split, or a file of another format or size.
            FileNotFoundError: when a file is missing; the message says how to get it.
        """
        if split not in self.splits:
            raise ValueError(f"split of {self.name}/{self.variant} must be one of {list(self.splits)}; got {split!r}")
        samples = self.reader(self.variant, split, data)
        if self.splits[split] != ANY_NUMBER and len(samples) != self.splits[split]:
            raise ValueError(
                f"split {split!r} of {self.name}/{self.variant} must have {self.splits[split]} samples and has "
                f"{len(samples)}; the files are truncated or not the right ones, get them again"
            )
        return samples
