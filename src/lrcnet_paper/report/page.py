"""One self-contained HTML page out of finished runs: no script, nothing to load, for phone, desk and paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from lrcnet.pages.style import style_sheet
from lrcnet_paper.report import figures, tables
from lrcnet_paper.report.assemble import (
    EVERYTHING,
    Section,
    claims_table,
    commands,
    environment_tables,
    reproduce_commands,
    verdict_counts,
)
from lrcnet_paper.results.finished import Finished
from lrcnet_paper.results.verdict import RULES

TITLE = "Liquid Resistance Liquid Capacitance Networks: the paper and what came out here"
# Tables whose rows need two cells to be named.
LEAD = {"parameters": 2, "test-error": 2, "lengths": 2, "person": 2, "imdb": 2, "psmnist": 2, "solvers": 3}


def write_page(sections: Sequence[Section], runs: Sequence[Finished], path: str | os.PathLike[str]) -> Path:
    """Writes the page."""
    page = Path(path)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(_page(sections, runs), encoding="utf-8")
    return page


def _page(sections: Sequence[Section], runs: Sequence[Finished]) -> str:
    body = "".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(TITLE)}</title>'
        # An icon of nothing: a browser would ask the server for one.
        f'<link rel="icon" href="data:,"><style>{style_sheet()}</style></head><body>'
        f"{_header(sections, runs)}<main>{_rules()}{body}{_environment(runs)}</main>"
        "<footer><p class='soft'>Written by <code>lrcnet report</code>.</p></footer></body></html>\n"
    )


def _header(sections: Sequence[Section], runs: Sequence[Finished]) -> str:
    tiles = "".join(
        f'<li><b class="{word.replace(" ", "-")}">{count}</b>'
        f'<span aria-hidden="true">{tables.SYMBOLS[word]}</span> {word}</li>'
        for word, count in verdict_counts(sections).items()
    )
    links = "".join(f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections)
    budgets = ", ".join(sorted({run.result.budget for run in runs})) or "none"
    return (
        f"<header><h1>{escape(TITLE)}</h1>"
        f'<p class="soft">{len(runs)} runs; budgets: {escape(budgets)}. Claims by verdict:</p>'
        f'<ul class="counts">{tiles}</ul>'
        f'<nav aria-label="Contents"><ul>{links}'
        '<li><a href="#environment">Machine, versions, commands</a></li></ul></nav>'
        "</header>"
    )


def _rules() -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in RULES)
    return f"<details open><summary>How verdicts are given</summary><ul>{lines}</ul></details>"


def _section(section: Section) -> str:
    rendered = section.rendered
    parts = [f'<section id="{section.name}"><h2>{escape(section.title)}</h2>']
    if rendered.claims:
        parts.append(tables.to_html(claims_table(rendered.claims)))
    parts += [tables.to_html(table, lead=LEAD.get(table.name, 1)) for table in rendered.tables]
    for picture in rendered.pictures:
        svg = figures.inline(picture, f"{section.name}-{picture.name}")
        parts.append(f"<figure>{svg}<figcaption>{escape(picture.caption)}</figcaption></figure>")
    parts += [f'<p class="note">Not drawn: {escape(reason)}.</p>' for reason in rendered.skipped]
    return "".join([*parts, "</section>"])


def _environment(runs: Sequence[Finished]) -> str:
    shown = "".join(tables.to_html(table) for table in environment_tables(runs)) if runs else "<p>No runs.</p>"
    lines = "\n".join(escape(line) for line in commands(runs))
    return (
        '<section id="environment"><h2>Machine, versions, commands</h2>'
        f"<p>{EVERYTHING}</p><pre>{escape(chr(10).join(reproduce_commands(runs)))}</pre>{shown}"
        f"<details><summary>The command of every single run</summary><pre>{lines}</pre></details></section>"
    )
