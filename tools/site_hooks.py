"""Hooks of the documentation site: equations as MathML, pages from files outside docs/, the help of every command.

`mkdocs.yml` names this file. Equations stand in fences called `math`, which GitHub renders as well. MathML needs
neither a script nor a font from elsewhere, so that the site works offline.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
# Pages of the site that stand in the root of the repository, where people look for them.
OUTSIDE = {"contributing.md": "CONTRIBUTING.md", "security.md": "SECURITY.md", "changelog.md": "CHANGELOG.md"}
COMMANDS = "api/commands.md"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files in docs/."""
    for target, source in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=_adapt_links(text)))
    files.append(File.generated(config, COMMANDS, content=describe_commands()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn equations into MathML and links to source files into plain names."""
    markdown = re.sub(r"^```math\n(.*?)^```", _to_mathml, markdown, flags=re.DOTALL | re.MULTILINE)
    markdown = re.sub(r"\$`([^`]+)`\$", lambda inline: convert(inline[1]), markdown)
    return re.sub(r"\[([^\]]+)\]\((?:\.\./)*(?:examples|src|tests|tools)/[^)]*\)", r"`\1`", markdown)


def _to_mathml(fence: re.Match[str]) -> str:
    return f'<div class="equation">{convert(fence[1].strip(), display="block")}</div>'


def _adapt_links(text: str) -> str:
    """Return a page of the root with links that are right in docs/."""
    for target, source in OUTSIDE.items():
        text = text.replace(f"]({source}", f"]({target}")
    return re.sub(r"\]\(docs/", "](", text)


def describe_commands() -> str:
    """Return a page with the help of every command, as the terminal prints it."""
    import argparse
    import os

    from lrcnet.command_parser import build_parser

    os.environ["COLUMNS"] = "100"
    parser = build_parser()
    subparsers = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    parts = ["# Command line", "The output of `lrcnet --help` and of `lrcnet COMMAND --help`.", _block(parser)]
    for name, sub in subparsers.choices.items():
        parts += [f"## lrcnet {name}", _block(sub)]
    return "\n\n".join(parts) + "\n"


def _block(parser: Any) -> str:
    return f"```text\n{parser.format_help().rstrip()}\n```"
