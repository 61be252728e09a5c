"""ncps 1.0.1 on this library's kernels: `lrcnet.compat.ncps.torch` and `.wirings` have its names and signatures.

The modules have ncps' parameters, so state dicts of either library load into the other, and the same seed draws the
same initial values. `convert` turns a module into a layer of this library instead. docs/from-ncps.md says what differs.
"""

from lrcnet.compat.ncps import torch, wirings
from lrcnet.compat.ncps.conversion import convert

__all__ = ["convert", "torch", "wirings"]
