"""Tables in files: CSV and Parquet in, CSV out, and never half a file."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

from lrcnet.saving import write_whole

SUFFIXES = (".csv", ".parquet")
SEPARATORS = ",;\t"
# A whole cell between semicolons.
_DECIMAL_COMMA = re.compile(r"(^|;)\s*-?\d+,\d+\s*(;|$)", re.MULTILINE)


def import_pandas() -> Any:
    """Import pandas, or say how to install it."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(
            f"reading tables needs pandas ({error}); install it with: pip install 'lrcnet[fit]'"
        ) from error


def read_file(path: str | os.PathLike[str]) -> Any:
    """Read a CSV or Parquet file as a DataFrame.

    Raises:
        ValueError: if the file is of another kind, empty or damaged.
        FileNotFoundError: if there is no such file.
    """
    pandas, file = import_pandas(), Path(path)
    if not file.is_file():
        fault = "is a folder" if file.is_dir() else "does not exist"
        raise FileNotFoundError(f"the table must be a file, but {file} {fault}; check the path")
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"a table must be a {' or '.join(SUFFIXES)} file, but is {file.name}; convert it")
    try:
        header, frame = _read_csv(file) if file.suffix.lower() == ".csv" else _read_parquet(file)
    except (ValueError, OSError, pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{file.name} cannot be read as {file.suffix.lower()[1:]} ({reason}); repair it") from error
    if not len(frame):
        raise ValueError(f"{file.name} must have at least one row below its header, but has none; check the file")
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    if twice:
        raise ValueError(f"{file.name} must have different column names, but {twice[0]!r} occurs twice; rename one")
    return frame.rename(columns=str)


def _read_csv(file: Path) -> tuple[list[str], Any]:
    """Return the names in the header, as they are written there, and the table."""
    pandas = import_pandas()
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        start = [line for _, line in zip(range(100), lines, strict=False)]
    separator = max(SEPARATORS, key=start[0].count) if start else SEPARATORS[0]
    # Where the comma is the decimal mark, programs separate cells by semicolons.
    decimal = "," if separator == ";" and _DECIMAL_COMMA.search("".join(start[1:])) else "."
    # pandas gives a repeated name and a cell without one another name.
    header = pandas.read_csv(file, sep=separator, header=None, nrows=1, dtype=str).iloc[0].dropna()
    return header.tolist(), pandas.read_csv(file, sep=separator, decimal=decimal)


def _read_parquet(file: Path) -> tuple[list[str], Any]:
    frame = import_pandas().read_parquet(file)
    return [str(name) for name in frame.columns], frame


def write_csv(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a DataFrame as CSV; the file is complete or not there."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, frame.to_csv(index=False).encode())
