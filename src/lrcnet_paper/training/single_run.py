"""`run`: train one run in its folder, continue an interrupted one, or read the result of a finished one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.spawn import ProcessException

from lrcnet.errors import DivergenceError
from lrcnet.progress import shown_to_caller, status
from lrcnet_paper.tasks import find
from lrcnet_paper.training import run_folder
from lrcnet_paper.training.atomic_files import remove_leftovers
from lrcnet_paper.training.length import has_stalled, run_length
from lrcnet_paper.training.problems import problem_class
from lrcnet_paper.training.result import FILE_NAME, Result
from lrcnet_paper.training.spec import RunSpec

if TYPE_CHECKING:
    from lightning.fabric import Fabric

# Errors confined to one run that the user can fix; a grid leaves that run out and continues. They keep their type even
# when they come from another process, which reports them as text.
ERRORS_OF_ONE_RUN = (run_folder.BusyFolderError, run_folder.LongerRunError)


def run(
    spec: RunSpec,
    out: str | os.PathLike[str],
    data: str | os.PathLike[str] | None = None,
    progress: bool = True,
    *,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
) -> Result:
    """Train one run in the folder `out / spec.folder_name()`, or return its result if it is finished.

    A run that was killed continues from its last checkpoint and ends with the numbers of an uninterrupted one.

    Args:
        spec: the run.
        out: parent of the run folders.
        data: folder of the task's files; None searches `LRCNET_DATA`, then the cache.
        progress: whether to show a progress bar, if there is a terminal.
        threads: threads of torch; None for the number that the run was first started with. A new run then has 1 thread
            if it learns a trajectory, otherwise as many as torch chooses.
        loggers: names among "tensorboard", "wandb", "mlflow".

    Raises:
        DivergenceError: when a loss or a weight is not finite; the result then says "diverged", and so does a second
            call.
        ValueError: when the folder holds another run, or (LongerRunError) more of this one than was asked for.
        BusyFolderError: when another process is training this run.
    """
    folder = Path(out) / spec.folder_name()
    return run_in(folder, spec, data=data, progress=progress, threads=threads, loggers=loggers)


def run_in(
    folder: Path,
    spec: RunSpec,
    *,
    data: str | os.PathLike[str] | None = None,
    progress: bool = True,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
) -> Result:
    """Train one run as `run` does, in exactly this folder."""
    finished = finished_result(folder, spec)
    if finished is not None:
        # A process that was killed between its last two writes has left a part of the second one.
        remove_leftovers(folder)
        if finished.status == "diverged":
            raise DivergenceError(
                f"the run in {folder} diverged after {finished.epochs} {finished.unit}s; delete the folder to try it "
                "again"
            )
        return finished
    fabric = _make_fabric(spec)
    # Plain values in and out: launchers that start processes take arguments apart and cannot rebuild frozen classes.
    files = None if data is None else os.fspath(data)
    launch: Any = fabric.launch
    if spec.devices > 1:
        status("")  # the first of the other processes draws its own bar
    try:
        result = launch(_train_in_process, spec.as_dict(), os.fspath(folder), files, progress, threads, tuple(loggers))
    except ProcessException as error:
        # The error of the process that failed first arrives as text.
        kind, reason = _parse_error(error)
        if (folder / FILE_NAME).exists() and Result.read(folder).status == "diverged":
            raise DivergenceError(f"the run in {folder} diverged: {reason}") from error
        for known in ERRORS_OF_ONE_RUN:
            if kind == known.__name__:
                raise known(reason) from error
        raise RuntimeError(f"a process of the run in {folder} failed: {reason}") from error
    return Result.from_dict(result)


def _parse_error(error: ProcessException) -> tuple[str, str]:
    """Return the type's name and the message of the error that ended a process; no name if it was killed."""
    last = str(error).strip().splitlines()[-1]
    kind, _, message = last.partition(": ")
    is_error = message and kind.replace(".", "").isidentifier()
    return (kind.rpartition(".")[2], message) if is_error else ("", last)


def finished_result(folder: Path, spec: RunSpec) -> Result | None:
    """Return the result of a run that was trained as long as asked, stopped early or diverged; None if work is left.

    Raises:
        ValueError: when the folder holds another run.
    """
    run_folder.check_same_run(folder, spec)
    if not (folder / FILE_NAME).exists():
        return None
    result = Result.read(folder)
    task = find(spec.task, spec.variant)
    wanted = run_length(task, spec)
    stopped_early = result.epochs < wanted and has_stalled(task, result.epochs, result.best_epoch)
    return result if result.status == "diverged" or result.epochs == wanted or stopped_early else None


def _train_in_process(
    fabric: Fabric,
    content: dict[str, Any],
    path: str,
    data: str | None,
    progress: bool,
    threads: int | None,
    loggers: tuple[str, ...],
) -> dict[str, Any]:
    """Train in one process of a run. The function is at module level so that a launcher can send it to others."""
    from lrcnet_paper.training.fit import Fit

    spec, folder = RunSpec.from_dict(content), Path(path)
    # The first process holds the lock for all of them.
    lock = run_folder.lock_folder(folder) if fabric.is_global_zero else contextlib.nullcontext()
    threads = threads or run_folder.first_threads(folder) or default_threads(spec)
    with lock, use_threads(threads), shown_to_caller(progress and fabric.is_global_zero):
        return Fit(fabric, spec, folder, data, progress, loggers).run().as_dict()


def default_threads(spec: RunSpec) -> int | None:
    """Return the threads of a run if the user does not choose; None for torch's own choice."""
    return problem_class(find(spec.task, spec.variant)).default_threads


def _make_fabric(spec: RunSpec) -> Fabric:
    try:
        from lightning.fabric import Fabric
    except ImportError as error:
        raise ImportError(
            "training needs lightning, which is not installed; run: pip install 'lrcnet[train]'"
        ) from error
    if spec.devices == spec.nodes == 1:
        return Fabric(devices=1)
    # On one node the processes are spawned here; on several nodes the command is started once on each, from outside.
    return Fabric(devices=spec.devices, num_nodes=spec.nodes, strategy="ddp_spawn" if spec.nodes == 1 else "ddp")


@contextlib.contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Set the number of torch's threads for a block; None leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
