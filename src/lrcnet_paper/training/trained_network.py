"""`load_trained`: the trained network of a run folder, with the run that it comes from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lrcnet_paper.models import build
from lrcnet_paper.tasks import Task, find
from lrcnet_paper.training.checkpoint import BEST, LAST, READ_ERRORS, read_checkpoint
from lrcnet_paper.training.run_folder import read_spec
from lrcnet_paper.training.spec import RunSpec


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network and its origin.

    Attributes:
        network: the network with its weights, in evaluation mode.
        task: the task that it was trained on.
        spec: the run.
        file: the checkpoint that the weights were read from.
        done: number of epochs (or iterations) that these weights were trained for.
    """

    network: nn.Module
    task: Task
    spec: RunSpec
    file: Path
    done: int


def load_trained(checkpoint: str | os.PathLike[str]) -> TrainedNetwork:
    """Load the network of a run.

    Args:
        checkpoint: a run folder, for the weights that the task reports (those of the best validation epoch, or the
            last ones), or one of its .ckpt files.

    Raises:
        ValueError: if this is not a run, or its weights cannot be read.
    """
    path = Path(checkpoint)
    folder = path if path.is_dir() else path.parent
    spec = read_spec(folder)
    if spec is None:
        raise ValueError(f"CHECKPOINT must be a run's folder or a .ckpt file in it, but {path} has no config.json")
    task = find(spec.task, spec.variant)
    file = path
    if path.is_dir():
        best = folder / BEST
        file = best if task.recipe.reported == "best-validation" and best.exists() else folder / LAST
    options: dict[str, Any] = dict(spec.options)
    with torch.random.fork_rng(devices=[]):
        network = build(spec.model, task, solver=spec.solver, **options)
    try:
        content = read_checkpoint(file)
        network.load_state_dict(content["model"])
        done = int(content["done"])
    except (*READ_ERRORS, TypeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file} must hold the weights of this run, but cannot be read: {reason}") from error
    return TrainedNetwork(network.eval(), task, spec, file, done)
