"""Atomic writes: a temporary file in the same folder is flushed to disk, then renamed, so no file is ever partial."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

# Environment variable: seconds to wait in the middle of every write, so that a test can kill a process there.
PAUSE = "LRCNET_PAUSE_IN_WRITE"


def write_atomically(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Replace a file by new content; a kill at any moment leaves either the old or the new file.

    Args:
        path: the file; its folder must exist.
        fill: writes the content into the open binary file that it is called with.
    """
    # One name per process: two processes that write the same file by mistake must not mix their bytes.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            fill(file)
            file.flush()
            _pause()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno and error.filename is None:
            # A full disk is found while writing, when the system no longer knows the file's name.
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
    _flush_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically, in UTF-8, with the line ends of the text."""
    write_atomically(path, lambda file: file.write(text.encode()))


def write_json(path: Path, content: Any) -> None:
    """Replace a JSON file atomically; NaN and infinities, which JSON cannot express, raise ValueError."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of processes that were killed while writing."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return  # a folder cannot be opened there
    # The rename itself is only safe from a power cut once the folder is on disk.
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _pause() -> None:
    seconds = os.environ.get(PAUSE)
    if seconds:
        time.sleep(float(seconds))
