"""A rendered artefact as plain text for a terminal, or as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import tables
from lrcnet.pages.content import Table
from lrcnet_paper.report.assemble import ArtefactSection, further_tables
from lrcnet_paper.report.summary import claims_table, interpretation

if TYPE_CHECKING:
    from pathlib import Path


def format_section(section: ArtefactSection, width: int | None = None) -> str:
    """Write the title, the claims, the tables, and the reasons for every picture that was not drawn.

    Args:
        section: the artefact.
        width: width of the tables; None for as much as they need.
    """
    rendered = section.rendered
    parts = [f"{section.title}\n{'=' * len(section.title)}"]
    parts += [_wrap(interpretation(section), width)] if rendered.claims else []
    parts += [tables.to_text(table, width) for table in _tables(section)]
    parts += [_wrap(f"not drawn: {reason}", width) for reason in rendered.skipped]
    return "\n\n".join(parts)


def _wrap(text: str, width: int | None) -> str:
    return text if width is None else textwrap.fill(text, width)


def sections_to_json(sections: Sequence[ArtefactSection], files: Mapping[str, Sequence[Path]]) -> list[dict[str, Any]]:
    """Return the claims, tables, skipped pictures and files of artefacts as JSON values."""
    return [
        {
            "name": section.name,
            "title": section.title,
            "tables": [tables.to_json(table) for table in _tables(section)],
            "not drawn": list(section.rendered.skipped),
            "files": [str(file) for file in files[section.name]],
        }
        for section in sections
    ]


def _tables(section: ArtefactSection) -> list[Table]:
    rendered = section.rendered
    claims = [claims_table(rendered.claims)] if rendered.claims else []
    return [*claims, *rendered.tables, *further_tables(rendered)]
