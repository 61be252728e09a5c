"""`run`: fit one run in its folder, go on with it where it was interrupted, or read the result that is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.spawn import ProcessException

from lrcnet.errors import DivergenceError
from lrcnet_paper.tasks import find
from lrcnet_paper.training import run_folder
from lrcnet_paper.training.problems import problem_class
from lrcnet_paper.training.result import FILE_NAME, Result
from lrcnet_paper.training.spec import RunSpec

if TYPE_CHECKING:
    from lightning.fabric import Fabric

# What a grid goes on after must be told apart even when it comes from another process.
PASSED_ON: dict[str, type[Exception]] = {
    "BusyFolderError": run_folder.BusyFolderError,
    "LongerRunError": run_folder.LongerRunError,
}


def run(
    spec: RunSpec,
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    progress: bool = True,
    *,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
) -> Result:
    """Fit one run in the folder `out / spec.folder_name()`, or give back its result if it is finished.

    A run that was killed goes on from its last checkpoint and ends with the numbers of an uninterrupted one.

    Args:
        spec: the run.
        out: the folder that holds the folders of runs.
        data: folder of the task's files; None looks where `LRCNET_DATA` points, then in the cache.
        progress: whether to show a progress bar, where there is a terminal.
        threads: for torch; the number a resumed run was started with, or torch's own choice, if None.
        loggers: names among "tensorboard", "wandb", "mlflow".

    Raises:
        DivergenceError: when a loss or a weight is not finite; the result then says "diverged", and so does a second
            call.
        ValueError: when the folder holds another run, or (LongerRunError) more of this one than was asked for.
        BusyFolderError: when another process is at this run.
    """
    place = Path(out) / spec.folder_name()
    return run_in(place, spec, data=data, progress=progress, threads=threads, loggers=loggers)


def run_in(
    place: Path,
    spec: RunSpec,
    *,
    data: str | os.PathLike[str] | None = None,
    progress: bool = True,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
) -> Result:
    """As `run`, in exactly this folder."""
    finished = finished_result(place, spec)
    if finished is not None:
        if finished.status == "diverged":
            raise DivergenceError(
                f"the run in {place} diverged after {finished.epochs} epochs; delete the folder to try it again"
            )
        return finished
    fabric = _fabric(spec)
    # Plain values in and out: launchers that start processes take apart, and cannot put together, frozen classes.
    files = None if data is None else os.fspath(data)
    launch: Any = fabric.launch
    try:
        result = launch(_process, spec.as_dict(), os.fspath(place), files, progress, threads, tuple(loggers))
    except ProcessException as error:
        # Of several processes one speaks for all, but only as text.
        kind, reason = _last_words(error)
        if (place / FILE_NAME).exists() and Result.read(place).status == "diverged":
            raise DivergenceError(f"the run in {place} diverged: {reason}") from error
        if kind in PASSED_ON:
            raise PASSED_ON[kind](reason) from error
        raise RuntimeError(f"a process of the run in {place} failed: {reason}") from error
    return Result.from_dict(result)


def _last_words(error: ProcessException) -> tuple[str, str]:
    """Name and message of the error that a process ended with; no name where the process was killed."""
    last = str(error).strip().splitlines()[-1]
    kind, _, message = last.partition(": ")
    is_error = message and kind.replace(".", "").isidentifier()
    return (kind.rpartition(".")[2], message) if is_error else ("", last)


def finished_result(place: Path, spec: RunSpec) -> Result | None:
    """The result of this run if it was trained as long as asked, or diverged; None if there is work left.

    Raises:
        ValueError: when the folder holds another run.
    """
    from lrcnet_paper.training.fit import length

    run_folder.check_same(place, spec)
    if not (place / FILE_NAME).exists():
        return None
    result = Result.read(place)
    wanted = length(find(spec.task, spec.variant), spec)
    return result if result.status == "diverged" or result.epochs == wanted else None


def _process(
    fabric: Fabric,
    content: dict[str, Any],
    path: str,
    data: str | None,
    progress: bool,
    threads: int | None,
    loggers: tuple[str, ...],
) -> dict[str, Any]:
    """One process of a run; at module level so that a launcher can send it to others."""
    from lrcnet_paper.training.fit import Fit

    spec, place = RunSpec.from_dict(content), Path(path)
    # The first process holds the folder for all of them.
    hold = run_folder.lock_folder(place) if fabric.is_global_zero else contextlib.nullcontext()
    with hold, _threads(threads or run_folder.first_threads(place) or default_threads(spec)):
        return Fit(fabric, spec, place, data, progress, loggers).run().as_dict()


def default_threads(spec: RunSpec) -> int | None:
    """Return the threads of a run if the user does not choose; None for torch's own choice."""
    return problem_class(find(spec.task, spec.variant)).default_threads


def _fabric(spec: RunSpec) -> Fabric:
    try:
        from lightning.fabric import Fabric
    except ImportError as error:
        raise ImportError(
            "training needs lightning, which is not installed; run: pip install 'lrcnet[train]'"
        ) from error
    if spec.devices == spec.nodes == 1:
        return Fabric(devices=1)
    # On one node processes are spawned from here; several nodes are started from outside, one command on each.
    return Fabric(devices=spec.devices, num_nodes=spec.nodes, strategy="ddp_spawn" if spec.nodes == 1 else "ddp")


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
