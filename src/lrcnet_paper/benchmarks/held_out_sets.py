"""Sets that need no download, in two lists: those on which defaults are chosen, and those that judge them afterwards.

Most are generated (`lrcnet_paper.benchmarks.generated_sets`); the others are tables that scikit-learn ships. A step of
a table's sequence is one feature, in the order of the columns, and a step of a digit is one row of its picture.
"""

from collections.abc import Callable
from functools import partial

import torch

from lrcnet_paper.archive_sets import ArchiveSet, Sequences
from lrcnet_paper.benchmarks import generated_sets as make
from lrcnet_paper.benchmarks.generated_sets import Half

Halves = tuple[Half, Half]


def _read_table(name: str, seed: int) -> Halves:
    """Return both halves of a table of scikit-learn, in a random order; columns are standardised."""
    from sklearn import datasets

    table = getattr(datasets, name)()
    order = torch.randperm(len(table.target), generator=torch.Generator().manual_seed(seed + 4))
    half = len(order) // 2
    x, labels = torch.tensor(table.data)[order], torch.tensor(table.target)[order].long()
    x = ((x - x[:half].mean(0)) / x[:half].std(0)).unsqueeze(-1)
    return (x[:half], labels[:half]), (x[half:], labels[half:])


def _read_digits(seed: int) -> Halves:
    """Return 600 of scikit-learn's digits (600, 8, 8) for training, drawn at random, and the others."""
    from sklearn import datasets

    table = datasets.load_digits()
    order = torch.randperm(len(table.target), generator=torch.Generator().manual_seed(seed + 4))
    x, labels = torch.tensor(table.images)[order].float(), torch.tensor(table.target)[order].long()
    return (x[:600], labels[:600]), (x[600:], labels[600:])


def _generate(make: Callable[[int, int], Half], train: int, test: int, seed: int) -> Halves:
    return make(train, 1000 * seed), make(test, 1000 * seed + 1)


TUNING: dict[str, Callable[[int], Halves]] = {
    "Digits": _read_digits,
    "ControlCharts": partial(_generate, make.make_control_charts, 300, 300),
    "Waveform": partial(_generate, make.make_waveforms, 300, 600),
    "Wine": partial(_read_table, "load_wine"),
}
"""name -> function of a seed that returns the training and the test half, for sets on which defaults were chosen."""

HELD_OUT: dict[str, Callable[[int], Halves]] = {
    "Recall": partial(_generate, make.make_recall, 300, 600),
    "Adding": partial(_generate, make.make_sums, 500, 600),
    "BreastCancer": partial(_read_table, "load_breast_cancer"),
    "Iris": partial(_read_table, "load_iris"),
    "CylinderBellFunnel": partial(_generate, make.make_cylinders_bells_funnels, 300, 600),
    "Autoregression": partial(_generate, make.make_autoregressions, 300, 600),
    "Chirp": partial(_generate, make.make_chirps, 300, 600),
    "EventOrder": partial(_generate, make.make_event_orders, 300, 600),
    "Strokes": partial(_generate, make.make_strokes, 300, 600),
    "Spirals": partial(_generate, make.make_spirals, 300, 600),
    "Lorenz": partial(_generate, make.make_lorenz, 300, 600),
    "LinearSystems": partial(_generate, make.make_linear_systems, 300, 600),
    "Gestures": partial(_generate, make.make_gestures, 300, 600),
}
"""The same for sets on which none was."""


def load(name: str, seed: int = 0) -> ArchiveSet:
    """Make or read a set, and standardise its channels by the training half.

    Each seed gives other samples or another split: a single small test half can favour one network by several points.
    """
    (x, labels), test = (TUNING | HELD_OUT)[name](seed)
    mean, spread = x.mean((0, 1)), x.std((0, 1)).clamp(min=1e-6)
    halves = [
        Sequences(((values - mean) / spread).float(), torch.full((len(values),), values.shape[1]), classes)
        for values, classes in ((x, labels), test)
    ]
    return ArchiveSet(name, int(labels.max()) + 1, *halves)
