"""Sets on which no default of the library was chosen: three that are generated, and two tables read as sequences.

The tables are those that scikit-learn ships. A step of such a sequence is one feature, in the order of the columns.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lrcnet_paper.archive_sets import ArchiveSet, Sequences

Half = tuple[Tensor, Tensor]


def make_waveforms(count: int, seed: int) -> Half:
    """Make Breiman's waveforms (count, 21, 1): mixtures of two of three triangles, with noise."""
    generator = torch.Generator().manual_seed(seed + 60)
    t = torch.arange(1, 22).float()
    triangles = torch.stack([torch.clamp(6 - (t - centre).abs(), min=0) for centre in (11, 15, 7)])
    labels = torch.arange(count) % 3
    share = torch.rand(count, 1, generator=generator)
    first, second = triangles[torch.tensor([0, 0, 1])[labels]], triangles[torch.tensor([1, 2, 2])[labels]]
    noise = torch.randn(count, 21, generator=generator)
    return (share * first + (1 - share) * second + noise).unsqueeze(-1), labels


def make_recall(count: int, seed: int) -> Half:
    """Make noise (count, 40, 5) with a mark in one of four channels within the first five steps: the class."""
    generator = torch.Generator().manual_seed(seed + 40)
    labels = torch.randint(4, (count,), generator=generator)
    x = 0.3 * torch.randn(count, 40, 5, generator=generator)
    x[torch.arange(count), torch.randint(0, 5, (count,), generator=generator), labels] += 1
    x[:, -1, 4] += 1
    return x, labels


def make_sums(count: int, seed: int) -> Half:
    """Make numbers and marks (count, 30, 2); the class is whether the two marked numbers sum to more than 1."""
    generator = torch.Generator().manual_seed(seed + 50)
    numbers, marks = torch.rand(count, 30, generator=generator), torch.zeros(count, 30)
    first, second = (torch.randint(low, low + 15, (count,), generator=generator) for low in (0, 15))
    rows = torch.arange(count)
    marks[rows, first] = marks[rows, second] = 1
    return torch.stack([numbers, marks], -1), (numbers[rows, first] + numbers[rows, second] > 1).long()


def _read_table(name: str) -> tuple[Half, Half]:
    """Return both halves of a table of scikit-learn, in a fixed random order; columns are standardised."""
    from sklearn import datasets

    table = getattr(datasets, name)()
    order = torch.randperm(len(table.target), generator=torch.Generator().manual_seed(4))
    half = len(order) // 2
    x, labels = torch.tensor(table.data)[order], torch.tensor(table.target)[order].long()
    x = ((x - x[:half].mean(0)) / x[:half].std(0)).unsqueeze(-1)
    return (x[:half], labels[:half]), (x[half:], labels[half:])


def _generate(make: Callable[[int, int], Half], train: int, test: int) -> tuple[Half, Half]:
    return make(train, 0), make(test, 1)


SETS: dict[str, Callable[[], tuple[Half, Half]]] = {
    "Waveform": lambda: _generate(make_waveforms, 300, 600),
    "Recall": lambda: _generate(make_recall, 300, 600),
    "Adding": lambda: _generate(make_sums, 500, 600),
    "Wine": lambda: _read_table("load_wine"),
    "BreastCancer": lambda: _read_table("load_breast_cancer"),
}
"""name -> function that returns the training and the test half."""


def load(name: str) -> ArchiveSet:
    """Make or read a set, and standardise its channels by the training half."""
    (x, labels), test = SETS[name]()
    mean, spread = x.mean((0, 1)), x.std((0, 1))
    halves = [
        Sequences(((values - mean) / spread).float(), torch.full((len(values),), values.shape[1]), classes)
        for values, classes in ((x, labels), test)
    ]
    return ArchiveSet(name, int(labels.max()) + 1, *halves)
