"""Finished runs: reading, grouping and judging them."""
