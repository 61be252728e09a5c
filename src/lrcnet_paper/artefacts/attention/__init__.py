"""Figures: the attention of the lane-keeping policies, and its change under noise."""

from lrcnet_paper.artefacts.attention.similarity import ARTEFACT

__all__ = ["ARTEFACT"]
