"""The budget `long`: the runs of the paper's budget, with those that take days cut to what two cores do in one.

A shortened run of a data set is the first part of the paper's run and continues to its full length later. A policy that
is trained end to end has other batches than the paper's, so its runs carry the budget's own label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lrcnet_paper.models.policy import IN_BFLOAT16
from lrcnet_paper.training.budgets import LONG
from lrcnet_paper.training.spec import RunSpec

# Epochs by task, then by model where they differ.
EPOCHS = {"imdb": 5, "psmnist": 20}
EPOCHS_OF_MODEL = {("psmnist", "gru"): 10, ("psmnist", "mgu"): 10, ("psmnist", "torch-gru"): 10}
# Tasks of which one seed fits.
ONE_SEED = ("psmnist",)
# Policies from camera frames: 4,000 updates of 8 sequences of 16 frames. The convolutions take nearly all of the time,
# and half of it in bfloat16.
END_TO_END = ("own", "carracing")
UPDATES, BATCH, PIECE, SAMPLES = 4000, 8, 16, 1280


def shorten(specs: Sequence[RunSpec]) -> Iterator[RunSpec]:
    """Shorten runs of the budget `paper` to those of `long`; runs of minutes stay as they are.

    >>> paper = [RunSpec("psmnist", "permuted", "gru", seed=seed, budget="paper") for seed in range(3)]
    >>> [(spec.seed, spec.epochs) for spec in shorten(paper)]
    [(0, 10)]
    >>> policy = next(shorten([RunSpec("driving", "own", "gru", budget="paper")]))
    >>> policy.epochs, policy.samples, policy.batch_size, policy.piece, policy.budget
    (25, 1280, 8, 16, 'long')
    >>> policy.options
    {'bfloat16': True}
    """
    for spec in specs:
        if spec.task in ONE_SEED and spec.seed > 0:
            continue
        if spec.task == "driving" and spec.variant in END_TO_END:
            epochs = UPDATES * BATCH // SAMPLES
            options = {**spec.options, **IN_BFLOAT16}
            yield spec.with_(
                epochs=epochs, samples=SAMPLES, batch_size=BATCH, piece=PIECE, budget=LONG, options=options
            )
        elif spec.task in EPOCHS:
            yield spec.with_(epochs=EPOCHS_OF_MODEL.get((spec.task, spec.model), EPOCHS[spec.task]))
        else:
            yield spec
