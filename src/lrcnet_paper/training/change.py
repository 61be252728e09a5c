"""`Change`: the choices in which a run leaves its task's recipe or its model's own solver, as data and as text."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """Solver, schedule and learning rate of a run where they differ from the default; false if none does.

    Attributes:
        solver: solver and unfoldings, "" for the model's own.
        schedule: name of the schedule, "" for the recipe's.
        rate: learning rate, None for the recipe's or the budget's own.

    Example:
        >>> bool(Change()), bool(Change(schedule="cosine"))
        (False, True)
    """

    solver: str = ""
    schedule: str = ""
    rate: float | None = None

    def __bool__(self) -> bool:
        return self != Change()

    def label(self) -> str:
        """Return text for people, "" if nothing differs.

        >>> Change("hybrid-1", rate=0.01).label()
        'hybrid-1, rate 0.01'
        """
        return ", ".join(self._parts("rate "))

    def slug(self) -> str:
        """Return text for file names and for the patterns of `lrcnet reproduce --only`.

        >>> Change("hybrid-1", rate=0.01).slug()
        'hybrid-1,lr0.01'
        """
        return ",".join(self._parts("lr"))

    def _parts(self, rate_prefix: str) -> list[str]:
        rate = "" if self.rate is None else f"{rate_prefix}{self.rate:g}"
        return [part for part in (self.solver, self.schedule, rate) if part]
