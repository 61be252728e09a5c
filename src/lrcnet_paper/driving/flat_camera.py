"""A pinhole camera over flat ground with coloured polygons on it, under a plain sky (needs pygame).

It has the place and the field of view of the camera in `camera.py`. A frame is drawn four times as large and then
averaged, so that edges are smooth. In the car's frame x points ahead and y to the left, metres.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lrcnet_paper.driving.camera import CAMERA_AHEAD, CAMERA_HEIGHT, FOCAL, HEIGHT, HORIZON, WIDTH

SKY_HIGH, SKY_LOW = (112, 164, 216), (206, 222, 234)
_SUPERSAMPLING = 4
# Distance at which the lowest row meets the ground, m; nearer parts are clipped, so nothing lies behind the camera.
_NEAR = FOCAL * CAMERA_HEIGHT / (HEIGHT - HORIZON)
# Beyond this distance, m, a metre of ground is less than a hundredth of a row.
_FAR = 400.0


class FlatCamera:
    """Renders ground of one colour with polygons on it.

    Args:
        ground: colour of the bare ground, 0 to 255, (3,).
        corners: corners of the polygons on the map, m, (polygon, 4, 2); later ones cover earlier ones.
        colours: colours of the polygons, 0 to 255, (polygon, 3).
    """

    def __init__(self, ground: NDArray[np.float64], corners: NDArray[np.float64], colours: NDArray[np.float64]) -> None:
        import pygame

        self._polygon, self._scale_down = pygame.draw.polygon, pygame.transform.smoothscale
        self._read = pygame.surfarray.array3d
        self._corners = corners
        self._colours = [tuple(colour) for colour in colours.round().astype(int).tolist()]
        self._canvas = pygame.Surface((WIDTH * _SUPERSAMPLING, HEIGHT * _SUPERSAMPLING), depth=32)
        self._empty = self._canvas.copy()
        self._empty.fill(tuple(ground.round().astype(int).tolist()))
        for row in range(HORIZON * _SUPERSAMPLING):
            share = row / (HORIZON * _SUPERSAMPLING - 1)
            colour = [round(a + (b - a) * share) for a, b in zip(SKY_HIGH, SKY_LOW, strict=True)]
            self._empty.fill(colour, (0, row, WIDTH * _SUPERSAMPLING, 1))

    def frame(self, x: float, y: float, direction: float) -> NDArray[np.uint8]:
        """Render the frame of a car with its rear axle at (x, y), m, in a direction, rad; (48, 160, 3), RGB."""
        cos, sin = math.cos(direction), math.sin(direction)
        gap = self._corners - (x + CAMERA_AHEAD * cos, y + CAMERA_AHEAD * sin)
        ahead = cos * gap[..., 0] + sin * gap[..., 1]
        left = cos * gap[..., 1] - sin * gap[..., 0]
        # Polygons that lie wholly nearer, farther or beside the field of view are not drawn.
        edge = WIDTH / (2 * FOCAL)
        visible = (ahead.max(1) > _NEAR) & (ahead.min(1) < _FAR)
        visible &= (left - edge * ahead).min(1) < 0
        visible &= (left + edge * ahead).max(1) > 0
        self._canvas.blit(self._empty, (0, 0))
        indices = np.flatnonzero(visible)
        ahead, left = ahead[indices], left[indices]
        whole = ahead.min(1) >= _NEAR
        # Project all polygons that need no clipping at once. The others get distance 1, which avoids a division by
        # zero, and their results are not used.
        across, down = _pixels(np.where(whole[:, None], ahead, 1.0), left)
        points = np.stack([across, down], -1).tolist()
        for place, (index, is_whole) in enumerate(zip(indices.tolist(), whole.tolist(), strict=True)):
            shape = points[place] if is_whole else _clip(ahead[place].tolist(), left[place].tolist())
            self._polygon(self._canvas, self._colours[index], shape)
        small = self._scale_down(self._canvas, (WIDTH, HEIGHT))
        frame: NDArray[np.uint8] = self._read(small).swapaxes(0, 1)
        return frame


def _pixels(ahead: NDArray[np.float64], left: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Project points to column and row of the large image."""
    scale = FOCAL * _SUPERSAMPLING / ahead
    column, row = WIDTH * _SUPERSAMPLING / 2 - scale * left, HORIZON * _SUPERSAMPLING + scale * CAMERA_HEIGHT
    return np.floor(column).astype(np.int64), np.floor(row).astype(np.int64)


def _clip(ahead: list[float], left: list[float]) -> list[tuple[int, int]]:
    """Clip a polygon to the part beyond the near edge of the field of view; return its corners in pixels."""
    corners, clipped = list(zip(ahead, left, strict=True)), []
    for (a, b), (c, d) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if a >= _NEAR:
            clipped.append((a, b))
        if (a >= _NEAR) != (c >= _NEAR):
            share = (_NEAR - a) / (c - a)
            clipped.append((_NEAR, b + share * (d - b)))
    across, down = _pixels(*np.array(clipped).T)
    return list(zip(across.tolist(), down.tolist(), strict=True))
