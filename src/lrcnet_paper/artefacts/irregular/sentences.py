"""Which model for which data: five sentences that are written from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lrcnet.pages.content import Table
from lrcnet_paper.artefacts.beyond import Score, describe
from lrcnet_paper.artefacts.irregular.figure import ShareScores, describe_gains
from lrcnet_paper.artefacts.irregular.runs import BENCHMARKS, HEADLINE
from lrcnet_paper.artefacts.long_sequences.runs import SETS

LRCS = ("lrcu-s", "lrc-s", "diagonal-lrc", "lrc-ssm")
DATA = {
    "xor": "durations decide the label",
    "physionet": "irregular readings with missing values",
    "event-mnist": "events of a long picture",
}


def which_model(
    by_task: Mapping[str, Sequence[Score]], shares: ShareScores, by_set: Mapping[str, Sequence[Score]]
) -> Table:
    """Write one sentence for each of the three tasks, one about scarce readings and one about long sequences."""
    rows = [(DATA[task], _task_sentence(BENCHMARKS[task].title, own)) for task, own in by_task.items()]
    rows.append(("readings become scarce", describe_gains(shares)))
    rows.append(("long and regular", _long_sentence(by_set)))
    return Table(
        "which-model",
        "Which model for which data",
        ("data", "in our runs"),
        rows,
        "Written from the numbers of the tables below. A lead is named only if it exceeds the larger of the two "
        "standard deviations over seeds; with one seed no lead is named.",
    )


def _task_sentence(title: str, scores: Sequence[Score]) -> str:
    own = [one for one in scores if one.spec.model in HEADLINE]
    lrcs = [one for one in own if one.spec.model in LRCS]
    others = [one for one in own if one.spec.model not in LRCS]
    if not lrcs or not others:
        return f"{title} has no finished runs of both LRCs and other models yet."
    return f"On {title} {_compare(lrcs[0], others[0])} of {len(own)} models."


def _compare(lrc: Score, other: Score) -> str:
    assert lrc.value is not None
    assert other.value is not None
    gap = lrc.value.mean - other.value.mean
    spreads = [one.value.std for one in (lrc, other) if one.value is not None]
    known = [spread for spread in spreads if spread is not None]
    pair = f"the best LRC is {describe(lrc)} and the best other model {describe(other)}"
    if len(known) < 2:
        return f"{pair}, with one seed of at least one of them,"
    if abs(gap) <= max(known):
        return f"{pair}, a difference within the spread over seeds,"
    return f"{pair}: the LRC {'leads' if gap > 0 else 'loses'} by {abs(gap):.1f} points"


def _long_sentence(by_set: Mapping[str, Sequence[Score]]) -> str:
    parts = [f"on {SETS[name]} {', '.join(describe(one) for one in own)}" for name, own in by_set.items() if own]
    if not parts:
        return "SelfRegulationSCP1 and SCP2 have no finished runs yet."
    return f"From the best to the worst: {'; '.join(parts)}."
