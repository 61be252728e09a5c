"""Matplotlib figures as PNG, as SVG, or as SVG inside a page, which then gives them its ink, paper and grid colours."""

from __future__ import annotations

import io
import re
import textwrap
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet.pages.compact_svg import compact
from lrcnet.pages.content import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# An SVG file embeds only parts such as coloured roads as pixels, and many of them.
DOTS_PER_INCH = {"png": 150, "svg": 110}
# A number with more than two decimals within a path, an attribute or a style; not part of a name or of encoded bytes.
_LONG_NUMBER = re.compile(r"(?<![\w.#+/])-?\d+\.\d{3,}(?![\w.+/=])")


# Characters of a title that fit into an inch of a figure at the size of titles.
_CHARACTERS_PER_INCH = 11.2


def write_finding(figure: Figure, text: str) -> None:
    """Write the finding of a figure above its panels, broken into lines that fit its width; "" writes nothing."""
    if not text:
        return
    width = int(_CHARACTERS_PER_INCH * figure.get_figwidth())
    # No line begins with a percent sign or ends with an equals sign.
    whole = text.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")
    figure.suptitle("\n".join(textwrap.wrap(whole, width)), x=0.01, ha="left", fontsize=10.5, fontweight="bold")


def save(picture: Picture, folder: Path, kinds: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """Write the picture under its name, once per kind, and return the paths."""
    written = []
    for kind in kinds:
        path = folder / f"{picture.name}.{kind}"
        content = _svg(picture).encode() if kind == "svg" else _render(picture, kind)
        path.write_bytes(content)
        written.append(path)
    return written


def inline(picture: Picture, prefix: str) -> str:
    """Return the picture as an SVG element that follows the page's colours.

    Args:
        picture: the picture.
        prefix: goes before the ids of its panels; no two pictures of a page may share one.
    """
    svg = _svg(picture)
    svg = svg[svg.index("<svg") :]
    svg = compact(svg, prefix)
    for colour, variable in (
        (palette.INK, "currentColor"),
        (palette.PAPER, "var(--paper)"),
        (palette.GRID, "var(--grid)"),
    ):
        svg = svg.replace(colour, variable)
    label = escape(picture.alt, quote=True)
    # Width and height in points would keep the style sheet from scaling the SVG; the viewBox keeps its proportions.
    head = svg[: svg.index(">") + 1]
    plain = re.sub(r'\s(width|height)="[^"]*"', "", head)
    width = re.search(r'viewBox="0 0 ([\d.]+)', head)
    size = f' style="max-width:{float(width.group(1)) * 1.7:.0f}px"' if width else ""
    return plain[:-1] + f' role="img" aria-label="{label}"{size}>' + svg[len(head) :]


def _svg(picture: Picture) -> str:
    text = _render(picture, "svg").decode()
    # The metadata holds a date and web addresses; neither belongs in a file that is compared and read offline.
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"<!DOCTYPE[^>]*>\s*", "", text)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.S)
    # A hundredth of a point is finer than any screen or print; the digits beyond it are half of the file. Only tags are
    # touched: the text between them has numbers that people read.
    text = re.sub(r"<[^>]*>", lambda tag: _LONG_NUMBER.sub(_to_hundredths, tag.group()), text)
    text = re.sub(r"\s+([MLCQz])\s+", r"\1", text)  # spaces around the commands of paths
    return re.sub(r"\n\s+", "\n", text)


def _to_hundredths(number: re.Match[str]) -> str:
    return f"{float(number.group()):.2f}".rstrip("0").rstrip(".")


def _render(picture: Picture, kind: str) -> bytes:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    out = io.BytesIO()
    with palette.figure_style():
        engine = picture.figure.get_layout_engine()
        if isinstance(engine, ConstrainedLayoutEngine):
            # Lay out only once: a second layout moves things by fractions of a pixel, and the same figure would give
            # other bytes.
            engine.execute(picture.figure)
            # Without an engine; "none" would keep a place for one, and matplotlib would draw the figure twice.
            picture.figure.set_layout_engine(None)
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        picture.figure.savefig(out, format=kind, dpi=DOTS_PER_INCH.get(kind, 150), metadata=metadata)
    return out.getvalue()
