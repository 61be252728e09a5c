"""`train`: train a model on a task, both given by name, with the choices that `lrcnet train` offers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.driving import RECORDINGS
from lrcnet_paper.training.rate_search import search_learning_rate
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.run_folder import read_spec
from lrcnet_paper.training.single_run import finished_result, run_in
from lrcnet_paper.training.spec import RunSpec

RUNS_FOLDER = "runs"


def train(
    task: str,
    model: str,
    *,
    variant: str | None = None,
    schedule: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool | None = None,
    search_rate: bool = False,
    data: str | os.PathLike[str] | None = None,
    progress: bool = True,
    threads: int | None = None,
    loggers: tuple[str, ...] = (),
    on_rate: Callable[[float, Result | None], None] = lambda rate, result: None,
    on_folder: Callable[[Path, bool], None] = lambda folder, finished: None,
    **settings: Any,
) -> Result:
    """Train one model on one task, or continue the run where it was interrupted.

    Args:
        task: a name in `lrcnet_paper.tasks.TASKS`, a task of your own, or a file that defines one.
        model: a name in `lrcnet_paper.models.MODELS`.
        variant: variant of the task; None for its first one.
        schedule: schedule of the learning rate; None for the task's own.
        out: folder of the run, or with `search_rate` the folder of all runs; None for a folder below `runs`.
        resume: True insists on an existing run, False refuses one, None continues it if there is one.
        search_rate: whether to try the paper's three learning rates and keep the one of least validation loss.
        data, progress, threads, loggers: see `run`.
        on_rate: called with each rate of a search and its result, None where it diverged.
        on_folder: called with the folder of the run before it starts, and whether it was finished before; a search
            calls it with the folder of the best run at its end.
        settings: further fields of `RunSpec`, such as seed=1 or epochs=100.

    Raises:
        ValueError: for an unknown name or a choice that does not fit the task or the folder.
        TypeError: for a setting that `RunSpec` does not have.
        DivergenceError: when a loss or a weight is not finite.

    Example:
        `train("neural-ode", "lrc-s", variant="duffing", iterations=4000)` is the call behind
        `lrcnet train neural-ode --variant duffing --model lrc-s --iterations 4000`.
    """
    description = find(task, variant or (RECORDINGS if task == "driving" and data is not None else None))
    if data is not None and not description.files and not description.takes_data:
        raise ValueError(
            f"{description.name}/{description.variant} makes its own data and reads no files, but --data is given; "
            f"leave it out{f', or use --variant {RECORDINGS}' if task == 'driving' else ''}"
        )
    schedule = schedule or description.recipe.schedule
    spec = RunSpec(description.name, description.variant, model, schedule=schedule, **settings)
    if not search_rate:
        folder = Path(out or Path(RUNS_FOLDER) / spec.folder_name())
        _check_resume(folder, resume)
        on_folder(folder, finished_result(folder, spec) is not None)
        return run_in(folder, spec, data=data, progress=progress, threads=threads, loggers=loggers)
    if spec.learning_rate is not None:
        raise ValueError("--search-lr tries its own rates, but --lr was given; leave one of them out")
    if resume is not None:
        flag = "--resume" if resume else "--no-resume"
        raise ValueError(f"--search-lr always continues existing runs, but {flag} was given; leave it out")
    rate, result = search_learning_rate(
        spec, out or RUNS_FOLDER, data, progress=progress, threads=threads, loggers=loggers, on_result=on_rate
    )
    on_folder(Path(out or RUNS_FOLDER) / spec.with_(learning_rate=rate).folder_name(), False)
    return result


def _check_resume(folder: Path, resume: bool | None) -> None:
    exists = read_spec(folder) is not None
    if resume is True and not exists:
        raise ValueError(f"--resume needs a run to continue, but there is none in {folder}; leave --resume out")
    if resume is False and exists:
        raise ValueError(f"--no-resume was given, but there is a run in {folder}; choose another folder with --out")
