"""Procedural textures that the camera looks up: the ground, filtered once for every image row, and the tree line.

The ground is periodic noise in road coordinates (along, across). All pixels of an image row see the same distance, so
they have the same footprint along and across, and need one level of an anisotropic pyramid of mip maps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet_paper.driving.seeded_random import generator

TEXEL = 0.0625
ALONG, ACROSS = 64.0, 32.0
VARIANTS = 3
"""Different grounds and tree lines per season."""
SEASONS = ("summer", "winter")
PANORAMA = 2048
"""Columns of a tree line around the whole horizon."""
_STREAM = 10


def _noise(shape: tuple[int, int], sizes: tuple[float, float], source: torch.Generator) -> Tensor:
    """Draw periodic Gaussian noise of unit variance with blobs of the given sizes in texels, (rows, columns)."""
    white = torch.randn(shape, generator=source)
    rows = torch.fft.fftfreq(shape[0])[:, None] * sizes[0]
    columns = torch.fft.rfftfreq(shape[1])[None] * sizes[1]
    smooth = torch.fft.irfft2(torch.fft.rfft2(white) * torch.exp(-2 * (rows**2 + columns**2)), s=shape)
    scaled: Tensor = smooth / smooth.std()
    return scaled


def _to_uniform(noise: Tensor) -> Tensor:
    """Map Gaussian noise to a uniform distribution over 0 to 1."""
    return 0.5 * (1 + torch.erf(noise / math.sqrt(2)))


def ground(season: str, variant: int) -> Tensor:
    """Make grain, shadow and patches of a piece of road, 0 to 1, (3, along, across); across 0 is between the lanes.

    Grain brightens and darkens the surface around 0.5, shadow is the shadow of trees, and snow lies and paint wears off
    where patches are low; tyres keep patches high on two tracks per lane.
    """
    shape = int(ALONG / TEXEL), int(ACROSS / TEXEL)
    source = generator(variant, _STREAM + SEASONS.index(season))
    across = (torch.arange(shape[1]) + 0.5) * TEXEL - ACROSS / 2
    on_road = (across.abs() < 4.1).float()

    def noise(along: float, wide: float) -> Tensor:
        return _noise(shape, (along / TEXEL, wide / TEXEL), source)

    track = sum(torch.exp(-(((across.abs() - middle) / 0.28) ** 2)) for middle in (1.0, 2.5))
    assert isinstance(track, Tensor)
    asphalt = 0.5 * noise(0.06, 0.06) + 0.5 * noise(2.5, 0.25) - 0.7 * track
    tufts = 0.9 * noise(0.25, 0.2) + 0.9 * noise(1.2, 0.9) + 0.5 * noise(9.0, 2.0)
    drifts = 0.25 * noise(0.3, 0.3) + 0.5 * noise(3.0, 0.8) + 0.3 * noise(10.0, 3.0)
    verge = tufts if season == "summer" else drifts
    grain = 0.5 + 0.16 * (asphalt * on_road + verge * (1 - on_road))
    # Trees stand in groups along the road, and their shadows lie across it.
    crowns = noise(2.2, 5.0) + 0.35 * noise(0.5, 0.5) + 0.9 * noise(14.0, 30.0) - 0.9
    shadow = torch.sigmoid(5 * crowns)
    patches = _to_uniform(0.8 * noise(3.0, 0.45) + 0.45 * noise(0.35, 0.2) + 0.5 * noise(12.0, 2.0)) + 0.4 * track - 0.1
    return torch.stack([grain, shadow, patches]).clamp(0, 1)


def tree_line(season: str, variant: int, rows: int) -> Tensor:
    """Make trees and hills around the horizon, 0 to 1, (3, rows, PANORAMA): trees, trees times their light, hills.

    Row 0 is the highest; heights are in image rows. Trees hide the hills behind them.
    """
    source = generator(variant, _STREAM + 100 + SEASONS.index(season))
    # Drawn at four times the height and twice the width, then averaged, so that edges are smooth.
    shape = 4 * rows, 2 * PANORAMA
    column = torch.arange(shape[1])

    def skyline(size: float) -> Tensor:
        return _noise((1, shape[1]), (1.0, size), source)[0]

    height = (0.42 + 0.16 * skyline(300) + 0.08 * skyline(60)) * rows
    for width, share in ((26, 0.16), (14, 0.12)):
        # In summer the trees have round crowns; in winter they are pointed spruces.
        phase = (column + 0.6 * width * skyline(width * 2.0)) / width
        tooth = 2 * (phase - phase.floor() - 0.5).abs()
        crown = torch.sqrt((1 - tooth**2).clamp_min(0)) if season == "summer" else 1 - tooth
        height = height + share * rows * (crown - 0.5) * (0.7 + 0.5 * skyline(width * 3.0)).clamp(0, 1.6)
    level = (rows - (torch.arange(shape[0])[:, None] + 0.5) / 4).expand(shape)
    trees = (level < height).float()
    leaves = 0.55 + 0.2 * _noise(shape, (4.0, 5.0), source) + 0.14 * _noise(shape, (10.0, 24.0), source)
    light = (leaves * (0.45 + 0.65 * (level / height.clamp_min(1.0)).clamp(0, 1))).clamp(0, 1)
    hills = (level < (0.5 + 0.2 * skyline(500) + 0.05 * skyline(90)) * rows).float() * (1 - trees)
    return functional.avg_pool2d(torch.stack([trees, trees * light, hills])[None], (4, 2))[0]


@dataclass(frozen=True)
class Pyramid:
    """All grounds at the levels that the rows need, in one flat tensor.

    For a row, the texel at (along, across), both in [0, 1) of the texture's period, is number
    first[variant, row] + floor(along * along_count[row]) * across_count[row] + floor(across * across_count[row]).

    Attributes:
        texels: patches, shadow and grain as the first, second and third byte of a binary fraction, (texel,): shadow is
            the fractional part of 2^8 times it, grain that of 2^16 times it. Indices stay below 2^24, so that they can
            be computed in float32.
        first: (season * VARIANTS + variant, row).
        along_count, across_count: (row, 1).
    """

    texels: Tensor
    first: Tensor
    along_count: Tensor
    across_count: Tensor


@cache
def pyramid(footprints: tuple[tuple[float, float], ...]) -> Pyramid:
    """Make the pyramid for rows; a pixel of a row covers `footprints[row]` metres along and across."""
    levels = [
        tuple(max(0, min(round(math.log2(size / TEXEL)), limit)) for size, limit in zip(pair, (9, 7), strict=True))
        for pair in footprints
    ]
    texels: list[Tensor] = []
    filled, first = 0, []
    for season in SEASONS:
        for variant in range(VARIANTS):
            whole, places = ground(season, variant), {}
            for level in sorted(set(levels)):
                block = (2 ** level[0], 2 ** level[1])
                grain, shadow, patches = (functional.avg_pool2d(whole[None], block)[0] * 255).round()
                places[level] = filled
                texels.append((patches / 2**8 + shadow / 2**16 + grain / 2**24).flatten())
                filled += texels[-1].numel()
            first.append([places[level] for level in levels])
    counts = torch.tensor([[int(ALONG / TEXEL) >> i, int(ACROSS / TEXEL) >> j] for i, j in levels]).float()
    return Pyramid(torch.cat(texels), torch.tensor(first).float(), counts[:, :1], counts[:, 1:])


@cache
def panorama(rows: int) -> Tensor:
    """Make all tree lines, (season * VARIANTS + variant, column, 3 * rows); pixels of one direction are adjacent."""
    lines = [tree_line(season, variant, rows) for season in SEASONS for variant in range(VARIANTS)]
    return torch.stack(lines).flatten(1, 2).transpose(1, 2).contiguous()
