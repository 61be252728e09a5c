"""How the network of a run knows the gaps, in the words of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrcnet_paper import tasks
from lrcnet_paper.models.padded import choose_gaps

if TYPE_CHECKING:
    from lrcnet_paper.training.spec import RunSpec

USES = {"step": "step", "feature": "input", "both": "step and input", "none": "unknown"}


def knows_gaps(spec: RunSpec) -> bool:
    """Tell whether the network is given the gaps."""
    return _use(spec) != "none"


def describe_use(spec: RunSpec) -> str:
    """Name the use of gaps, as in the column "gap as"."""
    return USES[_use(spec)]


def _use(spec: RunSpec) -> str:
    return choose_gaps(spec.model, tasks.find(spec.task, spec.variant), str(spec.options.get("gaps", "")))
