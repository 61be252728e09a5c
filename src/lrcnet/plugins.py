"""Commands, benchmarks and run-folder readers that other packages register as entry points.

The library never names the packages that extend it. A package registers an object under one of the groups below in its
own metadata, and the library finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from lrcnet.errors import suggest

Group = Literal["lrcnet.commands", "lrcnet.benchmarks", "lrcnet.readers", "lrcnet.tasks"]


def find_entry_points(group: Group) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order in which their packages list them."""
    return {point.name: point for point in entry_points(group=group)}


def load(what: str, name: str, points: dict[str, EntryPoint]) -> Any:
    """Import a registered object.

    Raises:
        ValueError: if no package registers the name; the message lists the valid names.
    """
    if name not in points:
        raise ValueError(f"{what} must be one of {_join_names(points)}, but is {name!r}; {suggest(name, points)}")
    return points[name].load()


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none (no package registers any)"
