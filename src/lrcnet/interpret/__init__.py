"""Looking into trained networks: states, gates and time constants, shares of inputs and neurons, attention."""

from lrcnet.interpret.heat_map import heat_map
from lrcnet.interpret.integrated_gradients import integrated_gradients
from lrcnet.interpret.page import page
from lrcnet.interpret.shares import Shares, marks, rank, shares
from lrcnet.interpret.trace import Trace, trace
from lrcnet.interpret.visual_backprop import visual_backprop

__all__ = [
    "Shares",
    "Trace",
    "heat_map",
    "integrated_gradients",
    "marks",
    "page",
    "rank",
    "shares",
    "trace",
    "visual_backprop",
]
