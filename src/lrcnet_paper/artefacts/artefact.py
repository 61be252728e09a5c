"""What a table or figure of the paper is here: a title, the paper's numbers, the runs it needs, how it is drawn.

An artefact is a module of this package with

- `TITLE`: one line for people,
- `CLAIMED`: the paper's numbers as data,
- `runs(budget, seeds) -> list[RunSpec]`: what must have been trained, empty for a drawing,
- `render(runs) -> Rendered`: tables, figures and verdicts out of whatever has been trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from lrcnet.errors import one_of
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lrcnet_paper.results.finished import Finished
    from lrcnet_paper.training.spec import RunSpec

Budget = Literal["smoke", "quick", "paper"]
BUDGETS: tuple[str, ...] = get_args(Budget)

Cell = str | int | float | Estimate | Verdict | None


@dataclass(frozen=True)
class Table:
    """A table as data; how it looks is the report's affair.

    Attributes:
        name: of its files, unique within the artefact.
        title: one line above it.
        columns: headings, with units.
        rows: cells; None is shown as a dash.
        note: what a reader must know, below it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"each row of {self.name} must have {len(self.columns)} cells, but one is {row}")


@dataclass(frozen=True)
class Picture:
    """A figure with the words that replace it for those who cannot see it.

    Attributes:
        name: of its files, unique within the artefact.
        caption: below it.
        alt: what it shows, for screen readers.
        figure: matplotlib's.
    """

    name: str
    caption: str
    alt: str
    figure: Figure


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what became of it."""

    statement: str
    paper: str
    ours: str
    verdict: Verdict


@dataclass(frozen=True)
class Rendered:
    """What an artefact gives: everything a page needs, nothing of how the page looks.

    Attributes:
        tables, pictures, claims: in the order of reading.
        skipped: pictures that could not be drawn, each with its reason.
    """

    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    claims: Sequence[Claim] = ()
    skipped: Sequence[str] = field(default=())


class Artefact(Protocol):
    """The contract of a module of this package."""

    TITLE: str
    CLAIMED: Mapping[str, Any]

    def runs(self, budget: str, seeds: int | None = None) -> list[RunSpec]:
        """The runs that this artefact needs at a budget, `seeds` of each (None: the budget's own number)."""
        ...

    def render(self, runs: Sequence[Finished]) -> Rendered:
        """Tables, figures and verdicts; runs of other artefacts among the given ones are passed over."""
        ...


def check_budget(budget: str) -> Budget:
    """`budget`, if it is one; the error lists them."""
    return one_of("budget", budget, BUDGETS)  # type: ignore[return-value]
