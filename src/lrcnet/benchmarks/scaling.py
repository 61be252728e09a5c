"""Time of a training step over the number of threads and over the length of the sequence."""

from pathlib import Path

import torch

import lrcnet
from lrcnet.benchmarks.measure import Measurement, best_in_turn, threads, training_step

LENGTHS = (1_000, 3_162, 10_000, 31_623, 100_000)


def measure() -> list[Measurement]:
    return [*_threads(), *_lengths()]


def _threads() -> list[Measurement]:
    layer = lrcnet.LRCU(1, 64, batch_first=True, backend="fused")
    step = training_step(layer, torch.rand(64, 784, 1))
    best: dict[int, float] = {}
    counts = sorted({1, 2, torch.get_num_threads()})
    for _ in range(3):
        for count in counts:
            with threads(count):
                (time,) = best_in_turn(step, repeats=3, rounds=1)
                best[count] = min(best.get(count, time), time)
    return [
        Measurement(
            f"LRCU-S 64, psMNIST (64, 784, 1), {count} threads",
            best[count] * 1e3,
            "ms",
            "one thread",
            best[1] * 1e3,
            best[1] / best[count],
            1.7 if count == 2 else None,
            at_least=True,
        )
        for count in counts
        if count > 1
    ]


def _lengths() -> list[Measurement]:
    """Measure the time per step of the sequence at batch 4, against that of the shortest sequence."""
    layer = lrcnet.LRCU(1, 64, batch_first=True, backend="fused")
    steps = {length: training_step(layer, torch.rand(4, length, 1)) for length in LENGTHS}
    best = dict.fromkeys(LENGTHS, float("inf"))
    for _ in range(3):
        for length, step in steps.items():
            (time,) = best_in_turn(step, repeats=max(3, 30_000 // length), rounds=1)
            best[length] = min(best[length], time / length * 1e6)
    shortest = best[LENGTHS[0]]
    return [
        Measurement(
            f"LRCU-S 64 (4, {length}, 1), forward + backward, per step",
            best[length],
            "us",
            f"T = {LENGTHS[0]}",
            shortest,
            best[length] / shortest,
            1.1,
        )
        for length in LENGTHS[1:]
    ]


def draw(measurements: list[Measurement], path: Path) -> None:
    """Draw the time per step over the length of the sequence, and the speed-up over the number of threads."""
    from matplotlib.figure import Figure

    from lrcnet.pages import palette

    by_threads = [one for one in measurements if one.what.endswith("threads")]
    lengths = [one for one in measurements if one.what.endswith("per step")]
    first = lengths[0].other
    assert first is not None
    with palette.figure_style():
        figure = Figure(figsize=(9, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.axhspan(0.9 * first, 1.1 * first, alpha=0.2, color=palette.GREY, label="within 10 %")
        left.semilogx(
            LENGTHS, [first, *(one.value for one in lengths)], "o-", color=palette.VERMILION, label="measured"
        )
        left.set(xlabel="length of the sequence (steps)", ylabel="time per step (µs)", ylim=(0, None))
        left.set_title("LRCU-S, batch 4, 64 units, forward and backward")
        left.legend(loc="lower left")
        counts = [1, *(int(one.what.split()[-2]) for one in by_threads)]
        right.plot(counts, counts, ":", color=palette.GREY, linewidth=3, label="ideal")
        right.plot(counts, [1.0, *(one.ratio for one in by_threads)], "o-", color=palette.VERMILION, label="measured")
        right.set(xlabel="threads", ylabel="times faster than one thread", xticks=counts, ylim=(0, None))
        right.set_title("LRCU-S at psMNIST's shape, forward and backward")
        right.legend(loc="lower right")
        figure.savefig(path, dpi=150)
