"""Runs as Ray tasks. If a worker or a node dies, its run resumes elsewhere from the shared folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lrcnet.progress import Bar
from lrcnet_paper.tasks.data_folders import ENVIRONMENT
from lrcnet_paper.training.grid import run_or_diverge
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.run_folder import first_threads
from lrcnet_paper.training.single_run import ERRORS_OF_ONE_RUN
from lrcnet_paper.training.spec import RunSpec

# Bounds the restarts of a run that kills its worker every time (by lack of memory, for example).
RETRIES = 20


def run_on_ray(
    specs: Sequence[RunSpec],
    out: Path,
    data: str | os.PathLike[str] | None,
    progress: bool,
    threads: int | None,
    loggers: tuple[str, ...],
    address: str | None,
    keep: Callable[[RunSpec, Result], None],
    leave_out: Callable[[RunSpec, Exception], None],
) -> None:
    """Train all runs on a cluster and pass each result to `keep` as it arrives; see `run_all` for the arguments.

    A run that must be left out (`ERRORS_OF_ONE_RUN`) is passed to `leave_out` with the reason.

    Raises:
        RuntimeError: when a run's worker died more than `RETRIES` times, or the cluster failed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError("engine 'ray' needs ray, which is not installed; run: pip install 'lrcnet[ray]'") from error
    starts_cluster = not ray.is_initialized()
    if starts_cluster:
        ray.init(address=address, log_to_driver=False)
    cpus = threads or 1
    task: Any = ray.remote(num_cpus=cpus, max_retries=RETRIES)(_train_on_worker)
    folder, files, named = _absolute(out), _absolute(data), _absolute(os.environ.get(ENVIRONMENT))
    try:
        waiting = {task.remote(spec.as_dict(), folder, files, named, threads, cpus, loggers): spec for spec in specs}
        with Bar("training on Ray", len(specs), unit="run", wanted=progress) as bar:
            while waiting:
                (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
                spec = waiting.pop(ready)
                try:
                    content = ray.get(ready)
                except ray.exceptions.WorkerCrashedError as error:
                    raise RuntimeError(f"the workers of {spec.folder_name()} died {RETRIES + 1} times") from error
                except ray.exceptions.RayTaskError as error:
                    # The cause is the worker's own error, as a local run would have raised it.
                    if not isinstance(error.cause, ERRORS_OF_ONE_RUN):
                        raise error.cause from None
                    leave_out(spec, error.cause)
                except ray.exceptions.RayError as error:
                    reason = " ".join(str(error).split())
                    raise RuntimeError(f"Ray could not run {spec.folder_name()}: {reason}") from error
                else:
                    keep(spec, Result.from_dict(content))
                bar.advance()
    finally:
        if starts_cluster:
            ray.shutdown()


def _absolute(path: str | os.PathLike[str] | None) -> str | None:
    """Make a path absolute: workers have other working folders than this process."""
    return os.fspath(Path(path).expanduser().resolve()) if path else None


def _train_on_worker(
    spec: dict[str, Any],
    out: str,
    data: str | None,
    named: str | None,
    threads: int | None,
    cpus: int,
    loggers: tuple[str, ...],
) -> dict[str, Any]:
    """Train one run on a worker.

    Plain values go in and out, so that both sides need the package, but not exactly the same version of it.
    """
    # The environment of a node is that of the process that started it, not of this run.
    if named is not None:
        os.environ[ENVIRONMENT] = named
    run = RunSpec.from_dict(spec)
    # A run that began elsewhere keeps its number of threads, which decides the last digits of its sums.
    count = threads or first_threads(Path(out) / run.folder_name()) or cpus
    return run_or_diverge(run, Path(out), data, False, count, loggers).as_dict()
