"""One self-contained HTML page about finished runs: no script, nothing to load, for phone, desk and paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

from lrcnet.pages import tables
from lrcnet.pages.content import Section
from lrcnet.pages.html import contents, section_html, write_page
from lrcnet_paper.report.assemble import (
    EVERYTHING,
    ArtefactSection,
    claims_table,
    commands,
    environment_tables,
    own_task_tables,
    reproduce_commands,
    verdict_counts,
)
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.verdict import RULES, SYMBOLS

TITLE = "Liquid Resistance Liquid Capacitance Networks: the paper and our results"
ENVIRONMENT = ("environment", "Machine, versions, commands")


def write_html(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], path: str | os.PathLike[str]) -> Path:
    """Write the page."""
    body = "".join(section_html(_section(section)) for section in sections)
    return write_page(
        path,
        TITLE,
        f"{_header(sections, runs)}<main>{_rules()}{body}{_environment(runs)}</main>"
        "<footer><p class='soft'>Written by <code>lrcnet report</code>.</p></footer>",
        css=resources.files(__package__).joinpath("verdicts.css").read_text(encoding="utf-8"),
    )


def _header(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun]) -> str:
    tiles = "".join(
        f'<li><b class="{word.replace(" ", "-")}">{count}</b>'
        f'<span aria-hidden="true">{SYMBOLS[word]}</span> {word}</li>'
        for word, count in verdict_counts(sections).items()
    )
    budgets = ", ".join(sorted({run.result.budget for run in runs})) or "none"
    return (
        f"<header><h1>{escape(TITLE)}</h1>"
        f'<p class="soft">{len(runs)} runs; budgets: {escape(budgets)}. Claims by verdict:</p>'
        f'<ul class="counts">{tiles}</ul>'
        f"{contents([*((section.name, section.title) for section in sections), ENVIRONMENT])}</header>"
    )


def _rules() -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in RULES)
    return f"<details open><summary>How verdicts are given</summary><ul>{lines}</ul></details>"


def _section(section: ArtefactSection) -> Section:
    rendered = section.rendered
    claims = [claims_table(rendered.claims)] if rendered.claims else []
    notes = [f"Not drawn: {reason}." for reason in rendered.skipped]
    return Section(section.name, section.title, [*claims, *rendered.tables, *rendered.pictures, *notes])


def _environment(runs: Sequence[FinishedRun]) -> str:
    machines = (
        "".join(tables.to_html(table) for table in (*own_task_tables(runs), *environment_tables(runs)))
        if runs
        else "<p>No runs.</p>"
    )
    lines = "\n".join(escape(line) for line in commands(runs))
    name, title = ENVIRONMENT
    return (
        f'<section id="{name}"><h2>{title}</h2>'
        f"<p>{EVERYTHING}</p><pre>{escape(chr(10).join(reproduce_commands(runs)))}</pre>{machines}"
        f"<details><summary>The command of every single run</summary><pre>{lines}</pre></details></section>"
    )
