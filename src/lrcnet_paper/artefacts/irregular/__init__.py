"""Tables and figure: irregularly sampled data; beyond the LRC paper."""

from lrcnet_paper.artefacts.irregular.table import ARTEFACT

__all__ = ["ARTEFACT"]
