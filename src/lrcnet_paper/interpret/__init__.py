"""Interpretation of camera policies: attention, scenes to measure it on, and the activity of neurons along drives."""

from lrcnet_paper.interpret.attention import Box, attention, attention_under_noise, box, similarity, smooth
from lrcnet_paper.interpret.gradient_attention import gradient_attention
from lrcnet_paper.interpret.neurons import WatchedDrive, correlation, drive_and_watch, side, swings, turning_cells
from lrcnet_paper.interpret.scenes import scene_regions, scenes

__all__ = [
    "Box",
    "WatchedDrive",
    "attention",
    "attention_under_noise",
    "box",
    "correlation",
    "drive_and_watch",
    "gradient_attention",
    "scene_regions",
    "scenes",
    "side",
    "similarity",
    "smooth",
    "swings",
    "turning_cells",
]
