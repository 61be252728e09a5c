"""One file or folder per table or figure of the paper: its title, the paper's numbers, its runs, and its drawing.

`ARTEFACTS` names them all; to add one, write a module that exports `ARTEFACT` (see `artefact.py`) and add a line here.
"""

from __future__ import annotations

import importlib

from lrcnet.errors import one_of
from lrcnet_paper.artefacts.artefact import Artefact, MeasuringArtefact

ARTEFACTS: dict[str, str] = {
    "elastance": "lrcnet_paper.artefacts.elastance",
    "architecture": "lrcnet_paper.artefacts.architecture",
    "classification": "lrcnet_paper.artefacts.classification",
    "neural-ode": "lrcnet_paper.artefacts.neural_ode",
    "dynamics": "lrcnet_paper.artefacts.dynamics",
    "theorems": "lrcnet_paper.artefacts.theorems",
    "efficiency": "lrcnet_paper.artefacts.efficiency",
    "loss-curves": "lrcnet_paper.artefacts.loss_curves",
    "training-time": "lrcnet_paper.artefacts.training_time",
    "scenes": "lrcnet_paper.artefacts.scenes",
    "lane-keeping": "lrcnet_paper.artefacts.lane_keeping",
    "closed-loop": "lrcnet_paper.artefacts.closed_loop",
    "liquid-policies": "lrcnet_paper.artefacts.liquid_policies",
    "other-worlds": "lrcnet_paper.artefacts.other_worlds",
    "attention": "lrcnet_paper.artefacts.attention",
    "correlation": "lrcnet_paper.artefacts.correlation",
    "activity": "lrcnet_paper.artefacts.activity",
    "long": "lrcnet_paper.artefacts.long_sequences",
    "irregular": "lrcnet_paper.artefacts.irregular",
    "setup": "lrcnet_paper.artefacts.setup",
}
"""name -> module that exports `ARTEFACT`, in the order of the paper and of a report; "long" and "irregular" go beyond
it."""


def load(name: str) -> Artefact:
    """Return the artefact of that name.

    Raises:
        ValueError: for an unknown name; the message lists the valid ones.

    Example:
        >>> load("elastance").title
        'The two shapes of the elastance'
    """
    artefact = importlib.import_module(ARTEFACTS[one_of("artefact", name, ARTEFACTS)]).ARTEFACT
    assert isinstance(artefact, Artefact), f"{ARTEFACTS[name]}.ARTEFACT must be an Artefact"
    return artefact


__all__ = ["ARTEFACTS", "Artefact", "MeasuringArtefact", "load"]
