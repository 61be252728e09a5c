"""The sentence that says whether a recurrent network is worth it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lrcnet.data import Floats
from lrcnet.estimators.series import Series
from lrcnet.own_data.encoding import Readings
from lrcnet.own_data.fit import Candidate, Fit, verdict
from lrcnet.own_data.measures import Predictions, measure, scores
from lrcnet.own_data.schema import Schema
from lrcnet.own_data.split import Split

SCHEMA = Schema("long", "classification", False, "id", None, "y", False, ["x"], classes=["a", "b"])


def answers(truth: Any, share_right: float, seed: int) -> Floats:
    """Return probabilities of two classes of which a share is on the right side."""
    rng = np.random.default_rng(seed)
    right = rng.random(len(truth)) < share_right
    second = np.where((truth == 1) == right, 0.8, 0.2)
    return np.stack([1 - second, second], 1)


def fit_of(truth: Any, predicted: list[Floats]) -> Fit:
    """Return a fit whose network, LSTM, trees and guess gave these answers."""
    results = [Predictions(truth, one) for one in predicted]
    names = ("lrcu", "LSTM", "gradient boosting", "guess")
    candidates = [
        Candidate(name, None, measure(SCHEMA, one), 0.0, scores(SCHEMA, one))
        for name, one in zip(names, results, strict=True)
    ]
    readings = Readings(Series([np.zeros((1, 1))] * len(truth), None), [""] * len(truth), None, truth)
    return Fit(SCHEMA, None, Split(readings, readings), results[0], candidates, {})


EVEN = np.arange(200) % 2
RARE = (np.arange(200) % 10 == 0).astype(int)
GUESS = np.tile([0.6, 0.4], (200, 1))
# Ranks the rare class first, but never gives it more than one half.
SHY = np.stack([1 - 0.3 * RARE - 0.1, 0.3 * RARE + 0.1], 1)


@pytest.mark.parametrize(
    ("truth", "shares", "words"),
    [
        (EVEN, (0.9, 0.9, 0.6), "clearly better than gradient boosting on summary features, and as good as the LSTM"),
        (EVEN, (0.95, 0.6, 0.6), "clearly better than gradient boosting on summary features, and than the LSTM"),
        (EVEN, (0.75, 0.95, 0.6), "but the LSTM is clearly better than this one"),
        (EVEN, (0.9, 0.9, 0.91), "does as well within the noise"),
        (EVEN, (0.7, 0.7, 0.95), "is clearly better: a recurrent network is not worth it here"),
        (EVEN, (0.52, 0.52, 0.52), "not clearly better than the guess"),
    ],
)
def test_the_sentence_follows_the_differences(truth: Any, shares: tuple[float, ...], words: str) -> None:
    predicted = [answers(truth, share, seed) for seed, share in enumerate(shares)]
    assert words in verdict(fit_of(truth, [*predicted, GUESS]))


def test_a_rare_class_that_is_ranked_but_never_answered_is_named() -> None:
    assert "One class is rare" in verdict(fit_of(RARE, [SHY, SHY, SHY, GUESS]))
    balanced = replace(fit_of(RARE, [SHY, SHY, SHY, GUESS]), schema=replace(SCHEMA, balanced=True))
    assert "not clearly better than the guess" in verdict(balanced)
