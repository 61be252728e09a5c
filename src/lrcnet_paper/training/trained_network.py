"""A trained network out of a run's folder, with everything that says where it comes from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lrcnet_paper.models import build
from lrcnet_paper.tasks import Task, find
from lrcnet_paper.training.checkpoint import BEST, DAMAGE, LAST
from lrcnet_paper.training.run_folder import read_spec
from lrcnet_paper.training.spec import RunSpec


@dataclass(frozen=True)
class TrainedNetwork:
    """A network with its weights.

    Attributes:
        network: in evaluation mode.
        task: what it was trained on.
        spec: the run.
        file: where the weights came from.
        done: epochs (or iterations) behind these weights.
    """

    network: nn.Module
    task: Task
    spec: RunSpec
    file: Path
    done: int


def load_trained(place: str | os.PathLike[str]) -> TrainedNetwork:
    """The network of a run.

    Args:
        place: a run's folder, which gives the weights that the task reports (the best validation epoch's, or the last
            ones), or one of its .ckpt files.

    Raises:
        ValueError: if this is no run, or its weights cannot be read.
    """
    path = Path(place)
    folder = path if path.is_dir() else path.parent
    spec = read_spec(folder)
    if spec is None:
        raise ValueError(f"CHECKPOINT must be a run's folder or a .ckpt file in it, but {place} has no config.json")
    task = find(spec.task, spec.variant)
    file = path
    if path.is_dir():
        best = folder / BEST
        file = best if task.recipe.reported == "best-validation" and best.exists() else folder / LAST
    options: dict[str, Any] = dict(spec.options)
    with torch.random.fork_rng(devices=[]):
        network = build(spec.model, task, solver=spec.solver, **options)
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
        network.load_state_dict(content["model"])
        done = int(content["done"])
    except (*DAMAGE, TypeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{file} must hold the weights of this run, but cannot be read: {reason}") from error
    return TrainedNetwork(network.eval(), task, spec, file, done)
