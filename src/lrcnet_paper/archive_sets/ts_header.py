"""The header of a .ts file: its keywords, checked before any sequence is read, with the lines that they stand on.

A header is comments (#) and keywords (@), one per line and in any order; upper and lower case are the same.
"""

from typing import NamedTuple

from lrcnet.errors import suggest

KEYWORDS = (
    *("@problemName", "@timeStamps", "@missing", "@univariate", "@dimensions", "@dimension", "@equalLength"),
    *("@seriesLength", "@classLabel", "@targetLabel"),
)
_NAMES = frozenset(keyword.lower() for keyword in KEYWORDS)
_FLAGS = ("@timestamps", "@missing", "@univariate", "@equallength", "@targetlabel")
_ONLY_CLASSES = "only sets for classification are read"


class Entry(NamedTuple):
    """A keyword of a header: the file and line that it stands on, the line's number, and the words after it."""

    place: str
    line: int
    words: list[str]


class Size(NamedTuple):
    """A size that a header states, and where: such as 3, "line 5 (@dimensions 3)"."""

    value: int
    source: str


class Header(NamedTuple):
    """The statements of a header that its sequences must agree with.

    Attributes:
        classes: the names of the classes.
        channels: the number of channels by @dimensions, and 1 by @univariate, as far as they are stated.
        steps: the length of every sequence, or None if it is not stated or lengths differ.
    """

    classes: list[str]
    channels: tuple[Size, ...]
    steps: Size | None


def read_header(lines: list[str], file: str) -> Header:
    """Return what a header states.

    Args:
        lines: the lines before @data.
        file: the file's name, for messages.

    Raises:
        ValueError: for a line that no header has, a set that is not for classification, or one with time stamps.
    """
    entries = _read_entries(lines, file)
    flags = {keyword: _read_flag(keyword, entries[keyword]) for keyword in _FLAGS if keyword in entries}
    if flags.get("@timestamps"):
        raise ValueError(
            f"{entries['@timestamps'].place} must say '@timeStamps false', but says 'true'; only values without times "
            "are read, so write each value without its time"
        )
    if flags.get("@targetlabel"):
        raise ValueError(
            f"{entries['@targetlabel'].place} must not say '@targetLabel true', the mark of a set for regression, but "
            f"does; {_ONLY_CLASSES}"
        )
    stated = [keyword for keyword in ("@dimensions", "@dimension") if keyword in entries]
    channels = [_read_size("number of channels", keyword, entries[keyword]) for keyword in stated]
    if flags.get("@univariate"):
        channels.append(Size(1, f"line {entries['@univariate'].line} (@univariate true)"))
    steps = None
    # Sets with unequal lengths state the longest one of both halves, -1, or nothing.
    if "@serieslength" in entries and flags.get("@equallength", True):
        steps = _read_size("number of steps", "@seriesLength", entries["@serieslength"])
    return Header(_read_classes(entries, file, len(lines) + 1), tuple(channels), steps)


def _read_entries(lines: list[str], file: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for number, raw in enumerate(lines, 1):
        words, place = raw.split(), f"{file}, line {number}"
        if not words or words[0].startswith("#"):
            continue
        if not words[0].startswith("@"):
            raise ValueError(f"{place} must begin with # or @, as a header does, but is {raw[:40]!r}")
        if words[0].lower() not in _NAMES:
            raise ValueError(
                f"{place} must begin with one of {', '.join(KEYWORDS)}, but begins with {words[0][:40]!r}; "
                f"{suggest(words[0], KEYWORDS)}"
            )
        entries[words[0].lower()] = Entry(place, number, words[1:])
    return entries


def _read_flag(keyword: str, entry: Entry) -> bool:
    value = " ".join(entry.words).lower()
    if value not in ("true", "false"):
        raise ValueError(f"{entry.place} must say true or false after {keyword}, but says {value[:40]!r}")
    return value == "true"


def _read_size(what: str, keyword: str, entry: Entry) -> Size:
    words = entry.words
    if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > 9:
        raise ValueError(f"{entry.place} must state the {what} after {keyword}, but states {' '.join(words)[:40]!r}")
    return Size(int(words[0]), f"line {entry.line} ({keyword} {words[0]})")


def _read_classes(entries: dict[str, Entry], file: str, end: int) -> list[str]:
    must = "must say '@classLabel true' and name its classes"
    entry = entries.get("@classlabel")
    if entry is None:
        raise ValueError(f"{file} {must} before line {end} (@data), but does not; {_ONLY_CLASSES}")
    if len(entry.words) < 2 or entry.words[0].lower() != "true":
        raise ValueError(f"{entry.place} {must}, but says {' '.join(entry.words)[:40]!r}; {_ONLY_CLASSES}")
    return entry.words[1:]
