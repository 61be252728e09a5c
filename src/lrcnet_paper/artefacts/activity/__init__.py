"""Figures: the activity of neurons along the driven road."""

from lrcnet_paper.artefacts.activity.cells import ARTEFACT

__all__ = ["ARTEFACT"]
