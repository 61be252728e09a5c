"""The wirings under the path that ncps has them at."""

from lrcnet.wirings import NCP, AutoNCP, FullyConnected, Random, Wiring

__all__ = ["NCP", "AutoNCP", "FullyConnected", "Random", "Wiring"]
