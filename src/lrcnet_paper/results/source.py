"""Where a measurement on a trained network comes from: checkpoint, seed, loss; untrained weights are refused."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrcnet_paper.training.trained import Trained

Source = Mapping[str, Any]


def source(trained: Trained) -> dict[str, Any]:
    """Checkpoint, seed, epochs and loss of a network, as plain JSON values.

    The loss is that of the validation split at the epoch of the weights; of a task that has none, that of the test
    split.

    Raises:
        ValueError: for weights that no epoch lies behind, outside the smoke budget.
    """
    if trained.done == 0 and trained.spec.budget != "smoke":
        raise ValueError(
            f"{trained.file.name} must hold trained weights, but no epoch lies behind these; train the network first"
        )
    spec = trained.spec
    return {
        "checkpoint": trained.file.name,
        "run": f"{spec.task} {spec.label()} {spec.model}",
        "seed": spec.seed,
        "done": trained.done,
        "unit": "iteration" if trained.task.recipe.epochs is None else "epoch",
        "loss": _loss(trained),
    }


def _loss(trained: Trained) -> list[Any]:
    """[name, number] of the loss, or [] where none was written."""
    path = trained.file.parent / "metrics.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if trained.done in (int(row.get(u) or -1) for u in ("epoch", "iteration"))
        ]
    for row in rows[-1:]:
        for name in ("validation_loss", "test_loss", *(f"test_{metric}" for metric in trained.task.metrics)):
            if row.get(name):
                return [name.replace("_", " "), float(row[name])]
    return []


def told(found: Source) -> str:
    """A source as a line below a figure.

    Example:
        >>> told({"checkpoint": "best.ckpt", "run": "driving own lrcu-s", "seed": 0, "done": 7, "unit": "epoch",
        ...       "loss": ["validation loss", 0.12345]})
        'best.ckpt of driving own lrcu-s, seed 0, epoch 7, validation loss 0.123'
    """
    loss = f", {found['loss'][0]} {found['loss'][1]:.3g}" if found["loss"] else ", loss unknown"
    return f"{found['checkpoint']} of {found['run']}, seed {found['seed']}, {found['unit']} {found['done']}{loss}"


def told_briefly(found: Source) -> str:
    """A source beside a model's name: seed and loss."""
    loss = f", {found['loss'][0]} {found['loss'][1]:.3g}" if found["loss"] else ""
    return f"seed {found['seed']}{loss}"


def told_all(found: Iterable[Source]) -> str:
    """Several sources, for a caption."""
    return "; ".join(told(one) for one in found)
