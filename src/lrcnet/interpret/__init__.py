"""Looking into trained networks: what a camera policy looks at, and what the neurons of any sequence model do."""

from lrcnet.interpret.attention import Box, attention, attention_under_noise, box, similarity
from lrcnet.interpret.heat_map import heat_map
from lrcnet.interpret.neurons import Driven, correlation, drive_and_watch, side, swings, turning_cells
from lrcnet.interpret.scenes import scenes
from lrcnet.interpret.second_opinion import gradient_attention, integrated_gradients
from lrcnet.interpret.shares import Shares, marks, ranked, shares
from lrcnet.interpret.trace import Trace, trace
from lrcnet.interpret.visual_backprop import visual_backprop

__all__ = [
    "Box",
    "Driven",
    "Shares",
    "Trace",
    "attention",
    "attention_under_noise",
    "box",
    "correlation",
    "drive_and_watch",
    "gradient_attention",
    "heat_map",
    "integrated_gradients",
    "marks",
    "ranked",
    "scenes",
    "shares",
    "side",
    "similarity",
    "swings",
    "trace",
    "turning_cells",
    "visual_backprop",
]
