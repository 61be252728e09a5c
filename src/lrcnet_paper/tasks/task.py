"""What a benchmark is: a frozen description of its sizes, loss, metrics and recipe, and a way to load its splits.

Axes everywhere in this package: sample, time, feature; batches come first.
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
Measure = Callable[[Tensor, Tensor], Tensor]


class Samples(Dataset[tuple[Tensor, Tensor | None, Tensor]]):
    """One split in memory, indexed by a number, a slice, a list or a tensor of numbers.

    `samples[index]` is `(x, dt, y)`. A list gives a whole batch by one gather per tensor, which is why
    `DataLoader(samples, sampler=BatchSampler(...), batch_size=None)` is the fast way to feed a training loop.

    Args:
        x: inputs, (sample, ...).
        dt: the gap before each reading, (sample, time), or None where time is regular.
        y: targets, (sample, ...).

    Raises:
        ValueError: when the three differ in their number of samples.

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
        """Numbers of the samples of one epoch, in the order of training."""
        return torch.randperm(len(self), generator=generator)

    def evenly_spaced(self, count: int) -> Samples:
        """So many of the samples, evenly spaced: some files are sorted by class."""
        return Samples(*self[torch.arange(count) * len(self) // count]) if count < len(self) else self

    def to(self, device: torch.device) -> Samples:
        """The samples on a device."""
        return Samples(self.x.to(device), None if self.dt is None else self.dt.to(device), self.y.to(device))


class SampleSet(Protocol):
    """What training needs of a split; `Samples` is one that lies in memory. See there for the methods."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Index) -> tuple[Tensor, Tensor | None, Tensor]: ...
    def order(self, generator: torch.Generator) -> Tensor: ...
    def evenly_spaced(self, count: int) -> SampleSet: ...
    def to(self, device: torch.device) -> SampleSet: ...


@dataclass(frozen=True)
class Recipe:
    """How the paper trains on a task.

    Attributes:
        optimizer: the optimiser's name.
        learning_rate: its rate, at first.
        rho: decay of RMSprop's mean square (torch calls it alpha); None for the others.
        eps: added to the denominator of the update.
        batch_size: samples per step.
        epochs: passes over the training split, or None where `iterations` counts.
        iterations: training steps, or None where `epochs` counts.
        reported: which weights give the number: those after the last step or those of the best validation epoch.
        weight_decay: of AdamW.
        schedule: of the rate, "constant" or "cosine".
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


@dataclass(frozen=True)
class Task:
    """A benchmark in one of its variants. It knows its data and how to judge an output, and no network.

    Attributes:
        name: the benchmark, one of `TASKS`.
        variant: which data and which protocol; a report labels its numbers with it.
        variants: every variant of this benchmark, the default one first.
        title: one line for people.
        kind: what is predicted: a label per step, one per sequence, a whole trajectory, or how to steer at each step.
        input_size: features per step; for tokens the size of the embedding is the model's affair and this is 0.
        vocabulary: number of token indices, 0 where inputs are not tokens.
        output_size: logits or coordinates a model must give.
        length: steps of a sequence.
        splits: samples in each split; `load` insists on them, so that a shortened file cannot pass for the real one.
        irregular: whether `load` gives a dt.
        negative_dt: what a layer must do with negative gaps, as its argument of that name.
        loss: `loss(output, target)`, a scalar tensor.
        metrics: name -> `metric(output, target)`, the mean over the batch; the first one is the reported one.
        maximise: whether a larger reported metric is better.
        recipe: the paper's hyper-parameters.
        citation: whom to cite for the data.
        licence: under which terms the data may be used.
        notes: what a reader of a number must know about this variant.
        reader: what `load` calls with the variant, the split and the folder.
        files: what `reader` needs, each by its names in order of preference; none where data is generated.
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
        """Reads one split.

        Args:
            split: one of `splits`.
            data: folder (or file) that holds the data; None looks where `LRCNET_DATA` points, then in the cache.

        Returns:
            The split's samples.

        Raises:
            ValueError: for an unknown split, or a file that is not what it must be.
            FileNotFoundError: when the files are not there; the message says how to get them.
        """
        if split not in self.splits:
            raise ValueError(f"split of {self.name}/{self.variant} must be one of {list(self.splits)}; got {split!r}")
        samples = self.reader(self.variant, split, data)
        if len(samples) != self.splits[split]:
            raise ValueError(
                f"split {split!r} of {self.name}/{self.variant} must have {self.splits[split]} samples and has "
                f"{len(samples)}; the files are cut off or are others, get them again"
            )
        return samples
