"""Command lines with wrong words: the command ends with one line of explanation, never with a traceback."""

import contextlib
import io
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import strategies as st

from lrcnet.cli import main
from tests.fuzz.outcomes import CLEAR, RIGHT, UNCLEAR, Outcome

# Short runs only: every command here is wrong somewhere, or does little.
COMMANDS: dict[str, tuple[str, ...]] = {
    "train": ("train", "neural-ode", "--model", "lrc-s", "--iterations", "1", "--out", "OUT", "--quiet"),
    "train person": (
        "train",
        "person",
        "--model",
        "gru",
        "--epochs",
        "1",
        "--data",
        "EMPTY",
        "--out",
        "OUT",
        "--quiet",
    ),
    "report": ("report", "EMPTY", "--collect", "OUT"),
    "explain": ("explain", "EMPTY", "--lipschitz"),
    "drive": ("drive", "EMPTY", "--html", "OUT/page.html"),
    "reproduce": ("reproduce", "elastance", "--list", "--out", "OUT"),
    "data": ("data", "list", "--data", "EMPTY"),
    "bench": ("bench", "kernels", "--help"),
    "info": ("info",),
    "fit": ("fit", "TABLE.csv", "--id", "who", "--time", "at", "--target", "label", "--out", "OUT/model"),
    "predict": ("predict", "EMPTY", "TABLE.csv", "--out", "OUT/answers.csv"),
    "export": ("export", "c", "EMPTY", "--out", "OUT/model.c"),
}
WORDS = (
    *(
        "",
        "-1",
        "0",
        "1.5",
        "nan",
        "inf",
        "1e400",
        "99999999999999999999",
        "abc",
        "../x",
        "/",
        "/dev/null",
        "a\x00b",
        "*",
    ),
    *("--", "-x", "--help", "--seed", "--model", "--option", "units=abc", "batch_first=False", "=", "ö", "neural-ode"),
    *(
        "EMPTY",
        "FILE",
        "hybrid-0",
        "rk4-1",
        "--lr",
        "--clip",
        "--samples",
        "--solver",
        "--html",
        "--epochs",
        "--budget",
    ),
)


class BadCommand(NamedTuple):
    """A command, the places of words that are replaced or added, and the words."""

    command: str
    changes: tuple[tuple[float, str, bool], ...]


CASES = st.builds(
    BadCommand,
    st.sampled_from(tuple(COMMANDS)),
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from(WORDS), st.booleans()), min_size=1, max_size=3).map(tuple),
)
_TOO_LONG = re.compile(r"Traceback|Error\b.*\n.*\n")


def attack(case: BadCommand) -> Outcome:
    """Run the command in this process, in an empty folder."""
    with TemporaryDirectory() as name, contextlib.chdir(name):
        for folder in ("EMPTY", "OUT"):
            Path(folder).mkdir()
        Path("FILE").write_text("text")
        # Two series are too few to train on, so that no attack does.
        Path("TABLE.csv").write_text("who,at,v,label\n1,0,2.5,a\n1,1,3,a\n2,0.5,3,b\n")
        words = list(COMMANDS[case.command])
        for place, word, replace in case.changes:
            at = 1 + min(int(place * len(words)), len(words) - 1)
            words[at : at + replace] = [word]
        # No command of an attack may train on real data or download anything.
        with _environment(LRCNET_DATA=name, XDG_CACHE_HOME=name, HOME=name):
            return _run(words)


@contextlib.contextmanager
def _environment(**values: str):
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _run(words: list[str]) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    if "get" in words or "kernels" in words[2:]:
        return Outcome(RIGHT)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except SystemExit as end:  # argparse has printed its own sentence.
        code = end.code
    said = err.getvalue().strip()
    if code in (0, None):
        return Outcome(RIGHT)
    if "Traceback" in said or len(said.split()) < 4 or code not in (1, 2):
        return Outcome(UNCLEAR, f"exit code {code}: {said[-150:]!r} for {words}")
    return Outcome(CLEAR)
