"""The benchmarks: their data, losses, metrics and the paper's hyper-parameters, independent of any network.

`TASKS` maps each name to the task in its default variant; `find` returns any variant.
"""

from collections.abc import Mapping
from types import MappingProxyType

from lrcnet.errors import one_of, suggest

from . import driving, event_mnist, imdb, neural_ode, person, physionet, psmnist, thinned, uea, xor
from .own_tasks import VARIABLE, find_own, make_task, own_names, register, squared_error
from .task import Recipe, Samples, SampleSet, Task

_OF_THE_PAPER: dict[str, dict[str, Task]] = {
    "neural-ode": neural_ode.VARIANTS,
    "person": person.VARIANTS,
    "imdb": imdb.VARIANTS,
    "psmnist": psmnist.VARIANTS,
    "driving": driving.VARIANTS,
}
_BENCHMARKS: dict[str, dict[str, Task]] = {
    **_OF_THE_PAPER,
    "xor": xor.VARIANTS,
    "event-mnist": event_mnist.VARIANTS,
    "physionet": physionet.VARIANTS,
    "thinned": thinned.VARIANTS,
    "uea": uea.VARIANTS,
}

TASKS: Mapping[str, Task] = MappingProxyType({name: next(iter(v.values())) for name, v in _BENCHMARKS.items()})
"""name -> task, in its default variant."""

PAPER_TASKS = frozenset(_OF_THE_PAPER)
"""The names of the paper's own benchmarks; all others go beyond it."""


def find(name: str, variant: str | None = None) -> Task:
    """Return a task by name.

    Args:
        name: a key of `TASKS`, a task of your own (see `own_tasks.py`), or a file that defines one.
        variant: one of the task's `variants`; None for the first.

    Raises:
        ValueError: for an unknown name or variant; the message lists the valid ones.

    Example:
        >>> find("person", "coarse").splits["test"]
        1942
    """
    variants = _BENCHMARKS.get(name) or find_own(name)
    if variants is None:
        names = [*_BENCHMARKS, *own_names()]
        listed = ", ".join(names)
        raise ValueError(
            f"task must be one of {listed}, or a file that defines one, but is {name!r}; {suggest(name, names)}, or "
            f"name the file of a task of your own in the variable {VARIABLE}"
        )
    if variant is None:
        return next(iter(variants.values()))
    return variants[one_of(f"variant of {name}", variant, variants)]


def is_known(name: str) -> bool:
    """Return whether `find` knows a task by this name."""
    return name in _BENCHMARKS or find_own(name) is not None


__all__ = [
    "TASKS",
    "Recipe",
    "SampleSet",
    "Samples",
    "Task",
    "find",
    "is_known",
    "make_task",
    "register",
    "squared_error",
]
