"""The budgets: how much computing time a run may spend. Numbers of different budgets are never compared."""

from __future__ import annotations

from typing import Literal, cast, get_args

from lrcnet.errors import one_of

Budget = Literal["smoke", "quick", "paper"]
BUDGETS: tuple[str, ...] = get_args(Budget)
"""Budgets that every artefact plans its runs for: seconds, minutes on two cores, and the paper's full protocol."""

LONG = "long"
"""Between quick and paper: a day on two cores; see `lrcnet_paper.reproduction.long_budget`."""

CUSTOM = "custom"
"""The label of a run whose settings come from the user and not from a budget."""


def check_budget(budget: str) -> Budget:
    """Return `budget` if it is one of `BUDGETS`; the error lists the valid ones."""
    return cast("Budget", one_of("budget", budget, BUDGETS))
