"""Memory for what a backward pass needs, which the next training step uses again.

malloc gives blocks of tens of megabytes back to the system when they are freed, and the system clears every page of a
new block: on two threads that is a tenth of a training step. A block is mapped here instead, and when its tensor is
freed, it waits for the next one.
"""

import mmap
import sys
import weakref
from math import prod

import torch
from torch import Tensor

# malloc keeps smaller blocks itself.
_SMALLEST = 8 << 20
_MOST_SPARE = 256 << 20
"""Bytes that wait to be used again, at most."""

_CAN_MAP = sys.platform != "win32"
_spare: list[mmap.mmap] = []


def new_kept(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return an uninitialised tensor on the CPU, of the dtype of another one; all sizes must be known."""
    numbers = prod(shape)
    size = numbers * like.element_size()
    block = _take(size) if size >= _SMALLEST and _CAN_MAP else None
    if block is None:
        return like.new_empty(shape)
    # The storage of the tensor holds the view, and nothing else does.
    view = memoryview(block)
    weakref.finalize(view, _give_back, block).atexit = False
    return torch.frombuffer(view, dtype=like.dtype, count=numbers).view(shape)


def _take(size: int) -> mmap.mmap | None:
    """Return a spare block if one fits, or else a new one; None if there is no memory, so that torch says so."""
    for block in sorted(_spare, key=len):
        if size <= len(block) <= 2 * size:
            try:
                _spare.remove(block)
            except ValueError:  # another thread took it
                continue
            return block
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, ValueError, OverflowError):
        return None


def _give_back(block: mmap.mmap) -> None:
    # Called whenever Python frees a view, so without a lock: two threads at once may keep a block too many.
    if sum(map(len, _spare)) + len(block) <= _MOST_SPARE:
        _spare.append(block)
