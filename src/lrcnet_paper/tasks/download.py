"""Fetches a task's files from their official sources: checked, unpacked where needed, never half there.

Needs pooch and, for the bar, tqdm: `pip install lrcnet[data]`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import find
from .sources import ENVIRONMENT, RemoteFile, Source, cache_folder, search_path, source
from .unpack import unpacked

_TIMEOUT = 60  # seconds without an answer
_SCRATCH = ".downloading-"
_ABANDONED = 24 * 3600  # seconds without a change: no download that is alive waits that long


class DownloadError(OSError):
    """A file could not be fetched from any of its addresses; the message has one reason per address."""


def checksum_of(path: Path, algorithm: str) -> str:
    """The file's checksum as "algorithm:hex"."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def is_intact(path: Path, checksum: str) -> bool:
    """Whether a file exists and has the checksum, "sha256:..." or "md5:..."."""
    return path.is_file() and checksum_of(path, checksum.partition(":")[0]) == checksum


def _pooch(progress: bool) -> Any:
    needed = ["pooch", "tqdm"] if progress else ["pooch"]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"downloading needs {' and '.join(missing)}; install with `pip install lrcnet[data]`"
            + (", or ask for no progress bar" if missing == ["tqdm"] else "")
        )
    pooch = importlib.import_module("pooch")
    # Its notices would tear the progress bar apart; whatever goes wrong arrives here as an exception.
    pooch.get_logger().setLevel("ERROR")
    return pooch


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=folder))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _last_change(folder: Path) -> float:
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def _remove_abandoned(folder: Path) -> None:
    """Deletes what downloads that were killed left behind; those of a process that is still at it are younger."""
    for scratch in folder.glob(f"{_SCRATCH}*"):
        try:
            if time.time() - _last_change(scratch) > _ABANDONED:
                shutil.rmtree(scratch)
        except FileNotFoundError:  # another process ended, or cleared away the same one
            continue


def _fetch(file: RemoteFile, url: str, target: Path, progress: bool) -> None:
    pooch = _pooch(progress)
    is_archive = url.endswith(".zip") and not file.name.endswith(".zip")
    with _scratch(target.parent) as scratch:
        name = "archive.zip" if is_archive else file.name
        downloader = pooch.HTTPDownloader(progressbar=progress, timeout=_TIMEOUT)
        # The checksum of an archive says nothing: publishers repack them. Its content is checked instead.
        known = None if is_archive else file.checksum
        fetched = Path(pooch.retrieve(url, known, fname=name, path=scratch, downloader=downloader))
        if not is_archive:
            fetched.replace(target)
            return
        with unpacked(fetched, scratch) as content:
            found = sorted(path for path in content.rglob(file.name) if path.is_file())
            if not found:
                raise ValueError(f"the archive must hold {file.name} and does not")
            given = checksum_of(found[0], file.checksum.partition(":")[0])
            if given != file.checksum:
                raise ValueError(f"{file.name} must have the checksum {file.checksum} and has {given}")
            found[0].replace(target)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _get_file(file: RemoteFile, folder: Path, progress: bool) -> None:
    target = folder / file.name
    if is_intact(target, file.checksum):
        return
    reasons = []
    for url in file.urls:
        try:
            _fetch(file, url, target, progress)
            return
        except (OSError, ValueError) as error:  # requests' errors are OSErrors, a wrong checksum is a ValueError
            reasons.append(f"{url}: {_reason(error)}")
    raise DownloadError(
        f"{file.name} could not be fetched, and nothing was kept ({'; '.join(reasons)}); try again later, or put the "
        f"file into {folder} by hand"
    )


def target_folder(origin: Source, folder: str | os.PathLike[str] | None = None) -> Path:
    """Where `get` puts a source's files: below the argument, else `LRCNET_DATA`, else the user's cache."""
    root = folder if folder is not None else os.environ.get(ENVIRONMENT) or cache_folder()
    return Path(root).expanduser() / origin.folder


def status(task: str, folder: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """What is here of a task's official files: file name -> "intact", "other" (a wrong checksum) or "missing".

    Looks where a task looks for its data, so in `LRCNET_DATA` and in the cache if no folder is given.
    """
    origin = source(task)
    places = [place for root in search_path(folder) for place in (root / origin.folder, root)]
    result = {}
    for file in origin.files:
        present = [place / file.name for place in places if (place / file.name).exists()]
        intact = any(is_intact(path, file.checksum) for path in present)
        result[file.name] = "intact" if intact else "other" if present else "missing"
    return result


def readable(task: str, folder: str | os.PathLike[str] | None = None) -> list[str]:
    """The variants of a task whose files are here, official or not; looks where `status` looks."""
    return [name for name in find(task).variants if find(task, name).available(folder)]


def get(task: str, folder: str | os.PathLike[str] | None = None, *, progress: bool = True) -> Path:
    """Downloads a task's files; those that are there and intact are left alone.

    A file appears under its name only when it is complete and its checksum is right. One that is there with a wrong
    checksum is replaced.

    Args:
        task: a name in `SOURCES`.
        folder: data folder to fill; None takes `LRCNET_DATA`, else the user's cache folder.
        progress: shows a bar for each file.

    Returns:
        The folder that now holds the files.

    Raises:
        ValueError: for a task without files.
        ImportError: when pooch or tqdm is missing.
        DownloadError: when a file cannot be had; nothing of it is left.
    """
    origin = source(task)
    target = target_folder(origin, folder)
    _pooch(progress)
    target.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target)
    for file in origin.files:
        _get_file(file, target, progress)
    return target
