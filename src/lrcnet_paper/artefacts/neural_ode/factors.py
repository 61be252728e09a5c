"""The factor between the errors of the Neural ODE and LRC-S after each length of training, which has no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.neural_ode.errors import JUDGED, MARKS, mean_error
from lrcnet_paper.artefacts.neural_ode.rows import ADAPTIVE, LRC_S, Row
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.interval import Interval, paired_interval
from lrcnet_paper.tasks.neural_ode import SYSTEMS

Factors = Mapping[str, Mapping[int, Interval]]
"""System -> iterations -> interval of the logarithm of the factor; above 0, LRC-S has the lower error."""


def factors_by_length(groups: Mapping[tuple[str, Row], Group]) -> Factors:
    """Compare the errors as the claims do, each model by its own solver, after every length that both reached."""
    return {
        system: {
            mark: interval
            for mark in MARKS
            if (interval := paired_interval(*_errors(groups, system, mark), by_ratio=True)) is not None
        }
        for system in SYSTEMS
    }


def factor_table(factors: Factors) -> Table:
    """Tabulate one row per system: the factor and its interval after each length."""
    rows: list[tuple[Cell, ...]] = [
        (
            definition.title,
            *(_describe(factors[system].get(mark)) for mark in MARKS),
            join_words(sorted({interval.seeds for interval in factors[system].values()})) or None,
        )
        for system, definition in SYSTEMS.items()
    ]
    return Table(
        "factors",
        "Error of the Neural ODE over that of LRC-S, each by its own solver, after 1000, 2000 and 4000 iterations",
        ("system", *(f"{mark} iterations" for mark in MARKS), "seeds"),
        rows,
        "Geometric mean of the factor over seeds, with its 95 % interval by Student's t; above 1, LRC-S has the lower "
        f"error. Claims are judged after {JUDGED} iterations alone.",
    )


def count_clear_factors(factors: Factors) -> list[str]:
    """Say on how many systems the interval excludes 1 after each length; return no sentence without an interval."""
    counts: list[str] = []
    for mark in MARKS:
        reached = [of_system[mark] for of_system in factors.values() if mark in of_system]
        if reached:
            below = sum(interval.high < 0 for interval in reached)
            against = f" ({below} in favour of the Neural ODE)" if below else ""
            clear = below + sum(interval.low > 0 for interval in reached)
            systems, iterations = ("", "") if counts else (" systems", " iterations")
            counts.append(f"{clear} of {len(reached)}{systems} after {mark}{iterations}{against}")
    if not counts:
        return []
    lasting = [
        SYSTEMS[system].title
        for system, of_system in factors.items()
        if len(of_system) == len(MARKS) and all(interval.low > 0 for interval in of_system.values())
    ]
    always = f"; after each of them on {join_words(lasting)}" if lasting else ""
    return [f"The 95 % interval of the factor between the errors excludes 1 on {join_words(counts)}{always}."]


def _errors(groups: Mapping[tuple[str, Row], Group], system: str, mark: int) -> list[Estimate | None]:
    return [mean_error(groups.get((system, row)), at=mark) for row in (ADAPTIVE, LRC_S)]


def _describe(interval: Interval | None) -> str | None:
    if interval is None:
        return None
    mean, low, high = (math.exp(value) for value in (interval.mean, interval.low, interval.high))
    return f"{mean:.3g} ({low:.3g} to {high:.3g})"
