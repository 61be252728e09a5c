"""Output to a terminal: its width, colours, and a block of lines at its end that is redrawn in place.

Commands use this file before anything heavy is imported, so it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

COLOURS = {"green": 32, "yellow": 33, "red": 31, "blue": 34, "grey": 90, "bold": 1}
REDRAWS_PER_SECOND = 10


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal that understands cursor movements."""
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """Return the width of the terminal in characters (`COLUMNS` overrides it)."""
    with contextlib.suppress(ValueError):
        if (width := int(os.environ.get("COLUMNS", ""))) > 0:
            return width
    # The first status line appears before anything else is imported; `shutil`, which knows this too, is slow to import.
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no terminal, closed, or None
            return os.get_terminal_size(stream.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def table_width(wide: bool) -> int | None:
    """Return the width that tables must fit: that of the terminal; None if stdout is none, or all columns are asked."""
    return None if wide or not sys.stdout.isatty() else columns()


def paint(text: str, colour: str, stream: Any = None) -> str:
    """Return text in a colour if the stream (stdout by default) is a terminal and `NO_COLOR` is not set."""
    if os.environ.get("NO_COLOR") or not is_terminal(sys.stdout if stream is None else stream):
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def cut(text: str, width: int) -> str:
    """Return text of at most `width` characters; a longer one ends with an ellipsis.

    Example:
        >>> cut("liquid capacitance", 8), cut("liquid", 8)
        ('liquid …', 'liquid')
    """
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


class LiveBlock:
    """Lines at the end of a terminal that are redrawn in place, below everything else that is printed.

    Args:
        stream: the terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._height = 0
        self._drawn_at = 0.0
        self._in_line = False

    def draw(self, lines: Sequence[str], *, at_once: bool = False) -> None:
        """Show these lines in place of the last ones, at most ten times a second unless it must be at once."""
        now = time.monotonic()
        if self._in_line or (not at_once and now - self._drawn_at < 1 / REDRAWS_PER_SECOND):
            return
        self._drawn_at = now
        # One character less than the width: a full line would wrap on some terminals.
        shown = [cut(line, columns() - 1) for line in lines]
        # Line by line: some terminals move a screen that is erased as a whole to their history.
        new = "".join(f"{line}\x1b[K\n" for line in shown)
        self.stream.write(self._to_first_line() + new + "\x1b[0J" * (len(shown) < self._height))
        self.stream.flush()
        self._height = len(shown)

    def erase(self) -> None:
        """Remove the lines."""
        if self._height:
            self.stream.write(self._to_first_line() + "\x1b[K\n" * self._height + self._to_first_line())
            self.stream.flush()
            self._height = 0

    def before_print(self, text: str) -> None:
        """Make place for a text that is printed by someone else."""
        self.erase()
        # A block drawn in the middle of a line would tear it apart.
        self._in_line = not text.endswith("\n")

    def _to_first_line(self) -> str:
        return f"\x1b[{self._height}F" if self._height else ""


class _PrintedAbove:
    """A stream whose text appears above a live block."""

    def __init__(self, stream: TextIO, block: LiveBlock) -> None:
        self._stream, self._block = stream, block

    def write(self, text: str) -> int:
        if text:
            self._block.before_print(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def live_block() -> Iterator[LiveBlock | None]:
    """Give a live block on stderr and print everything else above it; None if stderr is no terminal."""
    if not is_terminal(sys.stderr):
        yield None
        return
    block = LiveBlock(sys.stderr)
    streams = {"stderr": sys.stderr} | ({"stdout": sys.stdout} if sys.stdout.isatty() else {})
    for name, stream in streams.items():
        setattr(sys, name, _PrintedAbove(stream, block))
    try:
        yield block
    finally:
        block.erase()
        for name, stream in streams.items():
            setattr(sys, name, stream)
