"""A progress bar with the time left; silent where nobody watches."""

from __future__ import annotations

import importlib
import sys
from types import TracebackType


class ProgressBar:
    """Counts the steps of a run on a terminal; does nothing where there is none, or where it is not wanted.

    Args:
        title: shown in front.
        total: steps of the whole run.
        done: steps that an earlier start has done.
        wanted: False for silence.
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
        """One step is done."""
        if self._bar is not None:
            self._bar.update()

    def say(self, **numbers: float) -> None:
        """Show the latest numbers behind the bar."""
        if self._bar is not None:
            self._bar.set_postfix({name: f"{value:.4g}" for name, value in numbers.items()}, refresh=False)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
