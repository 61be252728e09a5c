"""Scarce readings: the numbers behind the figure as a table, and which models lose when most readings are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.beyond import Score
from lrcnet_paper.artefacts.irregular.comparison import LRCS, compare_with_lrcs
from lrcnet_paper.artefacts.irregular.figure import CHANCE, GAIN, ShareScores
from lrcnet_paper.artefacts.irregular.gaps import describe_use
from lrcnet_paper.artefacts.irregular.runs import FIGURE_BENCHMARK, HEADLINE
from lrcnet_paper.artefacts.sentences import join_words

DESCRIBED = (60, 90)
"""Shares of dropped readings with a sentence, in percent."""


def share_table(curves: ShareScores) -> list[Table]:
    """Tabulate the accuracies of the figure, each model with and without the gaps; no table without any."""
    shares = sorted({share for by_share in curves.values() for share in by_share})
    rows: list[tuple[Cell, ...]] = []
    for model in HEADLINE:
        for known in (True, False):
            by_share = curves.get((model, known), {})
            if by_share:
                scores = list(by_share.values())
                cells = [score_cell(by_share[share]) if share in by_share else None for share in shares]
                use, seeds = describe_use(scores[0].spec), _join_counts([len(one.runs) for one in scores])
                rows.append((palette.model_label(model), use, *cells, seeds))
    note = (
        "Test accuracy in percent over the share of dropped readings: mean and standard deviation over seeds. Every "
        f"network has about {FIGURE_BENCHMARK.parameters:,} parameters; chance is {CHANCE} %."
    )
    columns = ("model", "gap as", *(f"{share} % dropped" for share in shares), "seeds")
    title = "Thinned oscillations: test accuracy (%), with and without the gaps"
    return [Table("thinned", title, columns, rows, note, row_headers=2)] if rows else []


def score_cell(score: Score) -> Cell:
    """Return the mean of a score, or the number of its runs if all of them diverged."""
    return score.value or f"{len(score.runs)} NaN"


def _join_counts(counts: Sequence[int]) -> str:
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def scarce_rows(curves: ShareScores) -> list[tuple[str, str]]:
    """Describe two shares of dropped readings: the best model, the best LRC, and what the LRCs gain from the gaps."""
    rows = []
    for share in DESCRIBED:
        known = [by_share[share] for (_, knows), by_share in curves.items() if knows and share in by_share]
        if sentence := compare_with_lrcs(known, "seeds"):
            text = f"With the gaps known, {sentence}.{_describe_gains(curves, share)}"
            rows.append((f"{share} % of the readings are dropped", text))
    none = f"{FIGURE_BENCHMARK.title} have no finished runs of both LRCs and other models yet."
    return rows or [("readings become scarce", none)]


def _describe_gains(curves: ShareScores, share: int) -> str:
    gains = _lrc_gains(curves, share)
    if not gains:
        return ""
    (least, gain), *others = ((palette.model_label(model), gain) for model, gain in gains.items())
    text = f" Of the LRCs, {least} gains least from knowing the gaps ({gain:+.1f} points)"
    if others:
        text += f", then {join_words([f'{name} ({gain:+.1f})' for name, gain in others])}"
    return f"{text}.{_explain_gains(curves, share, gains)}"


def _lrc_gains(curves: ShareScores, share: int) -> dict[str, float]:
    """Return LRC -> what knowing the gaps gains it at a share, in points of accuracy; the least first."""
    gains = {}
    for model in LRCS:
        pair = [curves.get((model, known), {}).get(share) for known in (True, False)]
        known, unknown = (None if one is None else one.value for one in pair)
        if known is not None and unknown is not None:
            gains[model] = known.mean - unknown.mean
    return dict(sorted(gains.items(), key=lambda item: item[1]))


def _explain_gains(curves: ShareScores, share: int, gains: Mapping[str, float]) -> str:
    """Give a likely reason where LRCs whose gap is the step gain less than every LRC whose gap is an input.

    Other LRCs whose gap is the step are named too, because they do not fit the reason.
    """
    uses = {model: describe_use(curves[model, True][share].spec) for model in gains}
    by_input = [gain for model, gain in gains.items() if uses[model] == "input"]
    steps = [model for model in gains if uses[model] == "step"]
    behind = [model for model in steps if by_input and gains[model] < min(by_input) - GAIN]
    if not behind:
        return ""
    reason = (
        f" For {_join_labels(behind)} a gap is the step. A likely reason, which these runs do not prove: a step only "
        "brings a state further along its decay, and an oscillation needs more than that (docs/time.md)."
    )
    if exceptions := [model for model in steps if model not in behind]:
        reason += f" For {_join_labels(exceptions)} it is the step too, so this is not the only reason."
    return reason


def _join_labels(models: Sequence[str]) -> str:
    return join_words([palette.model_label(model) for model in models])
