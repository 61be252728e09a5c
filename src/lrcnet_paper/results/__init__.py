"""Finished runs: reading them from disk, grouping them by seed, measuring on them and judging the paper's claims."""
