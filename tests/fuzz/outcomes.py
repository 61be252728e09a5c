"""What an attack led to, and whether an error is clear: raised by lrcnet on purpose, with a sentence."""

import linecache
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import lrcnet
import lrcnet_paper
from lrcnet.errors import DivergenceError

RIGHT, CLEAR, UNCLEAR, WRONG = "right answer", "clear error", "unclear error", "wrong number"
KINDS = (RIGHT, CLEAR, UNCLEAR, WRONG)
BAD = (UNCLEAR, WRONG)

_PACKAGES = tuple(str(Path(package.__file__).parent) for package in (lrcnet, lrcnet_paper))
# A missing package, a state that diverges, a file that is not there: also sentences of ours.
_CLEAR = (ValueError, TypeError, DivergenceError, OSError, ImportError, NotImplementedError)


class Outcome(NamedTuple):
    """The kind of an outcome, and for a bad one what happened."""

    kind: str
    detail: str = ""


def is_clear(error: BaseException) -> bool:
    """Return whether an error is a sentence that lrcnet raises itself.

    An error of torch, numpy or Python that only passes through lrcnet speaks of things that the caller never saw. A
    call with arguments that a function does not have is Python's own sentence, and clear.
    """
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    ours = last.filename.startswith(_PACKAGES)
    source = linecache.getline(last.filename, last.lineno or 0).strip() or (last.line or "")
    raised_here = "raise " in _statement(last.filename, last.lineno or 0, source)
    wrong_call = isinstance(error, TypeError) and any(
        part in str(error) for part in ("unexpected keyword", "required positional", "positional argument")
    )
    speaks = len(str(error).split()) >= 4
    # Estimators keep scikit-learn's conventions, whose checks ask for its own sentences about data.
    if Path(last.filename).parts[-3:] == ("sklearn", "utils", "validation.py"):
        return isinstance(error, _CLEAR) and speaks
    # The system's own sentence about a file, such as "Permission denied: 'page.html'".
    if isinstance(error, OSError) and error.filename is not None:
        return True
    # The kernel's own refusal, and torch.jit's or torch.func's, come as RuntimeError with the reasons.
    kinds = (*_CLEAR, RuntimeError) if ours and raised_here else _CLEAR
    return isinstance(error, kinds) and ((ours and raised_here and speaks) or wrong_call)


def _statement(file: str, line: int, source: str) -> str:
    """Return the line of an error and the few lines before it: a raise may span several lines."""
    before = [linecache.getline(file, number) for number in range(max(1, line - 4), line)]
    return "".join([*before, source])


def watch(call: Callable[[], Outcome | None]) -> Outcome:
    """Run an attack: an error is clear or unclear, and no error means what the attack itself says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call() or Outcome(RIGHT)
        except Exception as error:
            if is_clear(error):
                return Outcome(CLEAR)
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = str(error).strip().splitlines()
            return Outcome(
                UNCLEAR,
                f"{type(error).__name__}: {text[0][:120] if text else ''} ({Path(place.filename).name}:{place.lineno})",
            )
