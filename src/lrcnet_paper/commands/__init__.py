"""Subcommands of `lrcnet` that the suite adds, one file each, registered as entry points in pyproject.toml."""
