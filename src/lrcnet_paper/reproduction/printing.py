"""The outcome of `lrcnet reproduce` on a terminal, and as a JSON file."""

from __future__ import annotations

import json as json_format
from pathlib import Path

from lrcnet.terminal import table_width
from lrcnet_paper.report.artefact_text import format_section, sections_to_json
from lrcnet_paper.reproduction.pipeline import Reproduction


def print_outcome(outcome: Reproduction, out: str, *, collect: str | None, wide: bool, json: str | None) -> None:
    """Print every artefact, the folders that were written, and the next command.

    Args:
        outcome: the outcome.
        out: folder of the runs.
        collect: folder of the collected files, None if there is none.
        wide: whether tables may be wider than the terminal.
        json: file for the tables and claims, None for none.
    """
    for section in outcome.sections:
        count = len(outcome.files[section.name])
        print(f"\n{format_section(section, table_width(wide))}\n\n{count} files in {out}/artefacts/{section.name}")
    if json:
        content = sections_to_json(outcome.sections, outcome.files)
        Path(json).write_text(json_format.dumps(content, indent=2) + "\n", encoding="utf-8")
        print(f"\nwrote {json}")
    if collect:
        print(f"\n{len(outcome.collected)} new files in {collect}")
    print(f"\nnext: lrcnet report {out} --html report.html")
