"""Seeds of roads: the range that belongs to each purpose, so that nothing is measured on a road that was trained on.

A seed fixes the road, its appearance and the noise of the expert in our own world and in VISTA, and the track in
CarRacing. The ranges are disjoint. Stored results depend on these numbers, so they must not change.
"""

from __future__ import annotations

from collections.abc import Mapping

_BLOCK, _SMALL_BLOCK = 10**7, 10**6
_ANALYSIS = 2 * _BLOCK

TRAINING = range(0, _BLOCK)
"""Recordings that policies are trained on."""
VALIDATION = range(_BLOCK, 2 * _BLOCK)
"""Recordings that choose a run's best epoch."""
TEST = range(_ANALYSIS, _ANALYSIS + _SMALL_BLOCK)
"""Recordings that the final loss is measured on."""
ATTENTION_SCENES = range(_ANALYSIS + _SMALL_BLOCK, _ANALYSIS + 2 * _SMALL_BLOCK)
"""Scenes on which the attention of policies is compared with and without noise."""
ATTENTION_EXAMPLES = range(_ANALYSIS + 2 * _SMALL_BLOCK, _ANALYSIS + 3 * _SMALL_BLOCK)
"""Scenes that figures show as examples."""
NEURON_DRIVES = range(_ANALYSIS + 3 * _SMALL_BLOCK, _ANALYSIS + 4 * _SMALL_BLOCK)
"""Drives along which the activity of neurons is recorded."""
CLOSED_LOOP = range(5 * _BLOCK, 6 * _BLOCK)
"""Closed-loop drives that count crashes, the scenes of the setup figure, and the default road of `lrcnet drive`."""
OTHER_WORLDS = range(6 * _BLOCK, 7 * _BLOCK)
"""Closed-loop drives in VISTA and CarRacing."""

EXAMPLE_ROAD = ATTENTION_EXAMPLES[17]
"""A short road with a bend, which the figures of attention and of traces show."""

RANGES: Mapping[str, range] = {
    "training": TRAINING,
    "validation": VALIDATION,
    "test": TEST,
    "attention scenes": ATTENTION_SCENES,
    "attention examples": ATTENTION_EXAMPLES,
    "neuron drives": NEURON_DRIVES,
    "closed loop": CLOSED_LOOP,
    "other worlds": OTHER_WORLDS,
}
"""Every range by its purpose."""


def first_seeds(seeds: range, count: int) -> range:
    """Return the first `count` seeds of a range.

    Raises:
        ValueError: if the range has fewer; the next ones belong to another purpose.

    >>> first_seeds(VALIDATION, 2)
    range(10000000, 10000002)
    """
    if not 0 <= count <= len(seeds):
        raise ValueError(f"count must be from 0 to {len(seeds)}, the size of this range of roads, but is {count}")
    return seeds[:count]


def split_roads(train: int, validation: int, test: int = 0) -> dict[str, range]:
    """Return the seeds of the roads of each split; no road is in two of them.

    >>> split_roads(3, 2)["validation"]
    range(10000000, 10000002)
    """
    return {
        "train": first_seeds(TRAINING, train),
        "validation": first_seeds(VALIDATION, validation),
        "test": first_seeds(TEST, test),
    }
