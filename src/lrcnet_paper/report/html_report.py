"""Two self-contained HTML pages about finished runs, the results and their set-up: for phone, desk and paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

from lrcnet.pages import tables
from lrcnet.pages.content import Picture, Table, minus_signs
from lrcnet.pages.html import block_html, fold, heading_html, write_page
from lrcnet.progress import track
from lrcnet_paper.artefacts.artefact import Rendered
from lrcnet_paper.report.assemble import (
    EVERYTHING,
    ArtefactSection,
    commands,
    environment_tables,
    outdated_table,
    own_task_tables,
    reproduce_commands,
)
from lrcnet_paper.report.summary import (
    claims_table,
    headline_table,
    interpretation,
    new_differences,
    opening,
    verdict_counts,
    verdict_word,
)
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.verdict import RULES, SYMBOLS, css_class

TITLE = "Liquid Resistance Liquid Capacitance Networks: the paper and our results"
SET_UP_TITLE = "The set-up behind our results"
OVERVIEW = ("overview", "Overview")
ENVIRONMENT = ("environment", "Machine, versions, commands")
RULE = ("rule", "How verdicts are given")
LONGEST_TABLE = 10
"""Rows of the longest table that is not folded."""


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
    differences = new_differences(shown)
    body, links, further_links = [], [(*OVERVIEW, "")], []
    further = []
    for section in track(shown, "writing", unit="section"):
        if section.part == "paper":
            body.append(_section(section, differences[section.name]))
            links.append((section.name, section.title, verdict_word(section)))
        if text := _sensitivities(section, differences[section.name]):
            further.append(text)
            further_links.append((sensitivities_name(section), sensitivities_title(section), ""))
    links += [*further_links, (*RULE, "")]
    own_tasks = "".join(tables.to_html(table) for table in own_task_tables(runs))
    link = (
        f'<p><a href="{escape(set_up.name)}">Parameters, hyper-parameters, commands and machine</a> are on a second '
        "page.</p>"
    )
    content = "".join([*body, *further])
    _write(page, TITLE, links, f"{_overview(shown, runs)}{link}{content}{own_tasks}{_rules()}")


def _write_set_up(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], page: Path, set_up: Path) -> None:
    parts = [section for section in sections if section.part == "set-up"]
    links = [*((part.name, part.title, "") for part in parts), (*ENVIRONMENT, "")]
    back = f'<p><a href="{escape(page.name)}">The results</a> are on the first page.</p>'
    body = "".join(map(_section, parts))
    _write(set_up, SET_UP_TITLE, links, f"{back}{body}{_environment(runs)}")


def _write(path: Path, title: str, links: Sequence[tuple[str, str, str]], body: str) -> None:
    files = resources.files(__package__)
    css = "".join(files.joinpath(name).read_text(encoding="utf-8") for name in ("verdicts.css", "contents.css"))
    script = "".join(files.joinpath(name).read_text(encoding="utf-8") for name in ("contents.js", "stacking.js"))
    search = '<input type="search" placeholder="Search" aria-label="Search this page">'
    navigation = (
        f'<details class="contents" open><summary>Contents</summary>{search}{_contents(links)}'
        '<p class="shown" role="status"></p></details>'
    )
    write_page(
        path,
        title,
        f'<header><h1>{escape(title)}</h1></header><div class="reading">{navigation}<main>{body}</main></div>'
        f"<footer><p class='soft'>Written by <code>lrcnet report</code>.</p></footer><script>{script}</script>",
        css=css,
    )


def _contents(links: Sequence[tuple[str, str, str]]) -> str:
    """Return the links (id, text, verdict) to the sections, each with the symbol of its verdict if it has one."""
    items = "".join(f'<li><a href="#{name}">{_dot(word)}{escape(text)}</a></li>' for name, text, word in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _dot(word: str) -> str:
    if not word:
        return '<span class="dot"></span>'
    return f'<span class="dot {css_class(word)}" role="img" aria-label="{word}" title="{word}">{SYMBOLS[word]}</span>'


def _overview(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun]) -> str:
    tiles = "".join(
        f'<button type="button" class="tile" data-verdict="{css_class(word)}" aria-pressed="false">'
        f'<b class="{css_class(word)}">{count}</b><span aria-hidden="true">{SYMBOLS[word]}</span> {word}</button>'
        for word, count in verdict_counts(sections).items()
    )
    name, title = OVERVIEW
    return (
        f'<section id="{name}">{heading_html(name, title)}<div class="opening">{_list(opening(sections, runs))}</div>'
        f'<div class="tiles" role="group" aria-label="Show the claims of one verdict">{tiles}</div>'
        f"{tables.to_html(headline_table(sections))}</section>"
    )


def _rules() -> str:
    name, title = RULE
    return f'<section id="{name}">{heading_html(name, title)}{_list(RULES)}</section>'


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(minus_signs(line))}</li>' for line in lines)}</ul>"


def _section(section: ArtefactSection, differences: Sequence[str] = ()) -> str:
    """Return the section of an artefact: what it shows, its tables and figures, its claims, how it differs."""
    rendered = section.rendered
    parts = [f'<p class="interpretation">{escape(minus_signs(text))}</p>'] if (text := interpretation(section)) else []
    parts += [_table(section.name, table) for table in rendered.tables]
    parts += [block_html(section.name, picture) for picture in rendered.pictures]
    parts += [_table(section.name, claims_table(rendered.claims))] if rendered.claims else []
    # An artefact that is one sensitivity as a whole has no second section to put its own sensitivities into.
    parts += [_folded_sensitivities(section.name, rendered)] if section.part == "sensitivity" else []
    if differences:
        parts.append(fold(f"Differences from the protocol ({len(differences)})", _list(differences)))
    parts += [f'<p class="note">Not drawn: {escape(reason)}.</p>' for reason in rendered.skipped]
    return f'<section id="{section.name}">{heading_html(section.name, section.title)}{"".join(parts)}</section>'


def _table(section: str, table: Table) -> str:
    """Return a table; a long one is folded, so that the page can be overlooked."""
    html = block_html(section, table)
    return (
        html if len(table.rows) <= LONGEST_TABLE else fold(f"{table.title} ({len(table.rows)} rows)", html, titled=True)
    )


def _sensitivities(section: ArtefactSection, differences: Sequence[str]) -> str:
    """Return a section of everything that has no verdict, or "" if there is nothing of it."""
    if section.part == "sensitivity":
        return _section(section, differences)
    name = sensitivities_name(section)
    blocks = _folded_sensitivities(name, section.rendered)
    return (
        f'<section id="{name}">{heading_html(name, sensitivities_title(section))}{blocks}</section>' if blocks else ""
    )


def _folded_sensitivities(name: str, rendered: Rendered) -> str:
    return "".join(fold(_summary(block), block_html(name, block), titled=True) for block in rendered.sensitivities)


def _summary(block: Table | Picture) -> str:
    if isinstance(block, Table):
        return f"{block.title} ({len(block.rows)} rows)"
    return f"Figure: {block.figure.get_suptitle() or block.caption}".replace("\n", " ")


def sensitivities_name(section: ArtefactSection) -> str:
    """Return the id of the section of an artefact's sensitivities."""
    return section.name if section.part == "sensitivity" else f"{section.name}-sensitivities"


def sensitivities_title(section: ArtefactSection) -> str:
    """Return the heading of an artefact's sensitivities."""
    return section.title if section.part == "sensitivity" else f"Sensitivities: {section.title}"


def _environment(runs: Sequence[FinishedRun]) -> str:
    outdated = outdated_table(runs)
    blocks = [*environment_tables(runs), *([] if outdated is None else [outdated])]
    machines = "".join(tables.to_html(table) for table in blocks) if runs else "<p>No runs.</p>"
    lines = "\n".join(escape(line) for line in commands(runs))
    name, title = ENVIRONMENT
    return (
        f'<section id="{name}">{heading_html(name, title)}'
        f"<p>{EVERYTHING}</p><pre>{escape(chr(10).join(reproduce_commands(runs)))}</pre>{machines}"
        f"<details><summary>The command of every single run</summary><pre>{lines}</pre></details></section>"
    )
