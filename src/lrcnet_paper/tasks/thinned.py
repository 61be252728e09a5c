"""Thinned oscillations: the frequency of a noisy oscillation of which a share of the readings is dropped; generated.

Without drops the readings are evenly spaced and the gaps say nothing. The more readings are dropped, the more of the
frequency is in the gaps between those that are left.
"""

from __future__ import annotations

import numpy as np
import torch

from .losses_and_metrics import accuracy, cross_entropy
from .ragged import RaggedSamples
from .task import DataPath, Recipe, Task

STEPS = 64
NOISE = 0.1
# Periods per step: the limits of four bands, an octave each.
BANDS = (0.02, 0.04, 0.08, 0.16, 0.32)
DROPPED = (0, 30, 60, 80, 90)
"""Shares of dropped readings, in percent."""
SPLITS = {"train": 4_000, "validation": 1_000, "test": 2_000}


def _load(variant: str, split: str, data: DataPath | None) -> RaggedSamples:
    share = int(variant.removeprefix("drop-")) / 100
    count = SPLITS[split]
    generator = np.random.default_rng([1924, list(SPLITS).index(split)])
    labels = generator.integers(0, len(BANDS) - 1, count)
    low, high = np.take(BANDS, labels), np.take(BANDS, labels + 1)
    frequency = low * (high / low) ** generator.random(count)
    phase, size = 2 * np.pi * generator.random(count), 0.5 + generator.random(count)
    steps = np.arange(STEPS)
    values = size[:, None] * np.sin(2 * np.pi * frequency[:, None] * steps + phase[:, None])
    values += NOISE * generator.standard_normal(values.shape)
    # The same draws for every share: a variant's readings are among those of the variants that drop less.
    kept = generator.random(values.shape) >= share
    # A sequence has at least two readings; a gap needs two.
    kept[:, [0, -1]] = True
    _, step = np.nonzero(kept)
    gaps = np.diff(step, prepend=-1)
    gaps[step == 0] = 1
    return RaggedSamples(
        torch.from_numpy(values[kept].astype(np.float32)).unsqueeze(-1),
        torch.from_numpy(gaps.astype(np.float32)),
        torch.from_numpy(kept.sum(1)),
        torch.from_numpy(labels),
    )


def _task(variant: str, notes: str) -> Task:
    return Task(
        name="thinned",
        variant=variant,
        variants=tuple(_NOTES),
        title="Thinned oscillations",
        kind="label-per-padded-sequence",
        input_size=1,
        vocabulary=0,
        output_size=len(BANDS) - 1,
        length=STEPS,
        splits=SPLITS,
        irregular=True,
        negative_dt="error",
        loss=cross_entropy,
        metrics={"accuracy": accuracy},
        maximise=True,
        recipe=Recipe("adam", 3e-3, None, 1e-8, 64, 30, None, "best-validation"),
        citation="lrcnet",
        licence="generated",
        notes=notes,
        reader=_load,
    )


_NOTES = {
    f"drop-{share}": f"{STEPS} readings, {share} % of them dropped at random; four bands of frequency, an octave each"
    for share in DROPPED
}
VARIANTS: dict[str, Task] = {variant: _task(variant, notes) for variant, notes in _NOTES.items()}
"""One variant for each share of dropped readings."""
