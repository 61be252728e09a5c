"""Event-based XOR: the parity of a random stream of bits, given as events; generated.

The task of the papers on ODE-LSTM and CfC. An event says that a bit lasted for a time, so that the label cannot be told
without the gaps.
"""

from __future__ import annotations

import numpy as np

from .events import encode_runs
from .losses_and_metrics import accuracy, cross_entropy
from .ragged import RaggedSamples
from .task import DataPath, Recipe, Task

LONGEST = 32
SPLITS = {"train": 100_000, "validation": 10_000, "test": 10_000}


def _load(variant: str, split: str, data: DataPath | None) -> RaggedSamples:
    count = SPLITS[split]
    generator = np.random.default_rng([2012, list(SPLITS).index(split)])
    lengths = generator.integers(1, LONGEST, count, endpoint=True)
    bits = generator.integers(0, 1, (count, LONGEST), endpoint=True).astype(bool)
    parity = (bits & (np.arange(LONGEST) < lengths[:, None])).sum(1) % 2
    return encode_runs(bits, lengths, parity, unit=LONGEST)


def _task(variant: str, notes: str) -> Task:
    return Task(
        name="xor",
        variant=variant,
        variants=tuple(_NOTES),
        title="Event-based XOR",
        kind="label-per-padded-sequence",
        input_size=1,
        vocabulary=0,
        output_size=2,
        length=LONGEST,
        splits=SPLITS,
        irregular=True,
        negative_dt="error",
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        maximise=True,
        recipe=Recipe("adam", 3e-3, None, 1e-8, 256, 40, None, "best-validation", patience=10),
        citation="Lechner, Hasani (2020): Learning Long-Term Dependencies in Irregularly-Sampled Time Series. "
        "arXiv 2006.04418",
        licence="generated",
        notes=notes,
        reader=_load,
    )


_NOTES = {
    "events": f"streams of 1 to {LONGEST} bits; an event is a bit (-1 or 1) and the share of {LONGEST} steps for "
    "which it lasted"
}
VARIANTS: dict[str, Task] = {variant: _task(variant, notes) for variant, notes in _NOTES.items()}
"""The only variant of the task."""
