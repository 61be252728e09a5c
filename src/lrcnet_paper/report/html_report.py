"""Two self-contained HTML pages about finished runs, the results and their set-up: for phone, desk and paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

from lrcnet.pages import tables
from lrcnet.pages.content import Picture, Section, Table
from lrcnet.pages.html import contents, section_html, write_page
from lrcnet_paper.report.assemble import (
    EVERYTHING,
    ArtefactSection,
    commands,
    environment_tables,
    outdated_table,
    own_task_tables,
    reproduce_commands,
)
from lrcnet_paper.report.summary import claims_table, headline_table, interpretation, opening, verdict_counts
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.verdict import RULES, SYMBOLS, css_class

TITLE = "Liquid Resistance Liquid Capacitance Networks: the paper and our results"
SET_UP_TITLE = "The set-up behind our results"
OVERVIEW = ("overview", "Overview")
ENVIRONMENT = ("environment", "Machine, versions, commands")
RULE = ("rule", "How verdicts are given")


def write_html(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], path: str | os.PathLike[str]) -> Path:
    """Write both pages.

    Returns:
        The page of the results; the page of the set-up is beside it, with "-setup" in its name.
    """
    page = Path(path)
    set_up = page.with_name(f"{page.stem}-setup{page.suffix}")
    _write_results(sections, runs, page, set_up)
    _write_set_up(sections, runs, page, set_up)
    return page


def _write_results(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], page: Path, set_up: Path) -> None:
    shown = [section for section in sections if section.part != "set-up"]
    main = [_section(section) for section in shown if section.part == "paper"]
    further = [part for section in shown if (part := _sensitivities(section)) is not None]
    links = [OVERVIEW, *((part.name, part.title) for part in (*main, *further)), RULE]
    body = "".join(section_html(part) for part in (*main, *further))
    own_tasks = "".join(tables.to_html(table) for table in own_task_tables(runs))
    link = (
        f'<p><a href="{escape(set_up.name)}">Parameters, hyper-parameters, commands and machine</a> are on a second '
        "page.</p>"
    )
    _write(page, TITLE, links, f"{_overview(shown, runs)}{link}{body}{own_tasks}{_rules()}")


def _write_set_up(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], page: Path, set_up: Path) -> None:
    parts = [_section(section) for section in sections if section.part == "set-up"]
    links = [*((part.name, part.title) for part in parts), ENVIRONMENT]
    back = f'<p><a href="{escape(page.name)}">The results</a> are on the first page.</p>'
    body = "".join(section_html(part) for part in parts)
    _write(set_up, SET_UP_TITLE, links, f"{back}{body}{_environment(runs)}")


def _write(path: Path, title: str, links: Sequence[tuple[str, str]], body: str) -> None:
    files = resources.files(__package__)
    css = "".join(files.joinpath(name).read_text(encoding="utf-8") for name in ("verdicts.css", "contents.css"))
    script = files.joinpath("contents.js").read_text(encoding="utf-8")
    navigation = f'<details class="contents" open><summary>Contents</summary>{contents(links)}</details>'
    write_page(
        path,
        title,
        f'<header><h1>{escape(title)}</h1></header><div class="reading">{navigation}<main>{body}</main></div>'
        f"<footer><p class='soft'>Written by <code>lrcnet report</code>.</p></footer><script>{script}</script>",
        css=css,
    )


def _overview(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun]) -> str:
    tiles = "".join(
        f'<li><b class="{css_class(word)}">{count}</b><span aria-hidden="true">{SYMBOLS[word]}</span> {word}</li>'
        for word, count in verdict_counts(sections).items()
    )
    name, title = OVERVIEW
    return (
        f'<section id="{name}"><h2>{title}</h2><p>{escape(" ".join(opening(sections, runs)))}</p>'
        f'<ul class="counts">{tiles}</ul>{tables.to_html(headline_table(sections))}</section>'
    )


def _rules() -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in RULES)
    name, title = RULE
    return f'<section id="{name}"><h2>{title}</h2><ul>{lines}</ul></section>'


def _section(section: ArtefactSection) -> Section:
    rendered = section.rendered
    blocks: list[Table | Picture | str] = [text] if (text := interpretation(section)) else []
    blocks += [*rendered.tables, *rendered.pictures]
    blocks += [claims_table(rendered.claims)] if rendered.claims else []
    if rendered.differences:
        blocks.append(f"Differences from the protocol: {' '.join(rendered.differences)}")
    return Section(section.name, section.title, [*blocks, *(f"Not drawn: {reason}." for reason in rendered.skipped)])


def _sensitivities(section: ArtefactSection) -> Section | None:
    """Return a section of what has no verdict, or None if there is nothing of it."""
    if section.part == "sensitivity":
        return _section(section)
    if not section.rendered.sensitivities:
        return None
    title = f"Sensitivities: {section.title}"
    return Section(f"{section.name}-sensitivities", title, list(section.rendered.sensitivities))


def _environment(runs: Sequence[FinishedRun]) -> str:
    outdated = outdated_table(runs)
    blocks = [*environment_tables(runs), *([] if outdated is None else [outdated])]
    machines = "".join(tables.to_html(table) for table in blocks) if runs else "<p>No runs.</p>"
    lines = "\n".join(escape(line) for line in commands(runs))
    name, title = ENVIRONMENT
    return (
        f'<section id="{name}"><h2>{title}</h2>'
        f"<p>{EVERYTHING}</p><pre>{escape(chr(10).join(reproduce_commands(runs)))}</pre>{machines}"
        f"<details><summary>The command of every single run</summary><pre>{lines}</pre></details></section>"
    )
