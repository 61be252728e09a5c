"""Which model for which data: sentences that are written from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lrcnet.pages.content import Table
from lrcnet_paper.artefacts.beyond import Score, describe
from lrcnet_paper.artefacts.irregular.comparison import compare_with_lrcs, describe_steps
from lrcnet_paper.artefacts.irregular.figure import ShareScores
from lrcnet_paper.artefacts.irregular.runs import BENCHMARKS
from lrcnet_paper.artefacts.irregular.scarce import scarce_rows
from lrcnet_paper.artefacts.long_sequences.runs import SETS

DATA = {
    "xor": "durations decide the label",
    "physionet": "irregular readings with missing values",
    "event-mnist": "pictures as long sequences of events",
}


def which_model(
    by_task: Mapping[str, Sequence[Score]], shares: ShareScores, by_set: Mapping[str, Sequence[Score]]
) -> Table:
    """Write a row for each of the three tasks, for two shares of dropped readings and for long sequences."""
    rows = [(DATA[task], _task_sentence(task, own)) for task, own in by_task.items()]
    rows += scarce_rows(shares)
    rows.append(("long and regular", _long_sentence(by_set)))
    return Table(
        "which-model",
        "Which model for which data",
        ("data", "in our runs"),
        rows,
        "Written from the numbers of the tables below. The interval is that of the differences between runs of equal "
        "seeds, by Student's t. A lead is named only if the interval excludes 0, and never from one seed.",
    )


def _task_sentence(task: str, scores: Sequence[Score]) -> str:
    benchmark = BENCHMARKS[task]
    sentence = compare_with_lrcs(scores, "folds" if len(benchmark.variants) > 1 else "seeds")
    if not sentence:
        return f"{benchmark.title} has no finished runs of both LRCs and other models yet."
    return f"On {benchmark.title}, {sentence}.{describe_steps(scores)}"


def _long_sentence(by_set: Mapping[str, Sequence[Score]]) -> str:
    parts = [f"on {SETS[name]} {', '.join(describe(one) for one in own)}" for name, own in by_set.items() if own]
    if not parts:
        return "SelfRegulationSCP1 and SCP2 have no finished runs yet."
    return f"From the best to the worst: {'; '.join(parts)}."
