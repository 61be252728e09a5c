"""A result as a few lines of text for a terminal."""

from __future__ import annotations

import shlex
from pathlib import Path

from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.own_tasks import VARIABLE
from lrcnet_paper.training.metric_text import format_metric
from lrcnet_paper.training.rate_search import LOSS
from lrcnet_paper.training.result import Result

# The command that shows most of a trained network, by the kind of its task.
NEXT = {
    "steering": "lrcnet drive {folder} --html drive.html",
    "trajectory": "lrcnet report {parent} --html report.html",
}


def format_result(result: Result) -> str:
    """Format a result as one line per fact and metric."""
    rows = {
        "task": f"{result.task} {result.spec.label()}",
        "model": f"{result.model}, {result.parameters:,} parameters, seed {result.seed}",
        "trained": f"{result.epochs} {result.unit}s, {result.seconds_per_epoch:.4g} s each; "
        f"reported: {result.best_epoch}",
        **{name: f"{value:.6g}" for name, value in result.metrics.items()},
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows.items())


def format_run(result: Result, folder: Path, finished_before: bool, file: str | None = None) -> str:
    """Format the end of a run: its numbers, the reported metric in its unit, the folder, the command to go on with.

    Args:
        result: of the run.
        folder: of the run.
        finished_before: whether nothing was trained.
        file: of a task of the user, which other commands find by a variable.
    """
    task = find(result.task, result.variant)
    value = result.metrics.get(task.metric)
    headline = result.status if value is None else format_metric(task.metric, value)
    before = "this run was finished before; nothing was trained\n" if finished_before else ""
    command = NEXT.get(task.kind, "lrcnet explain {folder} --html inside.html")
    command = command.format(folder=folder, parent=folder.parent)
    command = command if file is None else f"{VARIABLE}={shlex.quote(file)} {command}"
    return f"{format_result(result)}\n\n{before}{headline}, in {folder}\nnext: {command}"


def format_rate(rate: float, result: Result | None) -> str:
    """Format the outcome of one learning rate of a search; None is a run that diverged."""
    outcome = "diverged" if result is None else f"validation loss {result.metrics[LOSS]:.4f}"
    return f"learning rate {rate:g}: {outcome}"
