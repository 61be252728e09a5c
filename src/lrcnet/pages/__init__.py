"""Palette and style sheet of every figure and HTML page (extra `plot`)."""
