"""The contract of an artefact, which is a table or figure of the paper, and the parts that it renders to.

Each artefact is one module or one folder of this package and exports `ARTEFACT`: an `Artefact`, or a
`MeasuringArtefact` if it also measures something on the trained networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from lrcnet.pages.content import Picture, Table
from lrcnet_paper.results.verdict import Verdict, judge_rivals

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec


Part = Literal["paper", "sensitivity", "set-up"]
"""The part of a report: a table or figure of the paper, one of our own beside them, or the set-up on a second page."""


class Comparison(NamedTuple):
    """One model against one rival: the paper's number, our number, and the verdict."""

    paper: str
    ours: str
    verdict: Verdict


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, the paper's number, our number, and the verdict."""

    statement: str
    paper: str
    ours: str
    verdict: Verdict

    @classmethod
    def against_all(cls, statement: str, comparisons: Mapping[str, Comparison]) -> Claim:
        """Return the claim that one model is ahead of several rivals; its numbers are those of the one that decides.

        Args:
            statement: the claim.
            comparisons: name of a rival -> the comparison with it.
        """
        rival, verdict = judge_rivals({name: one.verdict for name, one in comparisons.items()})
        paper, ours, _ = comparisons[rival]
        # The paper's words, as opposed to its numbers, are the same for every rival.
        differ = len({one.paper for one in comparisons.values()}) > 1
        return cls(
            statement, f"{paper} ({rival})" if differ else paper, ours if ours == "–" else f"{ours} ({rival})", verdict
        )


@dataclass(frozen=True)
class Rendered:
    """The content of an artefact: everything that a page needs, and nothing about how the page looks.

    Attributes:
        tables, pictures, claims: in the order of reading; the first picture is the one of the paper.
        skipped: pictures that could not be drawn, each with its reason.
        differences: how our experiment differs from the paper's protocol, one sentence each.
        sensitivities: tables and pictures about other data, rates, solvers and initial values, which have no verdict.
    """

    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    claims: Sequence[Claim] = ()
    skipped: Sequence[str] = field(default=())
    differences: Sequence[str] = ()
    sensitivities: Sequence[Table | Picture] = ()


class PlanRuns(Protocol):
    """A function that lists the runs of a budget."""

    def __call__(self, budget: str, seeds: int | None = None) -> list[RunSpec]: ...


@dataclass(frozen=True)
class Artefact:
    """A table or figure of the paper.

    Attributes:
        title: one line for people.
        says: the statement of the paper that this table or figure supports, in one sentence; "" if it is a drawing or
            part of the set-up.
        part: the part of a report that it belongs to.
        claimed: the paper's numbers as data.
        runs: `runs(budget, seeds)` lists the runs that must have been trained, `seeds` of each (None: the budget's own
            number); empty for a drawing.
        render: `render(finished_runs)` makes tables, figures and verdicts; it ignores the runs of other artefacts.
    """

    title: str
    claimed: Mapping[str, Any]
    runs: PlanRuns
    render: Callable[[Sequence[FinishedRun]], Rendered]
    says: str = field(default="", kw_only=True)
    part: Part = field(default="paper", kw_only=True)


@dataclass(frozen=True)
class MeasuringArtefact(Artefact):
    """An artefact that also measures something on trained networks, such as crashes, attention or neural activity.

    Each measurement is made once and written into the run's folder; see `lrcnet_paper.results.analysis`.

    Attributes:
        wants: `wants(result)` says whether this artefact measures a finished run.
        analyse: `analyse(folder)` loads the weights from a run's folder and returns the measurement as JSON values.
    """

    wants: Callable[[Result], bool]
    analyse: Callable[[Path], dict[str, Any]]
