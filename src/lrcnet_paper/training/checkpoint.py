"""Checkpoints of a run: the last state to resume from, the one before it, and the weights of the best epoch."""

from __future__ import annotations

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
# What reading raises on a file that is cut off, has flipped bits, or is no checkpoint at all.
DAMAGE = (RuntimeError, EOFError, ValueError, KeyError, OSError, pickle.UnpicklingError, zipfile.BadZipFile)

_log = logging.getLogger("lrcnet")
Row = dict[str, float]


@dataclass
class Progress:
    """How far a run has come.

    Attributes:
        done: finished epochs, or iterations where the task counts these.
        history: one row of metrics per evaluation.
        seconds: wall-clock training time of each row; kept apart because no two runs agree on it.
        best: the row of the best validation so far, None without validation.
    """

    done: int = 0
    history: list[Row] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    best: Row | None = None


def save_last(folder: Path, network: nn.Module, optimiser: Optimizer, progress: Progress) -> None:
    """Write the state to resume from; the one before it stays as a second chance."""
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
        # A second name for the same file: at no moment is there none.
        spare = folder / f".{PREVIOUS}.{os.getpid()}.part"
        spare.unlink(missing_ok=True)
        os.link(last, spare)
        os.replace(spare, folder / PREVIOUS)
    write_atomically(last, lambda file: torch.save(content, file))


def save_best(folder: Path, network: nn.Module, done: int) -> None:
    """Write the weights of the best epoch so far."""
    content = {"format": FORMAT, "model": network.state_dict(), "done": done}
    write_atomically(folder / BEST, lambda file: torch.save(content, file))


def load_last(folder: Path, network: nn.Module, optimiser: Optimizer) -> Progress:
    """Bring network and optimiser to the last state that can be read.

    Returns:
        How far it had come; a fresh `Progress` where nothing was saved.

    Raises:
        RuntimeError: if there are checkpoints but none can be read.
    """
    found = [folder / name for name in (LAST, PREVIOUS) if (folder / name).exists()]
    reasons = []
    for path in found:
        try:
            content = _read(path)
            network.load_state_dict(content["model"])
            optimiser.load_state_dict(content["optimizer"])
            progress = Progress(content["done"], content["history"], content["seconds"], content["best"])
        except DAMAGE as error:
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
    """Give the network the weights of the best epoch.

    Raises:
        RuntimeError: if they cannot be read.
    """
    path = folder / BEST
    try:
        network.load_state_dict(_read(path)["model"])
    except DAMAGE as error:
        raise RuntimeError(
            f"the best weights in {path} cannot be read ({_first_line(error)}); delete the folder to train again"
        ) from error


def _read(path: Path) -> dict[str, Any]:
    # torch.load does not look at the archive's checksums, so a flipped bit would go unnoticed.
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"wrong checksum of {damaged}")
    content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"not a checkpoint of format {FORMAT}")
    return content


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
