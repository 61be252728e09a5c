"""Looking into trained networks: what a camera policy looks at, and what the neurons of any sequence model do."""

from lrcnet.interpret.attention import Box, attention, attention_under_noise, box, similarity
from lrcnet.interpret.second_opinion import gradient_attention, integrated_gradients
from lrcnet.interpret.visual_backprop import visual_backprop

__all__ = [
    "Box",
    "attention",
    "attention_under_noise",
    "box",
    "gradient_attention",
    "integrated_gradients",
    "similarity",
    "visual_backprop",
]
