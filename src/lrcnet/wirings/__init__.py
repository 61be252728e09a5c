"""Wirings: the synapses that a liquid network has, each excitatory (+1) or inhibitory (-1), for the option `wiring`.

Arguments, masks and polarities are those of ncps 1.0.1 for the same seed. Building a wiring twice changes nothing, a
layer works on a copy of its own, and `to_json` and `from_json` save and load every kind.
"""

from lrcnet.wirings.base import Wiring
from lrcnet.wirings.layered import Layered
from lrcnet.wirings.ncp import NCP, AutoNCP
from lrcnet.wirings.unstructured import FullyConnected, Random

__all__ = ["NCP", "AutoNCP", "FullyConnected", "Layered", "Random", "Wiring"]
