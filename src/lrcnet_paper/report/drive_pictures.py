"""Frames of a drive as data URLs inside the page, many on a sheet (needs Pillow)."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

COLUMNS, ROWS = 10, 20
"""Columns and rows of frames on a sheet; a sheet has at most 1600x960 pixels, which a phone decodes without trouble."""
QUALITIES = (75, 50, 30, 15)
LARGEST = 6_000_000
"""Maximum total length of the data URLs of a page's sheets, in characters."""


def pillow() -> Any:
    """Import and return PIL.Image.

    Raises:
        ImportError: if Pillow is not installed; the message says how to install it.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "a page with pictures needs Pillow, which is not installed; run: pip install 'lrcnet[driving]'"
        ) from error
    return Image


def sheets(frames: NDArray[np.uint8], largest: int = LARGEST) -> list[str]:
    """Return frames as data URLs of WebP images, each with `COLUMNS` by `ROWS` frames in reading order.

    Args:
        frames: (frame, row, column, 3), or (frame, row, column) for grey ones. Rows and columns are multiples of 8, so
            that no block of an image belongs to two frames.
        largest: maximum total length of the URLs, in characters. The quality is lowered until the sheets fit or the
            lowest quality is reached.
    """
    grids = [_grid(frames[k : k + COLUMNS * ROWS]) for k in range(0, len(frames), COLUMNS * ROWS)]
    urls: list[str] = []
    for quality in QUALITIES:
        urls = [_data_url("webp", grid, quality=quality, method=4) for grid in grids]
        if sum(map(len, urls)) <= largest:
            break
    return urls


def strip(frames: NDArray[np.uint8]) -> str:
    """Return frames (frame, row, column, 3) side by side as the data URL of one WebP image."""
    return _data_url("webp", np.concatenate(list(frames), 1), quality=QUALITIES[0], method=4)


def _grid(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    rows = -(-len(frames) // COLUMNS)
    empty = np.zeros((rows * COLUMNS, *frames.shape[1:]), np.uint8)
    empty[: len(frames)] = frames
    placed = empty.reshape(rows, COLUMNS, *frames.shape[1:]).swapaxes(1, 2)
    return placed.reshape(rows * frames.shape[1], COLUMNS * frames.shape[2], *frames.shape[3:])


def _data_url(kind: str, pixels: NDArray[np.uint8], **options: Any) -> str:
    out = io.BytesIO()
    pillow().fromarray(pixels).save(out, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"
