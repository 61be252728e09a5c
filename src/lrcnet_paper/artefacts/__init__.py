"""One file per table or figure of the paper: its title, the paper's numbers, the runs it needs, how it is drawn.

`ARTEFACTS` names them all; to add one, write its module after the contract in `artefact.py` and add a line here.
"""

from __future__ import annotations

import importlib
from typing import cast

from lrcnet.errors import one_of
from lrcnet_paper.artefacts.artefact import Artefact

ARTEFACTS: dict[str, str] = {
    "elastance": "lrcnet_paper.artefacts.elastance",
    "architecture": "lrcnet_paper.artefacts.architecture",
    "classification": "lrcnet_paper.artefacts.classification",
    "neural-ode": "lrcnet_paper.artefacts.neural_ode",
    "dynamics": "lrcnet_paper.artefacts.dynamics",
    "efficiency": "lrcnet_paper.artefacts.efficiency",
    "loss-curves": "lrcnet_paper.artefacts.loss_curves",
    "training-time": "lrcnet_paper.artefacts.training_time",
    "scenes": "lrcnet_paper.artefacts.scenes",
    "lane-keeping": "lrcnet_paper.artefacts.lane_keeping",
    "closed-loop": "lrcnet_paper.artefacts.closed_loop",
    "other-worlds": "lrcnet_paper.artefacts.other_worlds",
    "attention": "lrcnet_paper.artefacts.attention",
    "correlation": "lrcnet_paper.artefacts.correlation",
    "activity": "lrcnet_paper.artefacts.activity",
    "setup": "lrcnet_paper.artefacts.setup",
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
