"""The rules by which a claim of the paper is reproduced, better, not reached or refuted; they have no exceptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from lrcnet.pages.content import RichCell
from lrcnet_paper.results.estimate import Estimate

Word = Literal["reproduced", "better", "not reached", "refuted", "open"]
# The symbol stands beside the word, so that a verdict never depends on its colour alone.
SYMBOLS: dict[str, str] = {"better": "▲", "reproduced": "✓", "not reached": "▽", "refuted": "✗", "open": "·"}

RULES: tuple[str, ...] = (
    "Every number is a mean ± standard deviation (n - 1) over seeds, taken at the epoch that the protocol names (the "
    "last one, or the one of best validation), never at the best test epoch.",
    "A number is reproduced if it lies within s_paper + s_ours of the paper's mean, where s are the standard "
    "deviations; better or not reached if it lies further away, on the better or the worse side. On the worse side "
    "s_ours counts for at most twice s_paper: seeds that scatter widely do not reproduce a sharp number.",
    "A comparison says that A is ahead of B by the paper's margin M. With our margin D and s = sqrt(s_A² + s_B²) it is "
    "better if D > M + s, reproduced if D ≥ M - s and D is at least half the margin (D ≥ M / 2), refuted if D < -s (B "
    "is ahead by more than the spread), and otherwise not reached.",
    "One seed has no spread: the paper's spread replaces it, and the verdict says “1 seed”.",
    "A single number cannot be refuted, only not reached. A run shorter than the paper's cannot refute a claim either: "
    "its verdict is not reached.",
    "Open means no verdict: nothing was measured, or only by smoke runs, which are too short to judge, or A and B were "
    "trained for different numbers of epochs.",
    "If data or budget differ from the paper's, the verdict names the difference.",
)
"""The rules in words, as reports print them."""


@dataclass(frozen=True)
class Verdict(RichCell):
    """A word, and the conditions that a reader must know beside it.

    Example:
        >>> str(Verdict("reproduced", ("on coarse data",)))
        'reproduced (on coarse data)'
    """

    word: Word
    conditions: tuple[str, ...] = ()

    column_class = "verdicts"

    def __str__(self) -> str:
        return f"{self.word} ({', '.join(self.conditions)})" if self.conditions else self.word

    def to_html(self) -> str:
        rest = f'<span class="conditions">{escape(", ".join(self.conditions))}</span>' if self.conditions else ""
        symbol = f'<span aria-hidden="true">{SYMBOLS[self.word]}</span>'
        return f'<span class="verdict {self.word.replace(" ", "-")}">{symbol} {self.word}</span>{rest}'


@dataclass(frozen=True)
class Conditions:
    """The conditions of our runs, as far as they matter for a verdict.

    Attributes:
        smoke: whether the runs have the smoke budget.
        shorter: whether they are shorter than the paper's.
        notes: differences from the paper to name, such as "on coarse data" and "5 of 30 epochs".
    """

    smoke: bool = False
    shorter: bool = False
    notes: tuple[str, ...] = ()


def judge_number(
    paper: Estimate, ours: Estimate | None, *, larger_is_better: bool, under: Conditions | None = None
) -> Verdict:
    """Judge a single number.

    Args:
        paper: the paper's number.
        ours: our number, or None if there is none.
        larger_is_better: the direction of the metric.
        under: the conditions of our runs.

    Example:
        >>> judge_number(Estimate(0.019, 0.005, 3), Estimate(0.021, 0.004, 3), larger_is_better=False)
        Verdict(word='reproduced', conditions=())
    """
    under = under or Conditions()
    if ours is None:
        return Verdict("open", ("not measured",))
    notes = _notes(under, ours)
    if under.smoke:
        return Verdict("open", notes)
    gain = (ours.mean - paper.mean) * (1 if larger_is_better else -1)
    claimed, spread = paper.std or 0.0, _spread(ours, paper)
    allowed = claimed + (min(spread, 2 * claimed) if claimed else spread)
    if math.isnan(gain) or gain < -allowed:
        return Verdict("not reached", notes)
    return Verdict("better" if gain > claimed + spread else "reproduced", notes)


def judge_comparison(
    paper: tuple[Estimate, Estimate],
    ours: tuple[Estimate | None, Estimate | None],
    *,
    larger_is_better: bool,
    under: Conditions | None = None,
    comparable: bool = True,
) -> Verdict:
    """Judge the claim "A is ahead of B", where the paper has A ahead.

    Args:
        paper: the paper's numbers of A and B.
        ours: our numbers of A and B.
        larger_is_better: the direction of the metric.
        under: the conditions of our runs.
        comparable: False if A and B were trained for different numbers of epochs.

    Raises:
        ValueError: if the paper does not have A ahead of B.

    Example:
        >>> claimed = Estimate(84.21, 0.26, 3), Estimate(82.90, 0.31, 3)
        >>> judge_comparison(claimed, (Estimate(70.0, 0.3, 3), Estimate(75.0, 0.3, 3)), larger_is_better=True).word
        'refuted'
    """
    under = under or Conditions()
    sign = 1 if larger_is_better else -1
    margin = sign * (paper[0].mean - paper[1].mean)
    if margin < 0:
        raise ValueError(f"the paper must have the first model ahead, but its margin is {margin:g}; swap them")
    first, second = ours
    if first is None or second is None:
        return Verdict("open", ("not measured",))
    notes = _notes(under, first, second)
    if not comparable:
        return Verdict("open", (*notes, "different numbers of epochs"))
    if under.smoke:
        return Verdict("open", notes)
    our_margin = sign * (first.mean - second.mean)
    spread = math.hypot(_spread(first, paper[0]), _spread(second, paper[1]))
    if our_margin > margin + spread:
        return Verdict("better", notes)
    if our_margin > 0 and our_margin >= max(margin - spread, margin / 2):
        return Verdict("reproduced", notes)
    return Verdict("refuted" if our_margin < -spread and not under.shorter else "not reached", notes)


def _spread(ours: Estimate, paper: Estimate) -> float:
    return ours.std if ours.std is not None else (paper.std or 0.0)


def _notes(under: Conditions, *ours: Estimate) -> tuple[str, ...]:
    fewest = min(estimate.seeds for estimate in ours)
    diverged = sum(estimate.diverged for estimate in ours)
    added: Sequence[str] = [
        *(["smoke runs"] if under.smoke else []),
        *(["1 seed"] if fewest == 1 else []),
        *([f"{diverged} diverged"] if diverged else []),
    ]
    return (*under.notes, *added)
