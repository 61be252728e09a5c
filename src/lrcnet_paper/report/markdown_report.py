"""Two Markdown pages about finished runs, the results and their set-up, with the pictures in a folder beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lrcnet.pages import figures, tables
from lrcnet.pages.content import Picture, Table, minus_signs
from lrcnet.progress import track
from lrcnet_paper import artefacts as paper
from lrcnet_paper.report.assemble import (
    EVERYTHING,
    ArtefactSection,
    commands,
    environment_tables,
    outdated_table,
    own_task_tables,
    reproduce_commands,
)
from lrcnet_paper.report.summary import claims_table, headline_table, interpretation, new_differences, opening
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.verdict import RULES

WRITTEN = "This page is written by `lrcnet report results --markdown docs/reproduction.md`."


def check_page(path: str | os.PathLike[str]) -> Path:
    """Return the path of a Markdown page, or raise: its pictures go into a folder of its name without the suffix."""
    page = Path(path)
    if page.suffix != ".md":
        raise ValueError(f"the page must be a .md file, but is {path}; its pictures go into a folder of that name")
    return page


def write_markdown(
    sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], path: str | os.PathLike[str]
) -> Path:
    """Write both pages, and the pictures as SVG into a folder of the same name without the suffix.

    Returns:
        The page of the results; the page of the set-up is beside it, with "-setup" in its name.
    """
    page = check_page(path)
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    for name in paper.ARTEFACTS:
        for old in pictures.glob(f"{name}-*.svg"):
            old.unlink()
    set_up = page.with_name(f"{page.stem}-setup.md")
    _write(page, _results(sections, runs, pictures, set_up))
    _write(set_up, _set_up(sections, runs, pictures, page))
    return page


def _results(
    sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], pictures: Path, set_up: Path
) -> list[str]:
    shown = [section for section in sections if section.part != "set-up"]
    links = f"[Parameters, hyper-parameters, commands and machine]({set_up.name}) are on a second page. {WRITTEN}"
    text = _bullets([minus_signs(sentence) for sentence in opening(shown, runs)])
    parts = ["# Reproduction", text, tables.to_markdown(headline_table(shown)), links]
    differences = new_differences(shown)
    for section in track([section for section in shown if section.part == "paper"], "writing", unit="section"):
        parts += _section(section, pictures, differences[section.name])
    further = [block for section in shown for block in _sensitivities(section, pictures, differences[section.name])]
    parts += ["## Sensitivities", SENSITIVITIES, *further] if further else []
    parts += [tables.to_markdown(table) for table in own_task_tables(runs)]
    return [*parts, "## How verdicts are given", _bullets(RULES)]


SENSITIVITIES = "Other data, lengths, rates, solvers, initial values and worlds. Nothing here has a verdict."


def _set_up(sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], pictures: Path, page: Path) -> list[str]:
    parts = ["# Reproduction: set-up", f"The set-up behind [the results]({page.name}). {WRITTEN}"]
    for section in sections:
        if section.part == "set-up":
            parts += _section(section, pictures)
    parts += ["## Machine, versions, commands", EVERYTHING, _code(reproduce_commands(runs))]
    parts += [tables.to_markdown(table) for table in environment_tables(runs)]
    outdated = outdated_table(runs)
    parts += [] if outdated is None else [tables.to_markdown(outdated)]
    return [*parts, "<details><summary>The command of every single run</summary>", _code(commands(runs)), "</details>"]


def _section(section: ArtefactSection, pictures: Path, differences: Sequence[str] = ()) -> list[str]:
    rendered = section.rendered
    parts = [f"## {section.title}", tables.escape_markdown(minus_signs(interpretation(section)))]
    parts += [_block(section, table, pictures) for table in rendered.tables]
    parts += [_block(section, picture, pictures) for picture in rendered.pictures]
    parts += [tables.to_markdown(claims_table(rendered.claims))] if rendered.claims else []
    # An artefact that is one sensitivity as a whole has no second section to put its own sensitivities into.
    own = rendered.sensitivities if section.part == "sensitivity" else ()
    parts += [_block(section, block, pictures) for block in own]
    parts += [f"Differences from the protocol:\n\n{_bullets(differences)}"] if differences else []
    return [part for part in parts if part] + [
        f"Not drawn: {tables.escape_markdown(reason)}." for reason in rendered.skipped
    ]


def _sensitivities(section: ArtefactSection, pictures: Path, differences: Sequence[str]) -> list[str]:
    if section.part == "sensitivity":
        return [f"#{part}" if part.startswith("## ") else part for part in _section(section, pictures, differences)]
    blocks = [_block(section, block, pictures) for block in section.rendered.sensitivities]
    return [f"### {section.title}", *blocks] if blocks else []


def _block(section: ArtefactSection, block: Table | Picture, pictures: Path) -> str:
    if isinstance(block, Table):
        return tables.to_markdown(block)
    file = figures.save(block, pictures, ("svg",))[0]
    named = file.rename(file.with_name(f"{section.name}-{file.name}"))
    alt, caption, details = (
        tables.escape_markdown(minus_signs(text)) for text in (block.alt, block.caption, block.details)
    )
    more = f"\n\n<details><summary>Details</summary>{details}</details>" if details else ""
    return f"![{alt}]({pictures.name}/{named.name})\n\n*{caption}*{more}"


def _write(page: Path, parts: Sequence[str]) -> None:
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _code(lines: Sequence[str]) -> str:
    # A line break in a command could end the block.
    return "\n".join(["```", *(" ".join(line.splitlines()) for line in lines), "```"])


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
