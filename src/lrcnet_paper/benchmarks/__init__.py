"""Benchmarks of the suite, one file each with a function `measure`, registered as entry points in pyproject.toml."""
