"""Runs as Ray tasks. A worker or a node that dies costs only time: its run resumes elsewhere from the shared folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lrcnet.training.progress import Bar
from lrcnet.training.result import Result
from lrcnet.training.spec import RunSpec

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
) -> None:
    """Run all on a cluster and hand each result to `keep` as it comes in; see `run_all` for the arguments.

    Raises:
        RuntimeError: when a run's worker died more than `RETRIES` times.
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
    # Workers have other working folders than this process.
    place = os.fspath(out.resolve())
    files = None if data is None else os.fspath(Path(data).resolve())
    try:
        waiting = {task.remote(spec.as_dict(), place, files, cpus, loggers): spec for spec in specs}
        with Bar("runs", len(specs), 0, progress) as bar:
            while waiting:
                (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
                spec = waiting.pop(ready)
                try:
                    keep(spec, Result(**ray.get(ready)))
                except ray.exceptions.WorkerCrashedError as error:
                    raise RuntimeError(f"the workers of {spec.folder_name()} died {RETRIES + 1} times") from error
                except ray.exceptions.RayTaskError as error:
                    # The worker's own error, as it would have been raised here.
                    raise error.cause from None
                bar.step()
    finally:
        if ours:
            ray.shutdown()


def _work(spec: dict[str, Any], out: str, data: str | None, threads: int, loggers: tuple[str, ...]) -> dict[str, Any]:
    """One run on a worker; plain values in and out, so that both sides need the package only, not its exact version."""
    from dataclasses import asdict

    from lrcnet.training.grid import run_or_diverge

    return asdict(run_or_diverge(RunSpec.from_dict(spec), Path(out), data, False, threads, loggers))
