"""A progress bar with the remaining time, shown only on a terminal."""

from __future__ import annotations

import importlib
import sys
from types import TracebackType


class ProgressBar:
    """Counts the steps of a run on a terminal; does nothing without a terminal, or if it is not wanted.

    Args:
        title: text before the bar.
        total: number of steps of the whole run.
        done: number of steps that an earlier start has done.
        wanted: whether to show the bar.
    """

    def __init__(self, title: str, total: int, done: int, wanted: bool) -> None:
        self._bar = None
        if wanted and sys.stderr.isatty():
            try:
                tqdm = importlib.import_module("tqdm").tqdm
            except ImportError as error:
                raise ImportError(
                    "the progress bar needs tqdm, which is not installed; run: pip install 'lrcnet[train]'"
                ) from error
            self._bar = tqdm(desc=title, total=total, initial=done, dynamic_ncols=True, unit="step")

    def step(self) -> None:
        """Count one step."""
        if self._bar is not None:
            self._bar.update()

    def show(self, **numbers: float) -> None:
        """Show the latest numbers after the bar."""
        if self._bar is not None:
            self._bar.set_postfix({name: f"{value:.4g}" for name, value in numbers.items()}, refresh=False)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
