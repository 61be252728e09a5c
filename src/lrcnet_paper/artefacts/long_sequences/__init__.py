"""Table: SelfRegulationSCP1 and SCP2 by the protocol of the LrcSSM paper; beyond the LRC paper."""

from lrcnet_paper.artefacts.long_sequences.table import ARTEFACT

__all__ = ["ARTEFACT"]
