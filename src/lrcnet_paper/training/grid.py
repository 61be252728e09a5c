"""`run_all`: a grid of runs, one after the other here or on a Ray cluster; finished runs are not trained again."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from lrcnet.errors import DivergenceError, one_of
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.single_run import ERRORS_OF_ONE_RUN, finished_result, run
from lrcnet_paper.training.spec import RunSpec

ENGINES = ("local", "ray")
_log = logging.getLogger("lrcnet")
OnResult = Callable[[RunSpec, Result], None]


class RunsLeftError(RuntimeError):
    """A grid finished but left runs out; the message names these runs and the reasons."""


def run_all(
    specs: Iterable[RunSpec],
    out: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    engine: str = "local",
    progress: bool = True,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
    address: str | None = None,
    on_result: OnResult = lambda spec, result: None,
) -> list[Result]:
    """Train many runs; finished runs are only read, and interrupted ones continue from their last checkpoint.

    Args:
        specs: the runs; a run that occurs twice is trained once.
        out: parent of the run folders; on a cluster a folder that every node sees.
        data: see `run`; on a cluster every node must see it.
        engine: "local" trains one run after the other in this process, "ray" trains on a cluster.
        progress: whether to show progress bars, if there is a terminal.
        threads: threads per run; see `run`. On Ray it is also the number of CPUs reserved for a run; None reserves 1,
            and a new run then has 1 thread.
        loggers: names among "tensorboard", "wandb", "mlflow".
        address: address of an existing Ray cluster; None starts one on this machine.
        on_result: called with each run and its result as soon as it is finished, in the order in which they finish.

    Returns:
        One result per run, in the order given. A run that diverged is among them, with that status.

    Raises:
        ValueError: for an unknown engine, or a run folder that holds another run.
        RunsLeftError: after all other runs, when another process was training a run, or a folder held more of a run
            than was asked for.
    """
    one_of("engine", engine, ENGINES)
    unique = list(dict.fromkeys(specs))
    root = Path(out)
    results: dict[RunSpec, Result] = {}
    left_out: dict[RunSpec, Exception] = {}

    def keep(spec: RunSpec, result: Result) -> None:
        results[spec] = result
        on_result(spec, result)

    def leave_out(spec: RunSpec, reason: Exception) -> None:
        left_out[spec] = reason
        _log.warning("left out: %s", reason)

    for spec in unique:
        finished = finished_result(root / spec.folder_name(), spec)
        if finished is not None:
            keep(spec, finished)
    missing = [spec for spec in unique if spec not in results]

    if engine == "ray" and missing:
        from lrcnet_paper.training.ray_engine import run_on_ray

        run_on_ray(missing, root, data, progress, threads, loggers, address, keep, leave_out)
    else:
        for spec in missing:
            try:
                result = run_or_diverge(spec, root, data, progress, threads, loggers)
            except ERRORS_OF_ONE_RUN as error:
                leave_out(spec, error)
            else:
                keep(spec, result)
    if left_out:
        reasons = ", ".join(f"{spec.folder_name()} ({reason})" for spec, reason in left_out.items())
        raise RunsLeftError(f"{len(left_out)} of {len(unique)} runs were left out, the others are done: {reasons}")
    return [results[spec] for spec in unique]


def run_or_diverge(
    spec: RunSpec,
    out: Path,
    data: str | os.PathLike[str] | None,
    progress: bool,
    threads: int | None,
    loggers: tuple[str, ...],
) -> Result:
    """Train as `run` does, but return the result of a run that diverged: the other runs of a grid continue."""
    try:
        return run(spec, out, data, progress, threads=threads, loggers=loggers)
    except DivergenceError:
        return Result.read(out / spec.folder_name())
