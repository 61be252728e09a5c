"""The files that `lrcnet reproduce` writes for an artefact: pictures, tables and a Markdown page."""

from __future__ import annotations

import os
from pathlib import Path

from lrcnet.pages import figures, tables
from lrcnet_paper.report.assemble import ArtefactSection, further_pictures, further_tables
from lrcnet_paper.report.summary import claims_table, interpretation


def write_folder(section: ArtefactSection, out: str | os.PathLike[str]) -> list[Path]:
    """Write `OUT/<artefact>/`: each picture as PNG and SVG, each table as CSV, everything as Markdown."""
    folder = Path(out) / section.name
    folder.mkdir(parents=True, exist_ok=True)
    rendered = section.rendered
    claims = [claims_table(rendered.claims)] if rendered.claims else []
    all_tables = [*claims, *rendered.tables, *further_tables(rendered)]
    pictures = [*rendered.pictures, *further_pictures(rendered)]
    written = []
    for table in all_tables:
        path = folder / f"{table.name}.csv"
        path.write_text(tables.to_csv(table), encoding="utf-8")
        written.append(path)
    for picture in pictures:
        written += figures.save(picture, folder)
    text = [
        f"# {section.title}",
        *filter(None, [interpretation(section)]),
        *(tables.to_markdown(table) for table in all_tables),
    ]
    text += [f"![{picture.alt}]({picture.name}.svg)\n\n{picture.caption}" for picture in pictures]
    text += [f"Not drawn: {reason}." for reason in rendered.skipped]
    page = folder / "README.md"
    page.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    return [*written, page]
