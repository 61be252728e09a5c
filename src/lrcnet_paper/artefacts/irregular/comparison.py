"""The best LRC beside the best other model, in words that follow from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from lrcnet_paper.artefacts.beyond import Score, describe, rank
from lrcnet_paper.artefacts.irregular.runs import HEADLINE
from lrcnet_paper.results.interval import paired_interval

LRCS = ("lrcu-s", "lrc-s", "diagonal-lrc", "lrc-ssm")


def compare_with_lrcs(scores: Sequence[Score], pairs: str) -> str:
    """Say which headline model is best, where the best LRC stands, and how far it is from the best other model.

    Args:
        scores: the scores of one task, in any order.
        pairs: the word for what two runs of equal seed share, "seeds" or "folds".

    Returns:
        A sentence without its full stop; "" unless there are both LRCs and other models.
    """
    own = rank(one for one in scores if one.spec.model in HEADLINE)
    lrcs = [one for one in own if one.spec.model in LRCS]
    others = [one for one in own if one.spec.model not in LRCS]
    if not lrcs or not others:
        return ""
    lrc, other = lrcs[0], others[0]
    if own[0] is lrc:
        best = f"{describe(lrc)} has the best mean of {len(own)} models, and the best other model is "
        best += describe(other)
    else:
        best = f"{describe(other)} has the best mean of {len(own)} models, and the best LRC is {describe(lrc)}, "
        best += f"number {own.index(lrc) + 1}"
    return f"{best}: {_describe_difference(lrc, other, pairs)}"


def _describe_difference(lrc: Score, other: Score, pairs: str) -> str:
    assert lrc.value is not None
    assert other.value is not None
    difference = lrc.value.mean - other.value.mean
    if lrc.value.std is None or other.value.std is None:
        return "one of them has one seed, so no lead is named"
    text = "the difference is within the spread"
    if abs(difference) > max(lrc.value.std, other.value.std):
        text = f"the LRC {'leads' if difference > 0 else 'loses'} by {abs(difference):.1f} points, more than the spread"
    interval = paired_interval(lrc.value, other.value)
    if interval is None:
        return f"{text} (they have fewer than two {pairs} in common)"
    open_order = ", which contains 0" if interval.low <= 0 <= interval.high else ""
    return (
        f"{text} ({interval.seeds} {pairs} in pairs: {interval.mean:+.1f} points, 95 % interval {interval.low:+.1f} to "
        f"{interval.high:+.1f}{open_order})"
    )
