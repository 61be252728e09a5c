"""The best LRC beside the best other model, in words that follow from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from lrcnet_paper.artefacts.beyond import Score, describe, rank
from lrcnet_paper.artefacts.irregular.gaps import describe_use
from lrcnet_paper.artefacts.irregular.runs import HEADLINE
from lrcnet_paper.artefacts.sentences import join_words
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


def describe_steps(scores: Sequence[Score]) -> str:
    """Name the LRCs whose gap is the step where they are behind every model whose gap is an input; "" elsewhere."""
    own = rank(one for one in scores if one.spec.model in HEADLINE)
    steps = [one for one in own if one.spec.model in LRCS and describe_use(one.spec) == "step"]
    places = [own.index(one) for one in own if describe_use(one.spec) == "input"]
    if not steps or not places or own.index(steps[0]) < max(places):
        return ""
    return (
        f" The LRCs whose gap is the step are behind every model whose gap is an input: "
        f"{join_words([describe(one) for one in steps])}."
    )


def _describe_difference(lrc: Score, other: Score, pairs: str) -> str:
    assert lrc.value is not None
    assert other.value is not None
    interval = paired_interval(lrc.value, other.value)
    if interval is None:
        return f"they have fewer than two {pairs} in common, so no lead is named"
    if interval.low <= 0 <= interval.high:
        text = "the difference is within the spread"
    else:
        text = f"the LRC {'leads' if interval.mean > 0 else 'loses'} by {abs(interval.mean):.1f} points"
    return (
        f"{text} (paired over {interval.seeds} {pairs}: {interval.mean:+.1f} points, 95 % interval {interval.low:+.1f} "
        f"to {interval.high:+.1f})"
    )
