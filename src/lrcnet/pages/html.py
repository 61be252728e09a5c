"""Self-contained HTML pages: nothing to load, for phone, desk and paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from lrcnet.pages import figures, tables
from lrcnet.pages.content import Picture, Section, Table, minus_signs
from lrcnet.pages.style_sheet import style_sheet


def write_page(path: str | os.PathLike[str], title: str, body: str, *, css: str = "") -> Path:
    """Write a page and the folders above it.

    Args:
        path: the HTML file.
        title: the window's title.
        body: HTML of everything inside the body.
        css: rules to add to the style sheet of all pages.
    """
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        # An empty icon: without one a browser would ask the server for it.
        f'<link rel="icon" href="data:,"><style>{style_sheet()}{css}</style></head><body>{body}</body></html>\n',
        encoding="utf-8",
    )
    return file


def contents(links: Sequence[tuple[str, str]]) -> str:
    """Return the navigation of a page: links (id, text) to its sections."""
    items = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def section_html(section: Section) -> str:
    """Return a section with its heading and its blocks."""
    blocks = "".join(block_html(section.name, block) for block in section.blocks)
    return f'<section id="{section.name}"><h2>{escape(section.title)}</h2>{blocks}</section>'


def heading_html(name: str, title: str) -> str:
    """Return the heading of a section with a link to it, which readers can copy."""
    anchor = f'<a class="anchor" href="#{name}" aria-label="Link to this section">#</a>'
    return f"<h2>{escape(title)} {anchor}</h2>"


def block_html(section: str, block: Table | Picture | str) -> str:
    """Return a table, a picture or a note of a section."""
    if isinstance(block, Table):
        return tables.to_html(block)
    if isinstance(block, Picture):
        svg = figures.inline(block, f"{section}-{block.name}")
        more = fold("Details", f"<p>{escape(block.details)}</p>") if block.details else ""
        return (
            f'<figure id="{section}-{block.name}">{svg}<figcaption>{escape(minus_signs(block.caption))}{more}'
            "</figcaption></figure>"
        )
    return f'<p class="note">{escape(minus_signs(block))}</p>'


def fold(summary: str, body: str, *, titled: bool = False) -> str:
    """Return a part of a page that opens on a click; `titled` if the body repeats the summary as its own title."""
    kind = ' class="titled"' if titled else ""
    return f"<details{kind}><summary>{escape(minus_signs(summary))}</summary>{body}</details>"
