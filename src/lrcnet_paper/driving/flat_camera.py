"""A pinhole over flat ground that shows coloured polygons lying there, under a plain sky (needs pygame).

It stands where `camera.py`'s stands and sees as wide; a picture is drawn four times as large and averaged down, so that
edges are smooth. In the car's frame x points ahead and y to the left, metres.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving.camera import CAMERA_AHEAD, CAMERA_HEIGHT, FOCAL, HEIGHT, HORIZON, WIDTH

SKY_HIGH, SKY_LOW = (112, 164, 216), (206, 222, 234)
_FINER = 4
# Where the lowest row meets the ground: what is nearer is cut away, so that nothing lies behind the camera.
_NEAR = FOCAL * CAMERA_HEIGHT / (HEIGHT - HORIZON)
# Further away a metre of ground is less than a hundredth of a row.
_FAR = 400.0


class FlatCamera:
    """Draws ground of one colour with polygons on it.

    Args:
        ground: colour of the bare ground, 0 to 255, (3,).
        corners: of the polygons on the map, m, (polygon, 4, 2); later ones cover earlier ones.
        colours: of the polygons, 0 to 255, (polygon, 3).
    """

    def __init__(self, ground: NDArray[np.float64], corners: NDArray[np.float64], colours: NDArray[np.float64]) -> None:
        import pygame

        self._polygon, self._shrink = pygame.draw.polygon, pygame.transform.smoothscale
        self._read = pygame.surfarray.array3d
        self._corners = corners
        self._colours = [tuple(colour) for colour in colours.round().astype(int).tolist()]
        self._canvas = pygame.Surface((WIDTH * _FINER, HEIGHT * _FINER), depth=32)
        self._empty = self._canvas.copy()
        self._empty.fill(tuple(ground.round().astype(int).tolist()))
        for row in range(HORIZON * _FINER):
            share = row / (HORIZON * _FINER - 1)
            colour = [round(a + (b - a) * share) for a, b in zip(SKY_HIGH, SKY_LOW, strict=True)]
            self._empty.fill(colour, (0, row, WIDTH * _FINER, 1))

    def frame(self, x: float, y: float, direction: float) -> NDArray[np.uint8]:
        """What a car sees whose rear axle is at (x, y), m, and that points there, rad; (48, 160, 3), RGB."""
        cos, sin = math.cos(direction), math.sin(direction)
        gap = self._corners - (x + CAMERA_AHEAD * cos, y + CAMERA_AHEAD * sin)
        ahead = cos * gap[..., 0] + sin * gap[..., 1]
        left = cos * gap[..., 1] - sin * gap[..., 0]
        # A polygon that lies wholly before, behind or beside the picture is not drawn.
        edge = WIDTH / (2 * FOCAL)
        seen = (ahead.max(1) > _NEAR) & (ahead.min(1) < _FAR)
        seen &= (left - edge * ahead).min(1) < 0
        seen &= (left + edge * ahead).max(1) > 0
        self._canvas.blit(self._empty, (0, 0))
        chosen = np.flatnonzero(seen)
        ahead, left = ahead[chosen], left[chosen]
        whole = ahead.min(1) >= _NEAR
        # All that need no cutting at once; a division by what lies behind is not looked at.
        across, down = _pixels(np.where(whole[:, None], ahead, 1.0), left)
        points = np.stack([across, down], -1).tolist()
        for place, (index, ready) in enumerate(zip(chosen.tolist(), whole.tolist(), strict=True)):
            shape = points[place] if ready else _cut(ahead[place].tolist(), left[place].tolist())
            self._polygon(self._canvas, self._colours[index], shape)
        small = self._shrink(self._canvas, (WIDTH, HEIGHT))
        picture: NDArray[np.uint8] = self._read(small).swapaxes(0, 1)
        return picture


def _pixels(ahead: NDArray[np.float64], left: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Column and row on the large picture."""
    scale = FOCAL * _FINER / ahead
    column, row = WIDTH * _FINER / 2 - scale * left, HORIZON * _FINER + scale * CAMERA_HEIGHT
    return np.floor(column).astype(np.int64), np.floor(row).astype(np.int64)


def _cut(ahead: list[float], left: list[float]) -> list[tuple[int, int]]:
    """The part of a polygon that lies beyond the near edge of the picture, in pixels."""
    corners, kept = list(zip(ahead, left, strict=True)), []
    for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if a >= _NEAR:
            kept.append((a, b))
        if (a >= _NEAR) != (c >= _NEAR):
            share = (_NEAR - a) / (c - a)
            kept.append((_NEAR, b + share * (d - b)))
    across, down = _pixels(*np.array(kept).T)
    return list(zip(across.tolist(), down.tolist(), strict=True))
