"""Accuracy over the learning rate on sets of the UCR and UEA archives: liquid layers beside torch.nn.GRU and LSTM.

Every network has 32 units and a linear read-out of its last output, and is trained for the same number of updates with
batches of 16. The whole grid takes about five core-hours: finished trainings are appended to `learning.jsonl` in the
working directory, and the same command continues after an interruption. The rate of 1e-3 comes first. The picture is
`learning.png`.
"""

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

import lrcnet
from lrcnet.benchmarks.measure import Measurement, threads
from lrcnet_paper import archive_sets
from lrcnet_paper.archive_sets import ArchiveSet, Sequences
from lrcnet_paper.benchmarks import held_out_sets

UNITS, UPDATES, BATCH, SEEDS = 32, 400, 16, 5
USUAL_RATE = 1e-3
RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
RECORD, PICTURE = Path("learning.jsonl"), Path("learning.png")
SETS = (
    "ItalyPowerDemand",
    "JapaneseVowels",
    "FingerMovements",
    "BasicMotions",
    "GunPoint",
    "ArrowHead",
    "Coffee",
    "PickupGestureWiimoteZ",
    "HandMovementDirection",
    "OSULeaf",
    "ACSF1",
)
"""From 24 to 1460 steps and from 1 to 28 channels."""
HELD_OUT = tuple(held_out_sets.HELD_OUT)
"""Sets on which no default was chosen: GRU and LRCU-S, at the other rates with fewer seeds."""
HELD_OUT_SEEDS = 3
LONG_SETS = ("HandMovementDirection", "OSULeaf", "ACSF1")
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    # Networks this small spend half of an update in the plain loop over parameters.
    "Adam": partial(torch.optim.Adam, fused=True),
    "AdamW": partial(torch.optim.AdamW, fused=True),
    "RMSprop": torch.optim.RMSprop,
    "SGD": lambda parameters, lr: torch.optim.SGD(parameters, lr, momentum=0.9),
}
OPTIMISER_SETS = ("ItalyPowerDemand", "JapaneseVowels", "BasicMotions")
OTHER_OPTIMISERS = {"AdamW": (USUAL_RATE,), "RMSprop": (USUAL_RATE,), "SGD": (1e-2, 3e-2, 1e-1)}

LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "GRU": lambda n: nn.GRU(n, UNITS, batch_first=True),
    "LSTM": lambda n: nn.LSTM(n, UNITS, batch_first=True),
    "LRCU-S": lambda n: lrcnet.LRCU(n, UNITS, batch_first=True),
    "LRCU-S, paper": lambda n: lrcnet.LRCU(n, UNITS, batch_first=True, init="paper", parametrisation="sigma-mu"),
    "LRCU-A": lambda n: lrcnet.LRCU(n, UNITS, batch_first=True, elastance="asymmetric"),
    "LRC-S": lambda n: lrcnet.LRC(n, UNITS, batch_first=True),
    "STC": lambda n: lrcnet.STC(n, UNITS, batch_first=True),
    "LTC": lambda n: lrcnet.LTC(n, UNITS, batch_first=True),
}
AT_ALL_RATES = ("GRU", "LSTM", "LRCU-S", "LRCU-S, paper")


class Training(NamedTuple):
    """The identity of one training."""

    set: str
    layer: str
    rate: float
    seed: int
    optimiser: str = "Adam"


class Network(nn.Module):
    """A recurrent layer and a linear read-out of its output at the end of each sequence."""

    def __init__(self, layer: nn.Module, classes: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(UNITS, classes)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return logits (batch, classes)."""
        output, _ = self.layer(x)
        logits: Tensor = self.head(output[torch.arange(len(x)), lengths - 1])
        return logits


def plan(sets: list[str]) -> list[Training]:
    """List the trainings, long sequences last: all layers at the usual rate, other optimisers, then other rates."""
    short = [name for name in sets if name not in LONG_SETS]
    long = [name for name in sets if name in LONG_SETS]
    pairs = product(HELD_OUT, ("GRU", "LRCU-S"), range(SEEDS))
    held_out = [Training(name, layer, USUAL_RATE, seed) for name, layer, seed in pairs]
    first = [*_usual(short), *held_out, *_optimisers(short), *_rates(short), *_usual(long)]
    return [*first, *_held_out_rates(), *_rates(long)]


def _usual(sets: list[str]) -> Iterator[Training]:
    for name, layer, seed in product(sets, LAYERS, range(SEEDS)):
        yield Training(name, layer, USUAL_RATE, seed)


def _rates(sets: list[str]) -> Iterator[Training]:
    for name, rate, layer, seed in product(sets, RATES, AT_ALL_RATES, range(SEEDS)):
        if rate != USUAL_RATE:
            yield Training(name, layer, rate, seed)


def _held_out_rates() -> Iterator[Training]:
    for name, rate, layer, seed in product(HELD_OUT, RATES, ("GRU", "LRCU-S"), range(HELD_OUT_SEEDS)):
        if rate != USUAL_RATE:
            yield Training(name, layer, rate, seed)


def _optimisers(sets: list[str]) -> Iterator[Training]:
    compared = ("GRU", "LRCU-S", "LRCU-S, paper")
    for name, (optimiser, rates) in product(sets, OTHER_OPTIMISERS.items()):
        if name in OPTIMISER_SETS:
            for rate, layer, seed in product(rates, compared, range(SEEDS)):
                yield Training(name, layer, rate, seed, optimiser)


def train(training: Training, data: ArchiveSet) -> float:
    """Train a network and return its accuracy in % on the test half."""
    torch.manual_seed(training.seed)
    network = Network(LAYERS[training.layer](data.train.x.shape[-1]), data.classes)
    optimizer = OPTIMISERS[training.optimiser](network.parameters(), lr=training.rate)
    fit(network, optimizer, data)
    return accuracy(network, data.test)


def fit(network: Network, optimizer: torch.optim.Optimizer, data: ArchiveSet) -> None:
    """Train a network for `UPDATES` updates, rounded up to whole epochs."""
    x, lengths, labels = data.train
    for rows in _batches(len(x)):
        loss = nn.functional.cross_entropy(network(x[rows], lengths[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def measure() -> list[Measurement]:
    """Run the trainings that are not recorded yet, and compare the layers."""
    sets = [name for name in SETS if archive_sets.find(name)]
    if not sets:
        raise FileNotFoundError(f"no data set is installed; `{archive_sets.INSTALL}` brings {len(SETS)} of them")
    results = _read_record()
    missing = [training for training in plan(sets) if training not in results]
    # The networks are too small to share among several threads.
    with threads(1):
        _run(missing, results)
    from lrcnet_paper.benchmarks.learning_curves import draw

    draw(results, PICTURE)
    return summarise(results)


@cache
def load(name: str, seed: int) -> ArchiveSet:
    """Return a set: of the archive its published split, of the others other samples for every seed."""
    return archive_sets.load(name) if name in SETS else held_out_sets.load(name, seed)


def _run(missing: list[Training], results: dict[Training, float]) -> None:
    start, done, total = time.process_time(), 0.0, sum(_cost(t) for t in missing)
    for i, training in enumerate(missing, 1):
        results[training] = train(training, load(training.set, training.seed))
        done += _cost(training)
        with RECORD.open("a") as file:
            file.write(json.dumps([*training, results[training]]) + "\n")
        hours = (time.process_time() - start) / done * (total - done) / 3600
        print(
            f"{i}/{len(missing)} {' '.join(map(str, training))}: {results[training]:.1f} %, {hours:.2f} core-hours left"
        )


def _cost(training: Training) -> float:
    """Estimate the relative cost of a training: its steps, and the unfoldings of STC and LTC."""
    return load(training.set, training.seed).train.x.shape[1] * (2 if training.layer in ("STC", "LTC") else 1)


def _read_record() -> dict[Training, float]:
    if not RECORD.exists():
        return {}
    rows = (json.loads(line) for line in RECORD.read_text().splitlines())
    return {Training(*row[:-1]): row[-1] for row in rows}


def _batches(count: int) -> Iterator[Tensor]:
    per_epoch = math.ceil(count / BATCH)
    for _ in range(math.ceil(UPDATES / per_epoch)):
        yield from torch.split(torch.randperm(count), BATCH)


def accuracy(network: Network, data: Sequences) -> float:
    """Return the accuracy in % on sequences."""
    with torch.no_grad():
        right = network(data.x, data.lengths).argmax(-1) == data.labels
    return 100 * float(right.double().mean())


def mean_accuracy(results: dict[Training, float], name: str, layer: str, rate: float, optimiser: str = "Adam") -> float:
    """Return the mean accuracy over the seeds that are finished, NaN if none is."""
    trainings = [Training(name, layer, rate, seed, optimiser) for seed in range(SEEDS)]
    finished = [results[training] for training in trainings if training in results]
    return statistics.fmean(finished) if finished else math.nan


def paired_difference(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean of ours - theirs over the sets and half the width of its 95 % interval (Student's t)."""
    differences = [ours - theirs for ours, theirs in pairs]
    if len(differences) < 2:
        return statistics.fmean(differences), math.inf
    from scipy.stats import t

    half = t.ppf(0.975, len(differences) - 1) * statistics.stdev(differences) / math.sqrt(len(differences))
    return statistics.fmean(differences), float(half)


def summarise(results: dict[Training, float]) -> list[Measurement]:
    """Compare every layer with the GRU: set by set, and as a paired difference over the sets."""
    return [
        row
        for optimiser, rate in sorted({(t.optimiser, t.rate) for t in results})
        for row in _compare(results, optimiser, rate)
    ]


def _compare(results: dict[Training, float], optimiser: str, rate: float) -> list[Measurement]:
    rows = []
    for layer, (kind, sets) in product(LAYERS, (("sets", SETS), ("held-out sets", HELD_OUT))):
        pairs = []
        for name in sets:
            ours, gru = (mean_accuracy(results, name, one, rate, optimiser) for one in (layer, "GRU"))
            if not math.isnan(ours + gru):
                pairs.append((ours, gru))
                rows.append(Measurement(f"{optimiser} {rate:g}, {name}: {layer}", ours, "%", "GRU", gru, ours / gru))
        if layer != "GRU" and pairs:
            mean, half = paired_difference(pairs)
            what = f"{optimiser} {rate:g}, {len(pairs)} {kind}: {layer} - GRU (95 % interval ± {half:.2g})"
            rows.append(Measurement(what, mean, "points"))
    return rows
