"""Status lines and progress bars of the commands; outside a command nothing is shown.

`lrcnet` calls `shown` around a command, and the functions below then draw on its terminal. Code deep inside a pipeline
calls `track` or opens a `Bar` without knowing whether anyone watches. Without a terminal, each bar is one line.

    for name in track(names, "drawing"):
        ...
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from lrcnet.terminal import LiveBlock, columns, live_block

T = TypeVar("T")

SHORTEST_BAR, LONGEST_BAR = 20, 40


class _Display:
    """The terminal of the running command: the open bars, and lines above them."""

    def __init__(self, block: LiveBlock | None, announces: bool) -> None:
        self.block, self.announces = block, announces
        self.bars: list[Bar] = []
        self.head: Sequence[str] = ()
        self.status = ""
        self.left: Bar | None = None  # the last bar whose loop was left before its end

    def draw(self, *, at_once: bool = False) -> None:
        if self.block is not None:
            below = self.bars[-1].lines() if self.bars else [f"{self.status} …"] if self.status else []
            self.block.draw([*self.head, *below], at_once=at_once)

    def announce(self, line: str) -> None:
        """Write a line where there is no terminal to draw on."""
        if self.block is None and self.announces:
            print(line, file=sys.stderr, flush=True)


_display: _Display | None = None


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show the progress of everything inside the block on stderr."""
    global _display
    with live_block() as block:
        _display = _Display(block, announces=True)
        try:
            yield
        finally:
            _display = None


@contextlib.contextmanager
def shown_to_caller(wanted: bool) -> Iterator[None]:
    """Show bars to a program that calls a long function itself, if it has a terminal and nothing is shown yet."""
    global _display
    if _display is not None or not wanted:
        yield
        return
    with live_block() as block:
        _display = _Display(block, announces=False)
        try:
            yield
        finally:
            _display = None


def status(text: str) -> None:
    """Show what the command is doing, such as "loading torch", until the next status or bar replaces it."""
    if _display is not None:
        _display.status = text
        _display.draw(at_once=True)


def set_head(lines: Sequence[str]) -> None:
    """Show lines above the bar, such as the table of a grid."""
    if _display is not None:
        _display.head = lines
        _display.draw(at_once=True)


def is_drawn() -> bool:
    """Return whether there is a terminal on which bars and tables are redrawn."""
    return _display is not None and _display.block is not None


def position() -> str:
    """Return how far the running stage is, or the one that was left: "in epoch 3 of 40", "while reading the runs"."""
    if _display is None:
        return ""
    bar = _display.bars[0] if _display.bars else _display.left
    if bar is not None:
        return f"in {bar.position()}"
    return f"while {_display.status}" if _display.status else ""


def folder_to_continue() -> str:
    """Return the folder of the interrupted run, which the same command continues; "" if there is none."""
    return next((bar.folder for bar in _display.bars if bar.folder), "") if _display is not None else ""


def track(items: Iterable[T], what: str, *, total: int | None = None, unit: str = "") -> Iterator[T]:
    """Yield the items of a loop, with a progress bar.

    Args:
        items: the items.
        what: the stage, such as "drawing".
        total: number of items; None asks the items for it.
        unit: name of one item, such as "figure".
    """
    count = total if total is not None else len(items) if isinstance(items, Collection) else 0
    with Bar(what, count, unit=unit) as bar:
        for item in items:
            yield item
            bar.advance()


class Bar:
    """A progress bar: position, bar, time left and the most important number; further numbers on a second line.

    Args:
        what: the stage, such as "drawing", or the run that is trained.
        total: number of steps.
        done: number of steps that an earlier start has done.
        unit: name of the unit in which people count, such as "epoch".
        per_unit: number of steps of one unit.
        folder: folder of a run that the same command continues after an interruption.
        wanted: whether to show the bar.

    Example:
        >>> bar = Bar("person lrcu-s", 400, done=100, unit="epoch", per_unit=10)
        >>> bar.position()
        'epoch 11 of 40'
    """

    def __init__(
        self,
        what: str,
        total: int,
        *,
        done: int = 0,
        unit: str = "",
        per_unit: int = 1,
        folder: str = "",
        wanted: bool = True,
    ) -> None:
        self.what, self.total, self.unit, self.folder = what, total, unit, folder
        self.per_unit, self.done, self._before = max(per_unit, 1), done, done
        self.headline = ""
        self.rest: Mapping[str, float] = {}
        self._wanted = wanted
        self._started = time.monotonic()

    def __enter__(self) -> Bar:
        if _display is not None and self._wanted:
            _display.left, _display.status = None, ""
            _display.bars.append(self)
            length = f", {self.units_of(self.total)} {self.unit or 'step'}s" if self.total > 1 else ""
            _display.announce(f"{self.what}{length}")
            _display.draw(at_once=True)
        return self

    def __exit__(self, *error: object) -> None:
        if _display is None or self not in _display.bars:
            return
        # After an interruption the bar stays open, so that the command can say how far it came.
        if error[0] is None or not issubclass(error[0], KeyboardInterrupt):  # type: ignore[arg-type]
            _display.bars.remove(self)
            # An interruption of the body of a `track` loop reaches its generator as GeneratorExit.
            if error[0] is GeneratorExit and not _display.bars:
                _display.left = self
            _display.draw(at_once=True)

    def advance(self, steps: int = 1) -> None:
        """Count steps."""
        self.done += steps
        if _display is not None:
            _display.draw()

    def show(self, headline: str, rest: Mapping[str, float]) -> None:
        """Show the most important number beside the bar and the others on a second line."""
        self.headline, self.rest = headline, rest
        if _display is not None:
            _display.draw(at_once=True)

    def units_of(self, steps: int) -> int:
        """Return the number of units that some steps are."""
        return -(-steps // self.per_unit)

    def position(self) -> str:
        """Return the unit that is being worked on, such as "epoch 3 of 40"."""
        now = min(self.done // self.per_unit + 1, self.units_of(self.total))
        return f"{self.unit or 'step'} {now} of {self.units_of(self.total)}"

    def lines(self) -> list[str]:
        """Return the lines of the bar: one, or two if there are further numbers; they fit 80 columns."""
        share = min(self.done / self.total, 1.0) if self.total else 0.0
        facts = [self.position(), self._time_left(share), self.headline]
        text = "  ".join(fact for fact in facts if fact)
        width = min(columns(), 100) - len(text) - 6
        length = max(SHORTEST_BAR, min(LONGEST_BAR, width))
        bar = "█" * int(share * length) + "░" * (length - int(share * length))
        numbers = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in self.rest.items())
        return [f"{bar}  {text}", f"{self.what}{'  ' if numbers else ''}{numbers}"]

    def _time_left(self, share: float) -> str:
        fresh = self.done - self._before
        if not fresh or share >= 1:
            return ""
        seconds = (time.monotonic() - self._started) / fresh * (self.total - self.done)
        return f"{format_duration(seconds)} left"


def format_duration(seconds: float) -> str:
    """Return a rough duration.

    Example:
        >>> format_duration(50), format_duration(600), format_duration(9000)
        ('50 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
