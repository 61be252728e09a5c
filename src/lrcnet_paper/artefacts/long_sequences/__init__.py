"""Table: SelfRegulationSCP1 and SCP2 by the protocol of the LrcSSM paper; beyond the LRC paper."""
