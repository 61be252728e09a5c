"""`FinishedRun`: a finished run as artefacts see it, with its result, learning curves, trajectory and measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lrcnet_paper.training.result import Result

Curve = Sequence[float | None]


@dataclass(frozen=True)
class FinishedRun:
    """One finished run.

    Attributes:
        result: the outcome and the description of the run.
        history: column of the metrics file -> one value per epoch (or evaluation), None where it has none.
        prediction: name -> array as nested lists; for a trajectory `times` (N) and `states` (N, 2). Empty if there is
            none.
        analyses: name of an artefact -> its measurement on this run; see `analysis.py`.
    """

    result: Result
    history: Mapping[str, Curve] = field(default_factory=dict)
    prediction: Mapping[str, Any] = field(default_factory=dict)
    analyses: Mapping[str, Any] = field(default_factory=dict)

    def curve(self, column: str, *, over: Sequence[str] = ("iteration", "epoch")) -> tuple[list[float], list[float]]:
        """Return the points of a column that have a value: (epochs or iterations, values)."""
        positions = next((self.history[name] for name in over if name in self.history), None)
        if positions is None or column not in self.history:
            return [], []
        pairs = [
            (float(x), float(y))
            for x, y in zip(positions, self.history[column], strict=True)
            if x is not None and y is not None and math.isfinite(y)
        ]
        return [x for x, _ in pairs], [y for _, y in pairs]
