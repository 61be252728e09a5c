"""The length of a run: the number of epochs or iterations it trains for."""

from __future__ import annotations

from lrcnet_paper.tasks import Task
from lrcnet_paper.training.spec import RunSpec


def run_length(task: Task, spec: RunSpec) -> int:
    """Return the length of a run in the task's unit, epochs or iterations.

    Raises:
        ValueError: if the run states its length in the other unit.
    """
    in_iterations = task.recipe.epochs is None
    wanted, other = (spec.iterations, spec.epochs) if in_iterations else (spec.epochs, spec.iterations)
    if other is not None:
        unit, wrong = ("iterations", "epochs") if in_iterations else ("epochs", "iterations")
        raise ValueError(f"{task.name} is counted in {unit}, but {wrong}={other} was given; give {unit}")
    default = task.recipe.iterations if in_iterations else task.recipe.epochs
    assert default is not None, "a recipe states epochs or iterations"
    return default if wanted is None else wanted


def has_stalled(task: Task, done: int, best: int) -> bool:
    """Tell whether a run stops early after `done` units, because its best validation was after `best` units.

    It does if the task's recipe has a patience and no evaluation since the best one was better.
    """
    recipe = task.recipe
    return recipe.patience is not None and done - best >= recipe.patience * recipe.evaluate_every
