"""Tasks of a user: from a Python file, from an entry point of an installed package, or registered by a program.

A file is only executed if the user names it, on the command line or in the variable LRCNET_TASKS (several are separated
as in PATH). It defines `TASK`, a task, or `TASKS`, several. An entry point of the group `lrcnet.tasks` is such an
object.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from lrcnet.errors import one_of
from lrcnet.plugins import find_entry_points

from .losses_and_metrics import accuracy, cross_entropy
from .task import DataPath, Measure, Recipe, SampleSet, Task

VARIABLE = "LRCNET_TASKS"
Target = Literal["label-per-step", "label-per-sequence"]
_REGISTERED: dict[str, dict[str, Task]] = {}


def make_task(
    name: str,
    read: Callable[[str, DataPath | None], SampleSet],
    *,
    kind: Target,
    input_size: int,
    output_size: int,
    length: int,
    splits: Mapping[str, int],
    irregular: bool = False,
    loss: Measure = cross_entropy,
    metrics: Mapping[str, Measure] | None = None,
    maximise: bool = True,
    recipe: Recipe | None = None,
    title: str = "",
) -> Task:
    """Describe a task of sequences in few words; `Task` explains the fields.

    Args:
        name: name of the task, as in `lrcnet train NAME`.
        read: called with a split and the folder of --data; returns its `Samples`.
        kind: whether each step or each sequence has a target.
        input_size, output_size: number of features of an input, and of logits.
        length: number of steps of the sequences.
        splits: "train" and "test", and "validation" if there is one, with their numbers of samples.
        irregular: whether the samples have a dt.
        loss, metrics, maximise: cross-entropy and accuracy by default.
        recipe: hyper-parameters; by default Adam at 0.01 for 20 epochs.
        title: one line for people.
    """
    one_of("kind", kind, ("label-per-step", "label-per-sequence"))
    reported: Literal["last", "best-validation"] = "best-validation" if "validation" in splits else "last"
    return Task(
        name=name,
        variant="own",
        variants=("own",),
        title=title or name,
        kind=kind,
        input_size=input_size,
        vocabulary=0,
        output_size=output_size,
        length=length,
        splits=splits,
        irregular=irregular,
        negative_dt="error",
        loss=loss,
        metrics={"accuracy": accuracy} if metrics is None else metrics,
        maximise=maximise,
        recipe=recipe or Recipe("adam", 0.01, None, 1e-8, 32, 20, None, reported),
        citation="",
        licence="",
        notes="a task of the user",
        reader=lambda _, split, data: read(split, _check_data(data)),
        takes_data=True,
    )


def _check_data(data: DataPath | None) -> DataPath | None:
    if data is not None and not Path(data).exists():
        raise FileNotFoundError(f"--data must name a file or a folder, but {data} does not exist; check the path")
    return data


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error of outputs (sample, ..., k) against targets of that shape; for regression."""
    if output.shape != target.shape:
        raise ValueError(f"output must have the target's shape {tuple(target.shape)}; got {tuple(output.shape)}")
    return torch.nn.functional.mse_loss(output, target)


def register(*tasks: Task) -> None:
    """Add tasks, so that `find` knows them by name in this process.

    Raises:
        TypeError: if one of them is no task.
    """
    for task in tasks:
        if not isinstance(task, Task):
            raise TypeError(f"a registered task must be a Task, but is a {type(task).__name__}; see make_task")
        _REGISTERED.setdefault(task.name, {})[task.variant] = task


def find_own(name: str) -> dict[str, Task] | None:
    """Return the variants of a user's task by name, or None; a name that ends with .py is a file to read first."""
    if name.endswith(".py"):
        tasks = _read_file(str(Path(name).resolve()))
        register(*tasks)
        # Processes that this one starts find the task by its name.
        paths = [path for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
        os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*paths, str(Path(name).resolve())]))
        return _REGISTERED[tasks[0].name]
    if name not in _REGISTERED:
        for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
            register(*_read_file(path))
        points = find_entry_points("lrcnet.tasks")
        if name in points:
            register(*_as_tasks(points[name].load(), f"entry point {name!r}"))
    return _REGISTERED.get(name)


def own_names() -> list[str]:
    """Return the names of the tasks that are registered or offered by entry points."""
    return list(dict.fromkeys([*_REGISTERED, *find_entry_points("lrcnet.tasks")]))


@lru_cache(maxsize=32)
def _read_file(path: str) -> tuple[Task, ...]:
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"a file of tasks must exist, but {file} does not; check the path, or {VARIABLE}")
    spec = importlib.util.spec_from_file_location(f"lrcnet_own_tasks_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    given = getattr(module, "TASK", None) or getattr(module, "TASKS", None)
    if given is None:
        raise ValueError(f"a file of tasks must define TASK or TASKS, but {file.name} defines neither; see make_task")
    return _as_tasks(given, file.name)


def _as_tasks(given: Any, where: str) -> tuple[Task, ...]:
    tasks: Iterable[Any] = [given] if isinstance(given, Task) else given
    values = tuple(tasks.values() if isinstance(tasks, Mapping) else tasks)
    if not values or not all(isinstance(task, Task) for task in values):
        raise ValueError(f"{where} must hold one task or several, but holds {given!r}; see make_task")
    return values
