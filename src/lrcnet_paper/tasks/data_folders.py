"""The search for the local files of a task.

A data folder has one folder per source (`mnist`, `imdb`, `person_activity`). The data folders are searched in this
order: the argument, the environment variable `LRCNET_DATA`, the user's cache folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .sources import find_source

ENVIRONMENT = "LRCNET_DATA"


def cache_folder() -> Path:
    """Return the user's cache folder for this library, whether or not it exists."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "lrcnet"


def search_path(data: str | os.PathLike[str] | None = None) -> list[Path]:
    """List the data folders to search, in this order, whether or not they exist."""
    # An explicit folder is the only one searched: a fallback would train on other data than the user asked for.
    if data is not None:
        return [Path(data).expanduser()]
    named = os.environ.get(ENVIRONMENT)
    return ([Path(named).expanduser()] if named else []) + [cache_folder()]


def _missing_file(task: str, names: Iterable[str], searched: Sequence[Path]) -> FileNotFoundError:
    folders = ", ".join(str(folder) for folder in searched)
    return FileNotFoundError(
        f"the task {task!r} needs {' or '.join(names)}, which is not in {folders}; get the official files with "
        f"`lrcnet data get {task}`, or point --data or {ENVIRONMENT} to a folder that has them "
        f"(in it, or in its folder {find_source(task).folder!r})"
    )


def find_file(task: str, names: Sequence[str], data: str | os.PathLike[str] | None = None) -> Path:
    """Return the first of several files (or folders) that exists.

    Args:
        task: a name in `SOURCES`.
        names: file names in order of preference.
        data: a data folder, the task's own folder, or one of these files itself; None searches `LRCNET_DATA`, then the
            cache.

    Raises:
        ValueError: for a task without files.
        FileNotFoundError: when none of them exists; the message says how to get them.
    """
    folder = find_source(task).folder
    roots = search_path(data)
    for root in roots:
        if data is not None and root.name in names and root.exists():
            return root
        for parent in (root / folder, root):
            for name in names:
                if (parent / name).exists():
                    return parent / name
    raise _missing_file(task, names, roots)


def find_files(
    task: str, groups: Iterable[Sequence[str]], data: str | os.PathLike[str] | None = None
) -> tuple[Path, ...]:
    """Find one file (or folder) of each group, as `find_file` does.

    If `data` is one of the files itself, the files of the other groups may lie beside it.

    Args:
        task: a name in `SOURCES`.
        groups: for each file, its names in order of preference.
        data: as in `find_file`.

    Raises:
        FileNotFoundError: when a group has no file; the message says how to get it.
    """
    paths: list[Path] = []
    for names in groups:
        try:
            paths.append(find_file(task, names, data))
        except FileNotFoundError:
            if data is None or not paths:
                raise
            paths.append(find_file(task, names, paths[0].parent))
    return tuple(paths)
