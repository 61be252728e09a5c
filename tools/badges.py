"""Draw the README's badges from pyproject.toml, as local SVG files: they are true offline and ask no service.

python tools/badges.py docs/images/badges
"""

from __future__ import annotations

import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Width of a letter of the badge's font, in pixels.
LETTER, PADDING = 6.6, 6


def facts() -> dict[str, tuple[str, str]]:
    """Return name -> (label, text) of each badge."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    torch = next(one for one in project["dependencies"] if one.startswith("torch"))
    return {
        "python": ("Python", project["requires-python"].replace(">=", "≥ ")),
        "torch": ("PyTorch", torch.removeprefix("torch").replace(">=", "≥ ")),
        "licence": ("licence", project["license"]),
    }


def draw(label: str, text: str) -> str:
    """Return a badge as SVG.

    >>> draw("licence", "MIT").count("<text")
    2
    """
    left, right = (round(len(part) * LETTER + 2 * PADDING) for part in (label, text))
    label, text = escape(label), escape(text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {text}"><title>{label}: {text}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#3b4252"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="#0b6aa2"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2}" y="14">{label}</text><text x="{left + right / 2}" y="14">{text}</text></g></svg>\n'
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (label, text) in facts().items():
        (folder / f"{name}.svg").write_text(draw(label, text), encoding="utf-8")
