"""Text and tables that a report writes from its claims: the opening, the headline table, a text per section."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from lrcnet.pages.content import Cell, RichCell, Table
from lrcnet_paper.artefacts.artefact import Claim
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.report.assemble import ArtefactSection, current_runs
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.verdict import COMPUTED, OPPOSITE, WORDS, Word, summarise
from lrcnet_paper.tasks import PAPER_TASKS

UNTESTED: Word = "not measurable here"
PREDICATES: dict[Word, tuple[str, str]] = {
    "agrees": ("agrees", "agree"),
    "agrees, weaker": ("agrees with a smaller margin", "agree with a smaller margin"),
    "no difference seen": ("shows no difference", "show no difference"),
    "contradicts": ("is contradicted", "are contradicted"),
    "not measurable here": ("is not measurable here", "are not measurable here"),
}
"""Each verdict as the end of a sentence about one claim, and about several."""


def verdict_counts(sections: Sequence[ArtefactSection]) -> dict[Word, int]:
    """Count the claims of each verdict, in the order of `WORDS`."""
    counted: Counter[str] = Counter(claim.verdict.word for section in sections for claim in section.rendered.claims)
    return {word: counted[word] for word in WORDS}


def opening(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun]) -> list[str]:
    """Write five points: what was compared, what holds, what is undecided, what is contradicted, what is untested.

    Each but the first quotes the paper's statements on the tables and figures with that verdict as a whole.
    """
    counts = verdict_counts(sections)
    total, tables = sum(counts.values()), sum(bool(section.rendered.claims) for section in sections)
    weaker = f", {counts['agrees, weaker']} more with a smaller margin" if counts["agrees, weaker"] else ""
    return [
        f"This page sets {total} claims of the paper, from {tables} of its tables and figures, beside {_runs(runs)}.",
        f"{_count(counts['agrees'], 'claim agrees', 'claims agree')}{_computed(sections)}{weaker}."
        f"{_quote('These hold', sections, ('agrees',))}"
        f"{_quote('These hold in part', sections, ('agrees, weaker',))}",
        f"{_count(counts['no difference seen'], 'shows', 'show')} no difference beyond the spread."
        f"{_quote('Undecided', sections, ('no difference seen',))}",
        f"{_count(counts['contradicts'], 'is contradicted', 'are contradicted')}{_contradictable(sections)}."
        f"{_quote('These do not hold', sections, ('contradicts',))}",
        f"{_count(counts[UNTESTED], 'is', 'are')} not measurable here{_reasons(sections)}."
        f"{_quote('Open is', sections, (UNTESTED,))}"
        if counts[UNTESTED]
        else "All could be measured here.",
    ]


def _runs(runs: Sequence[FinishedRun]) -> str:
    """Say how many runs of ours are on the page: those on the paper's tasks, and those beyond it."""
    current = current_runs(runs)
    beyond = sum(run.result.task not in PAPER_TASKS for run in current)
    return f"{len(current) - beyond} runs of our own" + (f", and has {beyond} more on other tasks" if beyond else "")


def _computed(sections: Sequence[ArtefactSection]) -> str:
    """Say how many of the claims that agree are facts about formulas, which no training could have refuted."""
    agreeing = [c for section in sections for c in section.rendered.claims if c.verdict.word == "agrees"]
    facts = sum(claim.verdict.certainty.startswith(COMPUTED) for claim in agreeing)
    return f", {facts} of them about formulas alone" if facts else ""


def _contradictable(sections: Sequence[ArtefactSection]) -> str:
    """Say how many claims our runs could have contradicted; "" if all."""
    claims = [claim for section in sections for claim in section.rendered.claims]
    possible = sum(claim.verdict.may_contradict for claim in claims)
    if possible == len(claims):
        return ""
    return f"; our runs could contradict {possible}, as the others differ in data or length of training"


def verdict_word(section: ArtefactSection) -> str:
    """Return the verdict on a whole table or figure; "" if it has no claim."""
    return summarise([claim.verdict for claim in section.rendered.claims]).word if section.rendered.claims else ""


def new_differences(sections: Sequence[ArtefactSection]) -> dict[str, list[str]]:
    """Return name -> its differences from the protocol, each stated once; later sections refer to the first."""
    stated: dict[str, str] = {}
    result = {}
    for section in sections:
        new = [line for line in section.rendered.differences if line not in stated]
        known = dict.fromkeys(stated[line] for line in section.rendered.differences if line in stated)
        stated |= dict.fromkeys(new, section.title)
        result[section.name] = new + [f"As in “{title}”." for title in known]
    return result


@dataclass(frozen=True)
class SectionLink(RichCell):
    """The title of a section, which links to it on an HTML page."""

    name: str
    title: str

    def __str__(self) -> str:
        return self.title

    def to_html(self) -> str:
        return f'<a href="#{self.name}">{escape(self.title)}</a>'


def headline_table(sections: Sequence[ArtefactSection]) -> Table:
    """Return one row per table or figure of the paper: claim, paper, ours, verdict, how sure."""
    return Table(
        "headline",
        "The paper's tables and figures",
        ("table or figure", "claim", "paper", "ours", "verdict", "how sure"),
        [_headline_row(section) for section in sections if section.part == "paper"],
        "Every row has a section below. Its numbers are those of the first claim that could be tested there, or of the "
        "first one; its verdict summarises those on all claims by the rule at the end of the page.",
    )


def _headline_row(section: ArtefactSection) -> tuple[Cell, ...]:
    claims = section.rendered.claims
    if not claims:
        rendered = section.rendered
        state = "drawn" if rendered.pictures else "not measured" if rendered.skipped else "tabulated"
        return SectionLink(section.name, section.title), section.says or "no claim", None, state, None, None
    verdicts = [claim.verdict for claim in claims]
    certain = [verdict.certainty.split(";")[0] for verdict in verdicts if verdict.certainty]
    limits = list(dict.fromkeys(note for verdict in verdicts for note in verdict.conditions if _is_short(note)))
    warned = sum(bool(verdict.warnings) for verdict in verdicts)
    warnings = [f"{_count(warned, 'warning', 'warnings')}"] if warned else []
    sure = "; ".join([*dict.fromkeys(certain), *limits[:3], *warnings]) or None
    example = next((claim for claim in claims if claim.verdict.word != UNTESTED), claims[0])
    link = SectionLink(section.name, section.title)
    return link, section.says, example.paper, example.ours, summarise(verdicts), sure


def claims_table(claims: Sequence[Claim]) -> Table:
    """Return the claims of a section as a table."""
    return Table(
        "claims",
        "Claims",
        ("claim", "paper", "ours", "verdict", "how sure"),
        [
            (claim.statement, claim.paper, claim.ours, claim.verdict, claim.verdict.certainty or None)
            for claim in claims
        ],
    )


def interpretation(section: ArtefactSection) -> str:
    """Write two or three sentences about a section from its claims; "" if it has none."""
    claims = section.rendered.claims
    if not claims:
        return ""
    by_word = {word: [claim for claim in claims if claim.verdict.word == word] for word in WORDS}
    parts = [_count(len(members), *PREDICATES[word]) for word, members in by_word.items() if members]
    of_all = f"Of {len(claims)} claims, {join_words(parts)}" if len(claims) > 1 else f"Of its claims, {parts[0]}"
    sentences = [f"The paper says: {section.says} {of_all}."]
    agreeing = by_word["agrees"] + by_word["agrees, weaker"]
    if agreeing:
        sentences.append(f"An example of what holds: {_describe(agreeing[0])}.")
    if by_word["contradicts"]:
        sentences.append(f"An example of what does not hold: {_describe(by_word['contradicts'][0])}.")
    elif by_word["no difference seen"]:
        sentences.append(f"An example of what is undecided: {_describe(by_word['no difference seen'][0])}.")
    opposite = [claim for claim in by_word[UNTESTED] if _is_opposite(claim)]
    if opposite:
        sentences.append(
            f"An example of the opposite order, in runs that cannot contradict the paper: {_describe(opposite[0])}."
        )
    elif len(by_word[UNTESTED]) == len(claims):
        sentences.append(f"Nothing can be said yet{_reasons([section])}.")
    warned = sum(bool(claim.verdict.warnings) for claim in claims)
    if warned:
        sentences.append(f"{_count(warned, 'comparison carries', 'comparisons carry')} a warning beside the verdict.")
    return " ".join(sentences)


def _describe(claim: Claim) -> str:
    certainty = claim.verdict.certainty
    if "; against " in certainty:
        certainty = certainty.partition(";")[0]  # the table has the intervals of all rivals
    sure = f", {certainty}" if certainty else ""
    return f"{claim.statement.rstrip('.')} (paper: {claim.paper}; ours: {claim.ours}{sure})"


def _quote(heading: str, sections: Sequence[ArtefactSection], words: Sequence[str]) -> str:
    """Quote the statements of the tables and figures that have one of these verdicts as a whole; "" if none has."""
    statements = [section.says.rstrip(".") for section in sections if verdict_word(section) in words]
    return f" {heading}: {'; '.join(map(_continue_sentence, statements))}." if statements else ""


def _continue_sentence(text: str) -> str:
    """Return a sentence as it stands after a colon: its first letter is small, except in names such as LRC."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _count(number: int, one: str, many: str) -> str:
    return f"{number or 'None'} {many if number > 1 else one}"


def _is_opposite(claim: Claim) -> bool:
    """Tell whether a claim came out the other way without contradicting the paper."""
    return any(note.startswith(OPPOSITE) for note in claim.verdict.conditions)


def _reasons(sections: Sequence[ArtefactSection]) -> str:
    """Return the reasons why claims are not measurable, each with its number of claims."""
    reasons = Counter(
        "came out the other way, on data or after a training that cannot contradict the paper"
        if _is_opposite(claim)
        # The last condition is the reason; the ones before it describe the runs.
        else next(map(_in_words, claim.verdict.conditions[-1:]), "no reason given")
        for section in sections
        for claim in section.rendered.claims
        if claim.verdict.word == UNTESTED
    )
    listed = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    return f": {listed}" if reasons else ""


def _in_words(reason: str) -> str:
    if reason == "not measured":
        return "without runs under today's protocol"
    few = reason.removesuffix(" in common")
    return f"with {few} only" if few.endswith((" seed", " seeds")) else f"with {few}"


def _is_short(note: str) -> bool:
    return not note.startswith(OPPOSITE) and note != "not measured"
