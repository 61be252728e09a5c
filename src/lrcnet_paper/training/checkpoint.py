"""Checkpoints of a run: the last state, from which it resumes, the state before it, and the best weights."""

from __future__ import annotations

import io
import logging
import os
import pickle
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from lrcnet_paper.training.atomic_files import write_atomically

LAST, PREVIOUS, BEST = "last.ckpt", "previous.ckpt", "best.ckpt"
FORMAT = 1
# The errors that reading raises on a file that is truncated, has flipped bits, or is no checkpoint.
READ_ERRORS = (RuntimeError, EOFError, ValueError, KeyError, OSError, pickle.UnpicklingError, zipfile.BadZipFile)

_log = logging.getLogger("lrcnet")
Row = dict[str, float]


@dataclass
class Progress:
    """The progress of a run.

    Attributes:
        done: number of finished epochs, or of iterations where the task counts these.
        history: one row of metrics per evaluation.
        seconds: wall-clock training time of each row; kept apart because it differs between equal runs.
        best: row of the best validation so far; None without validation.
    """

    done: int = 0
    history: list[Row] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best: Row | None = None


def save_last(folder: Path, network: nn.Module, optimiser: Optimizer, progress: Progress) -> None:
    """Write the state to resume from; the previous state is kept in case the new one is damaged."""
    content = {
        "format": FORMAT,
        "model": network.state_dict(),
        "optimizer": optimiser.state_dict(),
        "done": progress.done,
        "history": progress.history,
        "seconds": progress.seconds,
        "best": progress.best,
    }
    last = folder / LAST
    if last.exists():
        # A second name for the same file, so that there is a complete checkpoint at every moment.
        link = folder / f".{PREVIOUS}.{os.getpid()}.part"
        link.unlink(missing_ok=True)
        os.link(last, link)
        os.replace(link, folder / PREVIOUS)
    _write(last, content)


def save_best(folder: Path, network: nn.Module, done: int) -> None:
    """Write the weights of the best epoch so far."""
    content = {"format": FORMAT, "model": network.state_dict(), "done": done}
    _write(folder / BEST, content)


def _write(path: Path, content: dict[str, Any]) -> None:
    # In memory first: on a full disk, torch.save reports a position in the file instead of the system's error.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_atomically(path, lambda file: file.write(buffer.getbuffer()))


def load_last(folder: Path, network: nn.Module, optimiser: Optimizer) -> Progress:
    """Load the last readable state into network and optimiser.

    Returns:
        The progress of that state; a new `Progress` if nothing was saved.

    Raises:
        RuntimeError: if there are checkpoints but none of them can be read.
    """
    paths = [folder / name for name in (LAST, PREVIOUS) if (folder / name).exists()]
    reasons = []
    for path in paths:
        try:
            content = read_checkpoint(path)
            network.load_state_dict(content["model"])
            optimiser.load_state_dict(content["optimizer"])
            progress = Progress(content["done"], content["history"], content["seconds"], content["best"])
        except READ_ERRORS as error:
            reasons.append(f"{path.name} ({_first_line(error)})")
            continue
        if reasons:
            _log.warning("%s is damaged; resuming from %s instead", ", ".join(reasons), path.name)
        return progress
    if reasons:
        raise RuntimeError(
            f"no checkpoint in {folder} can be read: {'; '.join(reasons)}; delete the folder to train from the start"
        )
    return Progress()


def load_best(folder: Path, network: nn.Module) -> None:
    """Load the weights of the best epoch into the network.

    Raises:
        RuntimeError: if the weights cannot be read.
    """
    path = folder / BEST
    try:
        network.load_state_dict(read_checkpoint(path)["model"])
    except READ_ERRORS as error:
        raise RuntimeError(
            f"the best weights in {path} cannot be read ({_first_line(error)}); delete the folder to train again"
        ) from error


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read the content of a checkpoint after verifying its checksums; no code in it is run.

    Raises:
        One of `READ_ERRORS`, for a file that is damaged or no checkpoint.
    """
    # torch.load does not verify the archive's checksums, so a flipped bit would go unnoticed.
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"wrong checksum of {damaged}")
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    # torch's own reader of pickles, when one is malformed.
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no readable checkpoint ({_first_line(error)})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"not a checkpoint of format {FORMAT}")
    return content


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
