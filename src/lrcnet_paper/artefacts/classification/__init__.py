"""Table: accuracy of the gated units and both LRCUs on three classification benchmarks."""

from lrcnet_paper.artefacts.classification.table import ARTEFACT

__all__ = ["ARTEFACT"]
