"""Downloads of a task's files from their official sources, checked and unpacked; a file is complete or absent.

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
from .data_folders import ENVIRONMENT, cache_folder, search_path
from .sources import RemoteFile, Source, find_source
from .unpack import unpack

_TIMEOUT = 60  # seconds to wait for an answer
_SCRATCH = ".downloading-"
_ABANDONED = 24 * 3600  # seconds without a change: no running download waits that long


class DownloadError(OSError):
    """A file could not be downloaded from any of its addresses; the message has one reason per address."""


def checksum_of(path: Path, algorithm: str) -> str:
    """Return the file's checksum as "algorithm:hex"."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"


def is_intact(path: Path, checksum: str) -> bool:
    """Tell whether a file exists and has the checksum, "sha256:..." or "md5:..."; "" stands for any content."""
    return path.is_file() and (not checksum or checksum_of(path, checksum.partition(":")[0]) == checksum)


def _import_pooch(progress: bool) -> Any:
    needed = ["pooch", "tqdm"] if progress else ["pooch"]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"downloading needs {' and '.join(missing)}; install with `pip install lrcnet[data]`"
            + (", or ask for no progress bar" if missing == ["tqdm"] else "")
        )
    pooch = importlib.import_module("pooch")
    # Its log lines would break the progress bar; every failure arrives here as an exception anyway.
    pooch.get_logger().setLevel("ERROR")
    return pooch


@contextmanager
def _scratch_folder(folder: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=folder))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _last_change(folder: Path) -> float:
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def _remove_abandoned(folder: Path) -> None:
    """Delete the scratch folders of killed downloads; those of a running download are younger."""
    for scratch in folder.glob(f"{_SCRATCH}*"):
        try:
            if time.time() - _last_change(scratch) > _ABANDONED:
                shutil.rmtree(scratch)
        except FileNotFoundError:  # another process finished, or deleted the same folder
            continue


def _fetch(file: RemoteFile, url: str, target: Path, progress: bool) -> None:
    pooch = _import_pooch(progress)
    is_archive = url.endswith(".zip") and not file.name.endswith(".zip")
    with _scratch_folder(target.parent) as scratch:
        name = "archive.zip" if is_archive else file.name
        downloader = pooch.HTTPDownloader(progressbar=progress, timeout=_TIMEOUT)
        # Publishers repack their archives, so the file inside is checked instead of the archive.
        checksum = None if is_archive else file.checksum or None
        fetched = Path(pooch.retrieve(url, checksum, fname=name, path=scratch, downloader=downloader))
        if not is_archive:
            fetched.replace(target)
            return
        with unpack(fetched, scratch) as content:
            matches = sorted(path for path in content.rglob(file.name) if path.is_file())
            if not matches:
                raise ValueError(f"the archive must hold {file.name} and does not")
            given = checksum_of(matches[0], file.checksum.partition(":")[0])
            if given != file.checksum:
                raise ValueError(f"{file.name} must have the checksum {file.checksum} and has {given}")
            matches[0].replace(target)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _download_file(file: RemoteFile, folder: Path, progress: bool) -> None:
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
        f"{file.name} could not be downloaded, and nothing was kept ({'; '.join(reasons)}); try again later, or put "
        f"the file into {folder} by hand"
    )


def target_folder(origin: Source, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that `get` fills: below the argument, else `LRCNET_DATA`, else the user's cache."""
    root = folder if folder is not None else os.environ.get(ENVIRONMENT) or cache_folder()
    return Path(root).expanduser() / origin.folder


def file_states(task: str, folder: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Return the state of each official file of a task: "intact", "other" (a wrong checksum) or "missing".

    Searches where a task searches for its data: in `folder`, or in `LRCNET_DATA` and then the cache if it is None.
    """
    origin = find_source(task)
    folders = [parent for root in search_path(folder) for parent in (root / origin.folder, root)]
    states = {}
    for file in origin.files:
        present = [parent / file.name for parent in folders if (parent / file.name).exists()]
        intact = any(is_intact(path, file.checksum) for path in present)
        states[file.name] = "intact" if intact else "other" if present else "missing"
    return states


def available_variants(task: str, folder: str | os.PathLike[str] | None = None) -> list[str]:
    """List the variants of a task whose files exist, official or not; searches where `file_states` searches."""
    return [name for name in find(task).variants if find(task, name).available(folder)]


def get(task: str, folder: str | os.PathLike[str] | None = None, *, progress: bool = True) -> Path:
    """Download a task's files; intact files are kept.

    A file appears under its name only when it is complete and its checksum is right. An existing file with a wrong
    checksum is replaced.

    Args:
        task: a name in `SOURCES`.
        folder: data folder to fill; None for `LRCNET_DATA`, else the user's cache folder.
        progress: whether to show a progress bar for each file.

    Returns:
        The folder that now holds the files.

    Raises:
        ValueError: for a task without files.
        ImportError: when pooch or tqdm is missing.
        DownloadError: when a file cannot be downloaded; no part of it is kept.
    """
    origin = find_source(task)
    target = target_folder(origin, folder)
    _import_pooch(progress)
    target.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(target)
    for file in origin.files:
        _download_file(file, target, progress)
    return target
