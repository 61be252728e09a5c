"""One file per table or figure of the paper: its title, the paper's numbers, the runs it needs, how it is drawn.

`ARTEFACTS` names them all; to add one, write its module after the contract in `artefact.py` and add a line here.
"""

from __future__ import annotations

import importlib
from typing import cast

from lrcnet.errors import one_of
from lrcnet.paper.artefact import Artefact

ARTEFACTS: dict[str, str] = {
    "elastance": "lrcnet.paper.elastance",
    "architecture": "lrcnet.paper.architecture",
    "classification": "lrcnet.paper.classification",
    "neural-ode": "lrcnet.paper.neural_ode",
    "dynamics": "lrcnet.paper.dynamics",
    "efficiency": "lrcnet.paper.efficiency",
    "loss-curves": "lrcnet.paper.loss_curves",
    "training-time": "lrcnet.paper.training_time",
    "scenes": "lrcnet.paper.scenes",
    "lane-keeping": "lrcnet.paper.lane_keeping",
    "closed-loop": "lrcnet.paper.closed_loop",
    "other-worlds": "lrcnet.paper.other_worlds",
    "attention": "lrcnet.paper.attention",
    "correlation": "lrcnet.paper.correlation",
    "activity": "lrcnet.paper.activity",
    "setup": "lrcnet.paper.setup",
}
"""name -> module, in the order of the paper, which is that of a report."""


def load(name: str) -> Artefact:
    """The artefact of that name.

    Raises:
        ValueError: for an unknown name; the message lists the valid ones.

    Example:
        >>> load("elastance").TITLE
        'The two shapes of the elastance'
    """
    module = importlib.import_module(ARTEFACTS[one_of("artefact", name, ARTEFACTS)])
    return cast("Artefact", module)


__all__ = ["ARTEFACTS", "Artefact", "load"]
