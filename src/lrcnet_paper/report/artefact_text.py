"""A rendered artefact as plain text for a terminal."""

from __future__ import annotations

from lrcnet.pages import tables
from lrcnet_paper.report.assemble import ArtefactSection, further_tables
from lrcnet_paper.report.summary import claims_table, interpretation


def format_section(section: ArtefactSection) -> str:
    """Write the title, the claims, the tables, and the reasons for every picture that was not drawn."""
    rendered = section.rendered
    parts = [f"{section.title}\n{'=' * len(section.title)}"]
    parts += [interpretation(section), tables.to_text(claims_table(rendered.claims))] if rendered.claims else []
    parts += [tables.to_text(table) for table in (*rendered.tables, *further_tables(rendered))]
    parts += [f"not drawn: {reason}" for reason in rendered.skipped]
    return "\n\n".join(parts)
