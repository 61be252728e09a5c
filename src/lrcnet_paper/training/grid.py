"""A grid of runs, one after the other here or on a Ray cluster; what is finished is not run again."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from lrcnet.errors import DivergenceError, one_of
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.run_folder import BusyFolderError, LongerRunError
from lrcnet_paper.training.single_run import finished_result, run
from lrcnet_paper.training.spec import RunSpec

ENGINES = ("local", "ray")
# What concerns one run only and is mended outside: the others go on.
LEAVING = (BusyFolderError, LongerRunError)
_log = logging.getLogger("lrcnet")
Told = Callable[[RunSpec, Result], None]


class RunsLeftError(RuntimeError):
    """A grid came to its end but left runs out; the message names them with the reasons."""


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
    on_result: Told = lambda spec, result: None,
) -> list[Result]:
    """The results of many runs; only the missing ones are run, and interrupted ones go on where they were.

    Args:
        specs: the runs; one that occurs twice is run once.
        out: holds one folder per run; on a cluster a folder that every node sees.
        data: see `run`; on a cluster every node must see it.
        engine: "local" runs them one after the other in this process, "ray" on a cluster.
        progress: whether to show progress bars, where there is a terminal.
        threads: per run; see `run`. On Ray it is also the number of CPUs that a run takes there, 1 if None, and a run
            that begins there then has 1 thread.
        loggers: names among "tensorboard", "wandb", "mlflow".
        address: of a Ray cluster that is already there; None starts one on this machine.
        on_result: told each run and its result as soon as it is there, in the order in which they finish.

    Returns:
        One result per run, in the order given. A run that diverged is among them, with that status.

    Raises:
        ValueError: for an unknown engine, or a run folder that holds another run.
        RunsLeftError: after all other runs, when another process was at a run, or a folder held more of it than was
            asked for.
    """
    one_of("engine", engine, ENGINES)
    unique = list(dict.fromkeys(specs))
    root = Path(out)
    found: dict[RunSpec, Result] = {}
    for spec in unique:
        there = finished_result(root / spec.folder_name(), spec)
        if there is not None:
            found[spec] = there
            on_result(spec, there)
    missing = [spec for spec in unique if spec not in found]

    def keep(spec: RunSpec, result: Result) -> None:
        found[spec] = result
        on_result(spec, result)

    left: dict[RunSpec, Exception] = {}

    def leave(spec: RunSpec, reason: Exception) -> None:
        left[spec] = reason
        _log.warning("left out: %s", reason)

    if engine == "ray" and missing:
        from lrcnet_paper.training.ray_engine import run_on_ray

        run_on_ray(missing, root, data, progress, threads, loggers, address, keep, leave)
    else:
        for spec in missing:
            try:
                result = run_or_diverge(spec, root, data, progress, threads, loggers)
            except LEAVING as error:
                leave(spec, error)
            else:
                keep(spec, result)
    if left:
        told = ", ".join(f"{spec.folder_name()} ({reason})" for spec, reason in left.items())
        raise RunsLeftError(f"{len(left)} of {len(unique)} runs were left out, the others are done: {told}")
    return [found[spec] for spec in unique]


def run_or_diverge(
    spec: RunSpec,
    out: Path,
    data: str | os.PathLike[str] | None,
    progress: bool,
    threads: int | None,
    loggers: tuple[str, ...],
) -> Result:
    """As `run`, but a run that diverges gives its result instead of an error: in a grid the others go on."""
    try:
        return run(spec, out, data, progress, threads=threads, loggers=loggers)
    except DivergenceError:
        return Result.read(out / spec.folder_name())
