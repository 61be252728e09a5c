"""One Markdown page about finished runs, with its pictures in a folder beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lrcnet.pages import figures, tables
from lrcnet_paper import artefacts as paper
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
from lrcnet_paper.results.verdict import RULES

HEAD = """# Reproduction

The claims of the paper *Liquid Resistance Liquid Capacitance Networks*, and our results. This page is written by
`lrcnet report results --markdown docs/reproduction.md`; to change it, change a run or the code that draws it."""


def write_markdown(
    sections: Sequence[ArtefactSection], runs: Sequence[FinishedRun], path: str | os.PathLike[str]
) -> Path:
    """Write the page, and its pictures as SVG into a folder of the same name without the suffix."""
    page = Path(path)
    if page.suffix != ".md":
        raise ValueError(f"the page must be a .md file, but is {path}; its pictures go into a folder of that name")
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    for name in paper.ARTEFACTS:
        for old in pictures.glob(f"{name}-*.svg"):
            old.unlink()
    counts = ", ".join(f"{count} {word}" for word, count in verdict_counts(sections).items() if count)
    parts = [HEAD, f"{len(runs)} runs; claims: {counts}.", "## How verdicts are given", _bullets(RULES)]
    for section in sections:
        parts += _section(section, pictures)
    parts += ["## Machine, versions, commands", EVERYTHING, _code(reproduce_commands(runs))]
    parts += [tables.to_markdown(table) for table in (*own_task_tables(runs), *environment_tables(runs))]
    parts += ["<details><summary>The command of every single run</summary>", _code(commands(runs)), "</details>"]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def _section(section: ArtefactSection, pictures: Path) -> list[str]:
    rendered = section.rendered
    parts = [f"## {section.title}"]
    if rendered.claims:
        parts.append(tables.to_markdown(claims_table(rendered.claims)))
    parts += [tables.to_markdown(table) for table in rendered.tables]
    for picture in rendered.pictures:
        file = figures.save(picture, pictures, ("svg",))[0]
        named = file.rename(file.with_name(f"{section.name}-{file.name}"))
        alt, caption = tables.escape_markdown(picture.alt), tables.escape_markdown(picture.caption)
        parts.append(f"![{alt}]({pictures.name}/{named.name})\n\n*{caption}*")
    return parts + [f"Not drawn: {tables.escape_markdown(reason)}." for reason in rendered.skipped]


def _code(lines: Sequence[str]) -> str:
    # A line break in a command could end the block.
    return "\n".join(["```", *(" ".join(line.splitlines()) for line in lines), "```"])


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
