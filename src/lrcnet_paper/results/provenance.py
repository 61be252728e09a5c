"""Provenance of a measurement on a trained network: checkpoint, run, seed and loss. Untrained weights are refused."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrcnet_paper.training.trained_network import TrainedNetwork

Provenance = Mapping[str, Any]


def provenance_of(trained: TrainedNetwork) -> dict[str, Any]:
    """Return checkpoint, run, seed, epochs and loss of a network as plain JSON values.

    The loss is the validation loss at the epoch of the weights; for a task without a validation split, the test loss.

    Raises:
        ValueError: for weights that were not trained for a single epoch, outside the smoke budget.
    """
    if trained.done == 0 and trained.spec.budget != "smoke":
        raise ValueError(
            f"{trained.file.name} must hold trained weights, but these were trained for 0 {trained.spec.unit}s; train "
            "the network first"
        )
    spec = trained.spec
    return {
        "checkpoint": trained.file.name,
        "run": f"{spec.task} {spec.label()} {spec.model}",
        "seed": spec.seed,
        "done": trained.done,
        "unit": spec.unit,
        "loss": _loss(trained),
    }


def _loss(trained: TrainedNetwork) -> list[Any]:
    """Return [name, number] of the loss, or [] if none was written."""
    path = trained.file.parent / "metrics.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row.get(trained.spec.unit) or -1) == trained.done]
    for row in rows[-1:]:
        for name in ("validation_loss", "test_loss", *(f"test_{metric}" for metric in trained.task.metrics)):
            if row.get(name):
                return [name.replace("_", " "), float(row[name])]
    return []


def format_provenance(provenance: Provenance) -> str:
    """Write a provenance as a line below a figure.

    Example:
        >>> format_provenance({"checkpoint": "best.ckpt", "run": "driving own lrcu-s", "seed": 0, "done": 7,
        ...                    "unit": "epoch", "loss": ["validation loss", 0.12345]})
        'best.ckpt of driving own lrcu-s, seed 0, epoch 7, validation loss 0.123'
    """
    weights = f"{provenance['checkpoint']} of {provenance['run']}, seed {provenance['seed']}"
    return f"{weights}, {provenance['unit']} {provenance['done']}{_format_loss(provenance) or ', loss unknown'}"


def format_seed_and_loss(provenance: Provenance) -> str:
    """Write the short form of a provenance, for a place beside a model's name."""
    return f"seed {provenance['seed']}{_format_loss(provenance)}"


def format_provenances(provenances: Iterable[Provenance]) -> str:
    """Write several provenances for a caption."""
    return "; ".join(format_provenance(one) for one in provenances)


def _format_loss(provenance: Provenance) -> str:
    return f", {provenance['loss'][0]} {provenance['loss'][1]:.3g}" if provenance["loss"] else ""
