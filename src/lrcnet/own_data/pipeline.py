"""The pipeline of `lrcnet fit`: from a file to a folder; bad input is refused before anything is trained or written."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from lrcnet.errors import one_of, positive_size
from lrcnet.layers import LAYERS
from lrcnet.own_data.encoding import encode
from lrcnet.own_data.files import read_file
from lrcnet.own_data.fit import comparison, describe, fit, verdict
from lrcnet.own_data.folder import REPORT, check_target_folder, write_folder
from lrcnet.own_data.schema import understand
from lrcnet.pages.tables import to_text
from lrcnet.terminal import table_width


def fit_file(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cell: str,
    units: int,
    epochs: int,
    seed: int,
    sort: bool,
    tell: Callable[[str], None],
    wide: bool = False,
    balanced: bool = False,
    **columns: Any,
) -> Path:
    """Train a network on a table and write its folder.

    Args:
        file: CSV or Parquet.
        out: the folder.
        cell, units, epochs, seed: see `lrcnet.own_data.fit.fit`.
        sort: whether rows are sorted by time first.
        tell: called with every line for the user.
        wide: whether the table of results may be wider than the terminal.
        balanced: whether every class has the same weight, however rare it is.
        columns: the arguments of `lrcnet.own_data.schema.understand`.
    """
    one_of("--model", cell, LAYERS)
    for name, value, least in (("--units", units, 1), ("--epochs", epochs, 1), ("--seed", seed, 0)):
        positive_size(name, value, least)
    check_target_folder(out)
    frame = read_file(file)
    schema = understand(frame, **columns)
    if balanced and schema.task != "classification":
        raise ValueError(f"--balanced is for classes, but the task is {schema.task}; leave it out")
    schema = replace(schema, balanced=balanced)
    readings = encode(frame, schema, with_targets=True, sort=sort)
    tell("\n".join(describe(schema, readings)))
    result = fit(schema, readings, cell=cell, seed=seed, tell=tell, units=units, epochs=epochs)
    table = comparison(result)
    folder = write_folder(result, out, Path(file).name)
    note = f"{table.note}\n" if table.note else ""
    tell(f"\n{to_text(table, table_width(wide))}\n{note}\n{verdict(result)}")
    tell(f"\nwritten to {folder}; open {folder / REPORT}")
    tell(f"next: lrcnet predict {folder} NEW{Path(file).suffix} --out predictions.csv")
    return folder
