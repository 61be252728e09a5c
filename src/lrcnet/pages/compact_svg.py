"""Matplotlib's SVG in half the bytes, for a page of many figures; it looks the same.

Matplotlib writes out the style of every tick, wraps each mark in several empty groups and names all of them. Here equal
styles become one CSS class, groups and names without a use go, and PNG becomes WebP.
"""

from __future__ import annotations

import base64
import io
import re
import zlib

# What a page rearranges on a phone: the panels, legends and titles directly inside the figure.
_PART = re.compile(r"(?:axes|legend|text)_\d+")
_GROUP = re.compile(r'<g(?: id="([^"]+)")?((?:\s[^>]*?)?)(/?)>\n?|</g>\n?')
_MAP_COLOURS = 256
"""A picture of more colours than a colour map has is a photograph or a line with soft edges; its pixels may differ."""


def compact(svg: str, prefix: str) -> str:
    """Shorten an SVG element.

    Args:
        svg: the element as matplotlib writes it.
        prefix: text before the names of its parts; no two pictures of a page may share one.
    """
    svg = _simplify_groups(svg, prefix)
    # The long prefix stands only before names that a page looks for; those inside the picture get a short one.
    short = f"i{zlib.crc32(prefix.encode()):x}"
    svg = _number_ids(svg, prefix, short)
    svg = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg)
    svg = re.sub(r'\s(?:xmlns:xlink|version)="[^"]*"', "", svg).replace(" xlink:href=", " href=")
    svg = re.sub(r"\s*\n\s*\"", '"', svg)
    svg = re.sub(r'href="data:image/png;base64,([^"]+)"', _to_webp, svg)
    return _name_styles(svg, short)


def _simplify_groups(svg: str, prefix: str) -> str:
    """Remove groups without attributes; only those directly inside the figure's own group keep a name."""
    kept: list[bool] = []

    def replace(match: re.Match[str]) -> str:
        if match.group().startswith("</"):
            return match.group() if kept.pop() else ""
        name, attributes = match.group(1) or "", match.group(2)
        if match.group(3):  # an empty group draws nothing
            return ""
        # The drawing is the outermost group; its parts are one level below.
        part = len(kept) == 1 and _PART.fullmatch(name) is not None
        kept.append(not kept or part or bool(attributes.strip()))
        return f"<g{f' id={chr(34)}{prefix}-{name}{chr(34)}' if part else ''}{attributes}>\n" if kept[-1] else ""

    return _GROUP.sub(replace, svg)


def _number_ids(svg: str, prefix: str, short: str) -> str:
    """Give each id that is referred to a short name, and remove the others."""
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    names = {name: f"{short}-{number}" for number, name in enumerate(used)}

    def rename(match: re.Match[str]) -> str:
        name = match.group(1)
        if name.startswith(f"{prefix}-"):
            return match.group()
        return f' id="{names[name]}"' if name in names else ""

    svg = re.sub(r'\sid="([^"]+)"', rename, svg)
    svg = re.sub(r'(?:xlink:)?href="#([^"]+)"', lambda match: f'href="#{names[match.group(1)]}"', svg)
    return re.sub(r"url\(#([^)]+)\)", lambda match: f"url(#{names[match.group(1)]})", svg)


def _name_styles(svg: str, short: str) -> str:
    """Replace the style of each element by a class of the picture's own style sheet."""
    classes: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        style = re.sub(r"\s*([:;])\s*", r"\1", match.group(1))
        return f' class="{classes.setdefault(style, f"{short}-s{len(classes)}")}"'

    svg = re.sub(r'\sstyle="([^"]+)"', replace, svg)
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    return svg.replace("</style>", f"{rules}</style>", 1)


def _to_webp(match: re.Match[str]) -> str:
    from PIL import Image

    image = Image.open(io.BytesIO(base64.b64decode(match.group(1)))).convert("RGBA")
    out = io.BytesIO()
    image.save(out, "WEBP", lossless=image.getcolors(_MAP_COLOURS) is not None, quality=88, exact=False)
    shorter = f'href="data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"'
    return min(shorter, match.group(), key=len)
