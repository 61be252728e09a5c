"""The rule by which a claim of the paper agrees with our runs or not; it has no exceptions, and reports print it.

A claim says that A is ahead of B. It is judged by the paired differences over seeds: A and B of the same seed had the
same order of samples, so what the seeds share drops out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal, get_args

from lrcnet.pages.content import RichCell
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.interval import FEWEST_SEEDS, Interval, difference, interval_of, pairs

Word = Literal["agrees", "agrees, weaker", "no difference seen", "contradicts", "not measurable here"]
WORDS: tuple[Word, ...] = get_args(Word)
# The symbol stands beside the word, so that a verdict never depends on its colour alone.
SYMBOLS: dict[str, str] = dict(zip(WORDS, ("✓", "▽", "≈", "✗", "·"), strict=True))

# From the least favourable verdict to the most favourable one.
ORDER: tuple[Word, ...] = ("contradicts", "not measurable here", "no difference seen", "agrees, weaker", "agrees")

COLOURS: dict[str, str] = dict(zip(WORDS, ("green", "green", "yellow", "red", "grey"), strict=True))

# Fewest seeds of a contradiction; any other verdict needs `FEWEST_SEEDS`.
SEEDS_TO_CONTRADICT = 3
# Below this share of the paper's margin, ours is weaker.
WEAKER = 0.5

RULES: tuple[str, ...] = (
    "A claim says that A is ahead of B. It has one verdict, on one declared variant of the data; other variants, rates "
    "and solvers are sensitivities and have none. Absolute numbers, times of a machine and equal hyper-parameters are "
    "no claims.",
    "A claim that A is ahead of several rivals is judged against each of them and has the least favourable of these "
    "verdicts, in the order contradicts, not measurable here, no difference seen, agrees but weaker, agrees. Its "
    "numbers are those of the rival that decides, which is named; the intervals are those of all.",
    "The verdict comes from the paired differences of A and B over seeds, with their 95 % interval by Student's t. "
    "Errors, losses and constants spread over orders of magnitude: they are compared by the logarithm of their ratio, "
    "and the interval is given as factors, above 1 on the paper's side; differences are above 0 there. Shares, such as "
    "that of drives that crash, are uncertain by counting too: their interval is at least as wide as the binomial one.",
    "Agrees: the whole interval is on the paper's side of 0. Agrees, weaker: so it is, but our mean is below half of "
    "the paper's margin.",
    "No difference seen: the interval contains 0. That leaves the order undecided and does not show that A and B are "
    "equal: over 3 seeds an interval is wide. Intervals are not corrected for the number of claims.",
    "Contradicts: the whole interval is on the other side, on the paper's data or a declared equivalent, after at "
    "least the paper's number of updates, over at least 3 seeds.",
    "Not measurable here: nothing was measured, or by one seed, by smoke runs, with different lengths for A and B, or "
    "on networks that did not converge; or the order is opposite but a condition of a contradiction is missing, which "
    "is then named.",
    "A run of A that diverged rules out agreement. A baseline that is worse than the paper's by more than the sum of "
    "both standard deviations, although it was trained as long, is a warning beside the claim: our comparison may be "
    "too easy. Agreement needs none of the conditions of a contradiction; they are named beside it instead.",
    "A table or figure is contradicted if one of its claims is, and not measurable if fewer than half of them are. It "
    "agrees if all measurable claims do, weaker if at least half of them do, and shows no difference otherwise.",
    "A statement about single networks, such as a certificate or a failure, agrees if it holds in all of them (or in "
    "one of them, where the paper says that it happens in some), over at least 2 seeds. It shows no difference if it "
    "holds in fewer; if it holds in none, this counts as the opposite order. For a theorem a single exception counts "
    "as the opposite order, on any data.",
    "A fact that needs no training, such as the range of a formula, agrees or contradicts by itself.",
)
"""The rule in words, as reports print it."""


@dataclass(frozen=True)
class Verdict(RichCell):
    """A word, and everything that a reader must know beside it.

    Attributes:
        word: the verdict.
        conditions: how our runs differ from the paper's.
        warnings: reasons to doubt the comparison.
        certainty: number of seeds and interval of the differences; "" without one.
        lead: mean of the differences or of the logarithms of ratios, positive on the paper's side; None without one.
        others: in a claim about several rivals, what is different for those that do not decide.
        may_contradict: whether our runs meet the conditions of a contradiction.

    Example:
        >>> str(Verdict("agrees", ("on coarse data",)))
        'agrees (on coarse data)'
    """

    word: Word
    conditions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    certainty: str = ""
    lead: float | None = None
    others: tuple[str, ...] = ()
    may_contradict: bool = field(default=False, compare=False)

    column_class = "verdicts"

    @property
    def colour(self) -> str:
        return COLOURS[self.word]

    def __str__(self) -> str:
        beside = (*self.conditions, *self.others, *(f"warning: {warning}" for warning in self.warnings))
        return f"{self.word} ({'; '.join(beside)})" if beside else self.word

    def to_html(self) -> str:
        notes = "; ".join((*self.conditions, *self.others))
        rest = f'<span class="conditions">{escape(notes)}</span>' if notes else ""
        rest += "".join(f'<span class="warning">⚠ {escape(warning)}</span>' for warning in self.warnings)
        symbol = f'<span aria-hidden="true">{SYMBOLS[self.word]}</span>'
        return f'<span class="verdict {css_class(self.word)}">{symbol} {self.word}</span>{rest}'


def css_class(word: str) -> str:
    """Return the name of a verdict's class in the style sheet."""
    return word.replace(",", "").replace(" ", "-")


@dataclass(frozen=True)
class Conditions:
    """The conditions of our runs, as far as they matter for a verdict.

    Attributes:
        smoke: whether the runs have the smoke budget.
        shorter: whether they have fewer updates than the paper's.
        notes: differences from the paper to name, such as "on coarse data" and "5 of 30 epochs".
        other_data: whether the data are neither the paper's nor a declared equivalent.
        warnings: reasons to doubt the comparison, such as "undertrained".
    """

    smoke: bool = False
    shorter: bool = False
    notes: tuple[str, ...] = ()
    other_data: bool = False
    warnings: tuple[str, ...] = ()

    def missing_for_contradiction(self, seeds: int) -> list[str]:
        """List the conditions of a contradiction that do not hold."""
        return [
            *(["the data are not the paper's"] if self.other_data else []),
            *(["training is shorter"] if self.shorter else []),
            *([f"{seeds} seeds"] if seeds < SEEDS_TO_CONTRADICT else []),
        ]


NOT_MEASURED = Verdict("not measurable here", ("not measured",))


def judge_comparison(
    paper: tuple[Estimate, Estimate] | None,
    ours: tuple[Estimate | None, Estimate | None],
    *,
    larger_is_better: bool,
    under: Conditions | None = None,
    comparable: bool = True,
    by_ratio: bool = False,
    same_scale: bool = False,
) -> Verdict:
    """Judge the claim "A is ahead of B", where the paper has A ahead.

    Args:
        paper: the paper's numbers of A and B; None if it gives none.
        ours: our numbers of A and B, with their values by seed.
        larger_is_better: the direction of the metric.
        under: the conditions of our runs.
        comparable: False if A and B were trained for different numbers of epochs.
        by_ratio: compare logarithms, for positive numbers on any scale.
        same_scale: our numbers are on the paper's scale, so that a baseline may be worse than the paper's.

    Raises:
        ValueError: if the paper does not have A ahead of B.

    Example:
        >>> from lrcnet_paper.results.estimate import mean_over_seeds
        >>> claimed = Estimate(84.21, 0.26, 3), Estimate(82.90, 0.31, 3)
        >>> first, second = mean_over_seeds({0: 84.0, 1: 84.2, 2: 84.1}), mean_over_seeds({0: 83.0, 1: 83.1, 2: 83.2})
        >>> judge_comparison(claimed, (first, second), larger_is_better=True).word
        'agrees'
    """
    under = under or Conditions()
    sign = 1 if larger_is_better else -1
    margin = None if paper is None else sign * difference(paper[0].mean, paper[1].mean, by_ratio=by_ratio)
    if margin is not None and margin < 0:
        raise ValueError(f"the paper must have the first model ahead, but its margin is {margin:g}; swap them")
    first, second = ours
    if first is None or second is None:
        return NOT_MEASURED
    warnings = under.warnings
    if same_scale and paper is not None and not under.shorter:
        warnings += _baseline_warning(paper[1], second, sign)
    notes = _notes(under, first, second)
    differences = [sign * difference(a, b, by_ratio=by_ratio) for a, b in pairs(first, second)]
    reason = _reason_not_to_judge(len(differences), under, comparable)
    counting = 0.0 if by_ratio else first.counting_variance + second.counting_variance
    interval = None if reason else interval_of(differences, counting)
    if interval is None:
        return Verdict("not measurable here", (*notes, *([reason] if reason else [])), warnings)
    word, missing = _judge_interval(interval, margin, under, first.diverged)
    certainty = interval.as_factor() if by_ratio else str(interval)
    possible = not under.missing_for_contradiction(interval.seeds)
    return Verdict(word, (*notes, *missing), warnings, certainty, interval.mean, may_contradict=possible)


def _judge_interval(
    interval: Interval, margin: float | None, under: Conditions, diverged: int
) -> tuple[Word, tuple[str, ...]]:
    """Return the word, and for an opposite order that is no contradiction the reasons."""
    if interval.low > 0:
        if diverged:
            return "no difference seen", ()
        weaker = margin is not None and interval.mean < WEAKER * margin
        return "agrees, weaker" if weaker else "agrees", ()
    if interval.high >= 0:
        return "no difference seen", ()
    return _judge_opposite(under, interval.seeds)


OPPOSITE = "opposite order"
"""The first words of the reason why the opposite order is no contradiction."""


def _judge_opposite(under: Conditions, seeds: int) -> tuple[Word, tuple[str, ...]]:
    missing = under.missing_for_contradiction(seeds)
    if missing:
        return "not measurable here", (f"{OPPOSITE}, but {' and '.join(missing)}",)
    return "contradicts", ()


def judge_rivals(verdicts: Mapping[str, Verdict]) -> tuple[str, Verdict]:
    """Judge the claim "A is ahead of every rival" by the verdicts on A against each.

    Args:
        verdicts: name of a rival -> the verdict on A against it; at least one.

    Returns:
        The rival that decides: the one with the least favourable verdict and, among equals, the smallest lead of A.
        Then the verdict with that rival's conditions, what is different for the others, and all intervals.

    >>> rival, verdict = judge_rivals({"LSTM": Verdict("agrees"), "GRU": Verdict("no difference seen")})
    >>> rival, str(verdict)
    ('GRU', 'no difference seen (against LSTM: agrees)')
    """
    deciding = min(verdicts, key=lambda rival: (ORDER.index(verdicts[rival].word), verdicts[rival].lead or 0.0))
    chosen = verdicts[deciding]
    different = {
        rival: (
            *([verdict.word] if verdict.word != chosen.word else []),
            *(note for note in verdict.conditions if note not in chosen.conditions),
        )
        for rival, verdict in verdicts.items()
    }
    others = tuple(f"against {', '.join(names)}: {', '.join(notes)}" for notes, names in _by_value(different) if notes)
    warnings = {warning: None for verdict in verdicts.values() for warning in verdict.warnings}
    return deciding, Verdict(
        chosen.word,
        chosen.conditions,
        tuple(warnings),
        _join_certainties(verdicts),
        chosen.lead,
        others,
        may_contradict=any(verdict.may_contradict for verdict in verdicts.values()),
    )


def _by_value(notes: Mapping[str, tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return every value once, with the names that have it."""
    return [(value, [name for name in notes if notes[name] == value]) for value in dict.fromkeys(notes.values())]


def _join_certainties(verdicts: Mapping[str, Verdict]) -> str:
    """Join what is known about each rival; the number of seeds comes first, once if it is the same for all.

    >>> _join_certainties({"GRU": Verdict("agrees", certainty="3 seeds; +1"), "MGU": NOT_MEASURED})
    '3 seeds; against GRU: +1'
    """
    parts = {rival: verdict.certainty.split("; ", 1) for rival, verdict in verdicts.items() if verdict.certainty}
    seeds = {part[0] for part in parts.values()}
    if len(seeds) == 1:
        return "; ".join([*seeds, *(f"against {rival}: {part[1]}" for rival, part in parts.items() if part[1:])])
    return "; ".join(f"against {rival}: {', '.join(part)}" for rival, part in parts.items())


def judge_count(
    holds: int,
    total: int,
    *,
    seeds: int,
    under: Conditions,
    enough: int | None = None,
    proved: bool = False,
    networks: str = "networks",
) -> Verdict:
    """Judge a statement about single networks by the number of those in which it holds.

    Args:
        holds, total: number of networks in which it holds, and of all.
        seeds: number of seeds among them.
        under: the conditions of our runs.
        enough: number of networks in which it must hold; None for all of them.
        proved: whether it is a theorem: it must hold on any data, and one exception is the opposite order.
        networks: the word for what is counted.

    >>> str(judge_count(3, 3, seeds=3, under=Conditions()))
    'agrees'
    >>> judge_count(1, 3, seeds=3, under=Conditions()).certainty
    '3 seeds; in 1 of 3 networks'
    """
    reason = "smoke runs" if under.smoke else _too_few(seeds)
    if reason:
        return Verdict("not measurable here", (*under.notes, reason), under.warnings)
    certainty = f"{seeds} seeds; in {holds} of {total} {networks}"
    needed = Conditions() if proved else under
    word: Word = "no difference seen"
    missing: tuple[str, ...] = ()
    if holds >= (total if enough is None else enough):
        word = "agrees"
    elif not holds or proved:
        word, missing = _judge_opposite(needed, seeds)
    possible = not needed.missing_for_contradiction(seeds)
    return Verdict(word, (*under.notes, *missing), under.warnings, certainty, may_contradict=possible)


COMPUTED = "computed"
"""The first word of the certainty of a fact about formulas."""


def judge_fact(holds: bool) -> Verdict:
    """Judge a statement that needs no training, such as the range of a formula."""
    return Verdict("agrees" if holds else "contradicts", (), (), f"{COMPUTED}, no seeds", may_contradict=True)


def summarise(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a whole table or figure from those on its claims.

    A contradiction of one claim contradicts the table. Otherwise it is not measurable if fewer than half of its claims
    are; it agrees if all measurable ones do, agrees but is weaker if at least half of them do, and shows no difference
    if fewer do.
    """
    measured = [verdict for verdict in verdicts if verdict.word != "not measurable here"]
    agreeing = [verdict for verdict in measured if verdict.word.startswith("agrees")]
    claims = "claim agrees" if len(verdicts) == 1 else "claims agree"
    counts: tuple[str, ...] = (f"{len(agreeing)} of {len(verdicts)} {claims}",)
    if len(measured) < len(verdicts):
        counts += (f"{len(verdicts) - len(measured)} not measurable",)
    word: Word = "no difference seen"
    if any(verdict.word == "contradicts" for verdict in measured):
        word = "contradicts"
    elif 2 * len(measured) < len(verdicts):
        word = "not measurable here"
    elif all(verdict.word == "agrees" for verdict in measured):
        word = "agrees"
    elif 2 * len(agreeing) >= len(measured):
        word = "agrees, weaker"
    return Verdict(word, counts)


def _reason_not_to_judge(seeds: int, under: Conditions, comparable: bool) -> str:
    if under.smoke:
        return "smoke runs"
    if not comparable:
        return "different numbers of epochs"
    few = _too_few(seeds)
    return f"{few} in common" if few else ""


def _too_few(seeds: int) -> str:
    return "" if seeds >= FEWEST_SEEDS else f"{seeds} seed{'' if seeds == 1 else 's'}"


def _baseline_warning(paper: Estimate, ours: Estimate, sign: int) -> tuple[str, ...]:
    lead = sign * (paper.mean - ours.mean)
    if lead <= (paper.std or 0.0) + (ours.std or 0.0):
        return ()
    return (f"the baseline is worse than the paper's ({ours} against {paper}), so the comparison may be too easy",)


def _notes(under: Conditions, *ours: Estimate) -> tuple[str, ...]:
    diverged = sum(estimate.diverged for estimate in ours)
    return (*under.notes, *([f"{diverged} diverged"] if diverged else []))
