"""The paper's search for the learning rate: train with three rates, keep the run with the least validation loss."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lrcnet.errors import DivergenceError
from lrcnet_paper.tasks import find
from lrcnet_paper.training.atomic_files import write_json
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.single_run import run
from lrcnet_paper.training.spec import RunSpec

RATES = (1e-4, 1e-3, 1e-2)
LOSS = "validation_loss"


def search_learning_rate(
    spec: RunSpec,
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    progress: bool = True,
    *,
    rates: Sequence[float] = RATES,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
    on_result: Callable[[float, Result | None], None] = lambda rate, result: None,
) -> tuple[float, Result]:
    """Train a run with each rate and return the rate whose reported epoch has the least validation loss.

    Args:
        spec: the run; its own learning rate is not used.
        out: parent of the run folders, and of a file with the validation loss of each rate.
        data, progress, threads, loggers: see `run`.
        rates: learning rates to try; the paper's three by default.
        on_result: called with each rate and its result, None where the run diverged.

    Returns:
        The best rate and its result.

    Raises:
        ValueError: if the task's variant has no validation split; a choice by test data would bias the result.
        DivergenceError: if every rate diverged.
    """
    task = find(spec.task, spec.variant)
    if "validation" not in task.splits:
        clean = [name for name in task.variants if "validation" in find(spec.task, name).splits]
        advice = f"use one of {', '.join(clean)}" if clean else "give --lr instead"
        raise ValueError(f"a search needs a validation split, and {spec.task}/{spec.variant} has none; {advice}")
    results: dict[float, Result] = {}
    for rate in rates:
        try:
            results[rate] = run(
                spec.with_(learning_rate=rate), out, data, progress=progress, threads=threads, loggers=loggers
            )
        except DivergenceError:
            on_result(rate, None)
            continue
        on_result(rate, results[rate])
    if not results:
        raise DivergenceError(f"every learning rate of {list(rates)} diverged; give smaller ones")
    best = min(results, key=lambda rate: results[rate].metrics[LOSS])
    losses = {repr(rate): results[rate].metrics[LOSS] if rate in results else None for rate in rates}
    write_json(Path(out) / f"search_{spec.with_(learning_rate=None).folder_name()}.json", {"best": best, LOSS: losses})
    return best, results[best]
