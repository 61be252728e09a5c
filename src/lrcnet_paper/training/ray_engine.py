"""Runs as Ray tasks. A worker or a node that dies costs only time: its run resumes elsewhere from the shared folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lrcnet_paper.tasks.data_folders import ENVIRONMENT
from lrcnet_paper.training.grid import LEAVING, run_or_diverge
from lrcnet_paper.training.progress_bar import ProgressBar
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.run_folder import first_threads
from lrcnet_paper.training.spec import RunSpec

# A run that kills its worker again and again (out of memory, say) must end at some time.
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
    leave: Callable[[RunSpec, Exception], None],
) -> None:
    """Run all on a cluster and hand each result to `keep` as it comes in; see `run_all` for the arguments.

    A run that must be left out (`LEAVING`) goes to `leave` with the reason.

    Raises:
        RuntimeError: when a run's worker died more than `RETRIES` times, or the cluster failed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError("engine 'ray' needs ray, which is not installed; run: pip install 'lrcnet[ray]'") from error
    ours = not ray.is_initialized()
    if ours:
        ray.init(address=address, log_to_driver=False)
    cpus = threads or 1
    task: Any = ray.remote(num_cpus=cpus, max_retries=RETRIES)(_work)
    place, files, named = _absolute(out), _absolute(data), _absolute(os.environ.get(ENVIRONMENT))
    try:
        waiting = {task.remote(spec.as_dict(), place, files, named, threads, cpus, loggers): spec for spec in specs}
        with ProgressBar("runs", len(specs), 0, progress) as bar:
            while waiting:
                (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
                spec = waiting.pop(ready)
                try:
                    content = ray.get(ready)
                except ray.exceptions.WorkerCrashedError as error:
                    raise RuntimeError(f"the workers of {spec.folder_name()} died {RETRIES + 1} times") from error
                except ray.exceptions.RayTaskError as error:
                    # The worker's own error, as it would have been raised here.
                    if not isinstance(error.cause, LEAVING):
                        raise error.cause from None
                    leave(spec, error.cause)
                except ray.exceptions.RayError as error:
                    reason = " ".join(str(error).split())
                    raise RuntimeError(f"Ray could not run {spec.folder_name()}: {reason}") from error
                else:
                    keep(spec, Result.from_dict(content))
                bar.step()
    finally:
        if ours:
            ray.shutdown()


def _absolute(path: str | os.PathLike[str] | None) -> str | None:
    """Workers have other working folders than this process."""
    return os.fspath(Path(path).expanduser().resolve()) if path else None


def _work(
    spec: dict[str, Any],
    out: str,
    data: str | None,
    named: str | None,
    threads: int | None,
    cpus: int,
    loggers: tuple[str, ...],
) -> dict[str, Any]:
    """One run on a worker; plain values in and out, so that both sides need the package only, not its exact version."""
    # The node's own environment is that of whoever started it.
    if named is not None:
        os.environ[ENVIRONMENT] = named
    run = RunSpec.from_dict(spec)
    # A run that began elsewhere keeps its thread count, which decides the last digits of its sums.
    count = threads or first_threads(Path(out) / run.folder_name()) or cpus
    return run_or_diverge(run, Path(out), data, False, count, loggers).as_dict()
