"""The layout of the two packages: read it from docs/architecture.md, compare it with the imports, draw it.

    python tools/architecture.py    # writes docs/images/architecture.svg

The tables of the page are the only list of levels. The test of the architecture and the picture both read them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
PACKAGES = ("lrcnet", "lrcnet_paper")


class Level(NamedTuple):
    """A row of the page's table: modules that may import each other and everything in the rows above.

    Attributes:
        package: "lrcnet" or "lrcnet_paper".
        modules: names of modules or sub-packages, such as "cells".
        contents: the second column of the table.
    """

    package: str
    modules: tuple[str, ...]
    contents: str


def read_levels() -> list[Level]:
    """Return the rows of the page's tables, from the ground up: the library first, then the suite."""
    levels = []
    for package in PACKAGES:
        section = re.search(rf"^### `{package}`$(.*?)(?=^##)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
        assert section, f"docs/architecture.md must have a section for `{package}`"
        for names, contents in re.findall(r"^\| (`.*?) \| (.*?) \|$", section.group(1), re.MULTILINE):
            levels.append(Level(package, tuple(re.findall(r"`(\w+)(?:\.py|/)?`", names)), contents))
    return levels


def read_modules() -> Iterator[tuple[Path, str, str]]:
    """Yield (path, package, top-level module) of every Python file except the packages' own `__init__.py`."""
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            module = path.relative_to(SOURCE / package).parts[0].removesuffix(".py")
            if module != "__init__":
                yield path, package, module


def read_imports(path: Path) -> set[tuple[str, str]]:
    """Return (package, top-level module) of every import from the two packages, relative imports included."""
    here = path.relative_to(SOURCE).with_suffix("").parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parent = ".".join(here[: len(here) - node.level]) if node.level else ""
            base = ".".join(part for part in (parent, node.module or "") if part)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return {(words[0], _module(words)) for words in parts if words[0] in PACKAGES and len(words) > 1}


def _module(words: list[str]) -> str:
    """Return the top-level module of a dotted name; "" for a public name that the package itself exports."""
    place = SOURCE / words[0] / words[1]
    return words[1] if place.is_dir() or place.with_suffix(".py").exists() else ""


def draw() -> None:
    """Draw the two packages as stacks of levels, the suite on top of the library."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    from lrcnet.pages import palette

    levels = read_levels()
    columns = [[level for level in levels if level.package == package] for package in PACKAGES]
    height = max(map(len, columns))
    titles = {"lrcnet": "lrcnet: the library", "lrcnet_paper": "lrcnet_paper: the suite"}
    with palette.figure_style():
        figure = Figure(figsize=(10, 0.52 * height + 1.2), layout="constrained")
        axes = figure.subplots()
        for x, (column, colour) in enumerate(zip(columns, (palette.BLUE, palette.VERMILION), strict=True)):
            left = 1.12 * x
            axes.text(left + 0.5, height + 0.25, titles[column[0].package], ha="center", fontsize=12, weight="bold")
            for y, level in enumerate(column):
                box = FancyBboxPatch((left, y + 0.1), 1, 0.8, "round,pad=0,rounding_size=0.03", fc=colour, alpha=0.14)
                axes.add_patch(box)
                axes.text(left + 0.5, y + 0.5, ", ".join(level.modules), ha="center", va="center", fontsize=9)
        arrow = {"arrowstyle": "-|>", "color": palette.INK, "linewidth": 1.4}
        middle = 0.5 * min(map(len, columns))
        axes.annotate("", (1.0, middle), (1.12, middle), arrowprops=arrow)
        axes.text(1.06, middle + 0.3, "imports", ha="center", fontsize=8)
        axes.annotate("", (-0.05, 0.1), (-0.05, height - 0.1), arrowprops=arrow)
        axes.text(-0.09, 0.5 * height, "imports go down only", rotation=90, ha="center", va="center", fontsize=8)
        axes.set(xlim=(-0.14, 2.15), ylim=(-0.05, height + 0.7))
        axes.axis("off")
        figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    draw()
    print(f"drawn in {PICTURE.relative_to(ROOT)}")
