"""Images of a drive as data URLs inside the page: frames on sheets, activity as coloured rows (needs Pillow)."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrcnet.pages.palette import SEQUENTIAL_SAMPLES

COLUMNS, ROWS = 10, 20
"""Columns and rows of frames on a sheet; a sheet has at most 1600x960 pixels, which a phone decodes without trouble."""
QUALITIES = (88, 80, 70, 60, 50, 40, 30)
LARGEST = 5_000_000
"""Maximum total length of the data URLs of a page's sheets, in characters."""
ROW_PIXELS = 6


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
    """Return frames as data URLs of JPEGs, each with `COLUMNS` by `ROWS` frames in reading order.

    Args:
        frames: (frame, row, column, 3), or (frame, row, column) for grey ones. Rows and columns are multiples of 16, so
            that no block of a JPEG belongs to two frames.
        largest: maximum total length of the URLs, in characters. Noise compresses badly, so the JPEG quality is lowered
            until the sheets fit or the lowest quality is reached.
    """
    grids = [_grid(frames[k : k + COLUMNS * ROWS]) for k in range(0, len(frames), COLUMNS * ROWS)]
    urls: list[str] = []
    for quality in QUALITIES:
        urls = [_data_url("jpeg", grid, quality=quality, optimize=True) for grid in grids]
        if sum(map(len, urls)) <= largest:
            break
    return urls


def colour_rows(values: NDArray[np.float64]) -> str:
    """Return values (time, row) as the data URL of a PNG, time to the right, each row coloured within its own range."""
    low, high = values.min(0), values.max(0)
    span = np.where(high > low, high - low, 1.0)
    # A constant row gets the middle colour.
    level = np.where(high > low, (values - low) / span, 0.5)
    samples = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in SEQUENTIAL_SAMPLES], float)
    at = np.linspace(0, 1, len(SEQUENTIAL_SAMPLES))
    colours = np.stack([np.interp(level, at, samples[:, i]) for i in range(3)], -1).round().astype(np.uint8)
    return _data_url("png", colours.transpose(1, 0, 2).repeat(ROW_PIXELS, 0), optimize=True)


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
