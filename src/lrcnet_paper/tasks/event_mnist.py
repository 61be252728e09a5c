"""Event-based sequential MNIST: a digit in black and white, row by row, as the runs of equal pixels."""

from __future__ import annotations

import numpy as np

from .events import encode_runs
from .losses_and_metrics import accuracy, cross_entropy
from .psmnist import CLASSES, FILES, PIXELS, VALIDATION, read_split
from .ragged import RaggedSamples
from .sources import SOURCES
from .task import DataPath, Recipe, Task

THRESHOLD = 128
MOST_EVENTS = 256


def _load(variant: str, split: str, data: DataPath | None) -> RaggedSamples:
    images, labels = read_split("event-mnist", split, data)
    events = encode_runs(images >= THRESHOLD, np.full(len(images), PIXELS), labels, unit=MOST_EVENTS)
    if int(events.lengths.max()) > MOST_EVENTS:
        raise ValueError(
            f"an image must have at most {MOST_EVENTS} runs of equal pixels, but one has {int(events.lengths.max())}; "
            "these are not the digits, get the files again"
        )
    return events


def _task(variant: str, notes: str) -> Task:
    source = SOURCES["event-mnist"]
    return Task(
        name="event-mnist",
        variant=variant,
        variants=tuple(_NOTES),
        title="Event-based sequential MNIST",
        kind="label-per-padded-sequence",
        input_size=1,
        vocabulary=0,
        output_size=CLASSES,
        length=MOST_EVENTS,
        splits={"train": 50_000, "validation": VALIDATION, "test": 10_000},
        irregular=True,
        negative_dt="error",
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        maximise=True,
        recipe=Recipe("rmsprop", 5e-4, 0.9, 1e-7, 128, 30, None, "best-validation", patience=5),
        citation=source.citation,
        licence=source.licence,
        notes=notes,
        reader=_load,
        files=FILES,
    )


_NOTES = {
    "events": f"pixels of at least {THRESHOLD} are white; an event is a colour (-1 or 1) and its number of pixels "
    f"divided by {MOST_EVENTS}"
}
VARIANTS: dict[str, Task] = {variant: _task(variant, notes) for variant, notes in _NOTES.items()}
"""The only variant of the task."""
