"""Photograph the live pages for the README with Chromium: the drive, the network's inside, the report.

python tools/screenshots.py docs/live docs/images/screens
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

# Page -> the part of its address after the file name.
PAGES = {"drive.html": "#t=9", "explain.html": "", "report.html": ""}
WIDTH, HEIGHT, SHOWN_WIDTH = 1200, 900, 800
CHROMIUM = [
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars", "--virtual-time-budget=4000",
]  # fmt: skip


def photograph(page: Path, fragment: str, target: Path) -> None:
    """Write a small PNG of the first screen of a page."""
    with tempfile.TemporaryDirectory() as profile:
        picture = Path(profile) / "screen.png"
        options = [f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={picture}"]
        address = f"{page.resolve().as_uri()}{fragment}"
        subprocess.run([*CHROMIUM, *options, address], check=True, capture_output=True, timeout=120)
        screen = Image.open(picture).convert("RGB")
    small = screen.resize((SHOWN_WIDTH, HEIGHT * SHOWN_WIDTH // WIDTH), Image.Resampling.LANCZOS)
    small.quantize(128).save(target, optimize=True)


if __name__ == "__main__":
    live, folder = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    for name, fragment in PAGES.items():
        photograph(live / name, fragment, folder / f"{Path(name).stem}.png")
