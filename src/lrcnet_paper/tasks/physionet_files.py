"""Reader of the PhysioNet Challenge 2012: one text file of readings per stay in intensive care, and the outcomes."""

from __future__ import annotations

import lzma
import math
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from .unpack import members_of

STATIC = ("Age", "Gender", "Height", "ICUType")
SERIES = (
    "ALP", "ALT", "AST", "Albumin", "BUN", "Bilirubin", "Cholesterol", "Creatinine", "DiasABP", "FiO2", "GCS",
    "Glucose", "HCO3", "HCT", "HR", "K", "Lactate", "MAP", "MechVent", "Mg", "NIDiasABP", "NIMAP", "NISysABP", "Na",
    "PaCO2", "PaO2", "Platelets", "RespRate", "SaO2", "SysABP", "Temp", "TroponinI", "TroponinT", "Urine", "WBC",
    "Weight", "pH",
)  # fmt: skip
"""The 37 variables that are measured over time."""

_HEADER = "Time,Parameter,Value"
_OUTCOMES = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death"
_COLUMN = {name: column for column, name in enumerate(SERIES)}
# Weight is -1 where it is not known; the descriptors are too.
_UNKNOWN = -1.0
_BROKEN = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, TypeError, OverflowError)


@dataclass(frozen=True)
class Stay:
    """The first 48 hours of one stay.

    Attributes:
        record: its number in the files.
        hours: time of each reading since admission, (readings,), ascending; at least one.
        values: (readings, 37), NaN where a variable was not measured.
        static: (4,), age, gender, height and type of the unit; NaN where unknown.
    """

    record: int
    hours: NDArray[np.float64]
    values: NDArray[np.float32]
    static: NDArray[np.float32]


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not abs(number) < 1e9:
        raise ValueError(f"{where} must have a finite number as its value, but has {text[:40]!r}")
    return number


def _minutes(text: str, where: str) -> int:
    hours, colon, minutes = text.partition(":")
    if not colon or not (hours.isdecimal() and minutes.isdecimal()) or len(text) > 6 or not text.isascii():
        raise ValueError(f"{where} must begin with a time HH:MM, but begins with {text[:40]!r}")
    return 60 * int(hours) + int(minutes)


def parse_stay(text: str, name: str) -> Stay:
    """Read the file of one stay; readings of the same minute are one reading.

    Raises:
        ValueError: for a file of another format; the message names the line.
    """
    lines = text.splitlines()
    if not lines or lines[0].strip() != _HEADER:
        raise ValueError(f"{name} must begin with {_HEADER!r}, but begins with {lines[0][:40] if lines else ''!r}")
    static, measured, record = dict.fromkeys(STATIC, math.nan), dict[int, dict[int, float]](), -1
    for number, line in enumerate(lines[1:], 2):
        where = f"line {number} of {name}"
        fields = line.split(",")
        if len(fields) != 3:
            raise ValueError(f"{where} must have 3 fields (time, parameter, value), but is {line[:40]!r}")
        minute, value = _minutes(fields[0], where), _number(fields[2], where)
        if fields[1] == "RecordID":
            record = int(value)
        elif fields[1] in static:
            static[fields[1]] = math.nan if value == _UNKNOWN else value
        elif fields[1] not in _COLUMN:
            raise ValueError(f"{where} must name a parameter of the challenge, but names {fields[1][:40]!r}")
        elif fields[1] != "Weight" or value != _UNKNOWN:
            measured.setdefault(minute, {})[_COLUMN[fields[1]]] = value
    if record < 0:
        raise ValueError(f"{name} must have a RecordID, but has none; get the file again")
    # A stay without any measurement is one reading in which everything is missing.
    minutes = sorted(measured) or [0]
    values = np.full((len(minutes), len(SERIES)), np.nan, np.float32)
    for row, minute in enumerate(minutes):
        for column, value in measured.get(minute, {}).items():
            values[row, column] = value
    return Stay(record, np.array(minutes) / 60.0, values, np.array(list(static.values()), np.float32))


def parse_outcomes(text: str, name: str) -> dict[int, int]:
    """Read record -> 1 if the patient died in hospital, 0 otherwise.

    Raises:
        ValueError: for a file of another format; the message names the line.
    """
    lines = text.splitlines()
    if not lines or lines[0].strip() != _OUTCOMES:
        raise ValueError(f"{name} must begin with {_OUTCOMES!r}, but begins with {lines[0][:60] if lines else ''!r}")
    outcomes = {}
    for number, line in enumerate(lines[1:], 2):
        fields = line.split(",")
        if len(fields) != 6 or not fields[0].isdecimal() or not fields[0].isascii() or fields[5] not in ("0", "1"):
            raise ValueError(f"line {number} of {name} must have 6 fields, the last one 0 or 1, but is {line[:40]!r}")
        outcomes[int(fields[0])] = int(fields[5])
    return outcomes


def _texts(path: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """Yield name and text of every .txt file: of an archive, or the file itself. Nothing is written to the disk."""
    if path.suffix == ".txt":
        yield PurePosixPath(path.name), path.read_bytes().decode("ascii")
        return
    with tarfile.open(path, "r|*") as archive:
        for member in members_of(archive, path.name):
            stream = archive.extractfile(member) if member.isfile() and member.name.endswith(".txt") else None
            if stream is not None:
                yield PurePosixPath(member.name), stream.read().decode("ascii")


def read_stays(paths: Sequence[Path], sets: Sequence[str]) -> tuple[list[Stay], NDArray[np.int64]]:
    """Read the stays of some sets in the order of their numbers, and their outcomes.

    Args:
        paths: archives with folders set-X and files Outcomes-X.txt, or such files themselves.
        sets: letters of the sets to read.

    Raises:
        ValueError: for a file that is truncated or has another format, or a stay without an outcome.
    """
    stays: dict[int, Stay] = {}
    outcomes: dict[int, int] = {}
    for path in dict.fromkeys(paths):
        try:
            for name, text in _texts(path):
                if name.name in {f"Outcomes-{letter}.txt" for letter in sets}:
                    outcomes |= parse_outcomes(text, name.name)
                elif name.parent.name in {f"set-{letter}" for letter in sets}:
                    stay = parse_stay(text, f"{name.parent.name}/{name.name}")
                    stays[stay.record] = stay
        except _BROKEN as error:
            raise ValueError(
                f"{path.name} must be a complete tar archive and is not ({error}); get it again"
            ) from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{path.name} must hold plain text, but {error}; get it again") from error
    missing = sorted(set(stays) - set(outcomes))
    if not stays or missing:
        problem = f"stay {missing[0]} has none" if missing else "there is no stay"
        raise ValueError(
            f"the sets {', '.join(sets)} must have an outcome for every stay, but {problem}; get them again"
        )
    ordered = [stays[record] for record in sorted(stays)]
    return ordered, np.array([outcomes[stay.record] for stay in ordered])
