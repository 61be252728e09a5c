"""The appearance of an episode: season, light, colours, haze, paint and where textures begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet.errors import one_of
from lrcnet_paper.driving.seeded_random import between, uniforms
from lrcnet_paper.driving.textures import ALONG, SEASONS, VARIANTS

_STREAM = 4
# Colours 0 to 255 as (summer, winter), each with its largest variation up or down.
_GRASS = ((92, 116, 50), (214, 220, 230)), ((22, 20, 14), (16, 14, 10))
_ASPHALT = ((108, 107, 106), (88, 90, 95)), ((20, 19, 18), (16, 16, 15))
_SKY_HIGH = ((96, 150, 216), (170, 184, 204)), ((26, 26, 20), (20, 18, 16))
_SKY_LOW = ((206, 222, 238), (214, 220, 228)), ((16, 12, 10), (14, 12, 12))
_TREES = ((26, 46, 20), (40, 48, 48)), ((10, 14, 8), (10, 10, 10))
_LEAVES = ((84, 104, 50), (92, 98, 100)), ((24, 22, 16), (30, 28, 26))
_HILLS = ((112, 140, 136), (164, 174, 188)), ((16, 16, 16), (14, 12, 12))


@dataclass(frozen=True)
class Appearance:
    """The appearance of a batch of episodes. Colours are (batch, 3), 0 to 255; everything else (batch,).

    Attributes:
        winter: 1 in winter, 0 in summer.
        texture: number of the ground and the tree line, season * VARIANTS + variant.
        texture_start: place on the ground texture at which the road begins, m.
        yaw_start: angle on the horizon to which the road points at its beginning, rad.
        verge, asphalt, paint: colours of the ground.
        sky_high, sky_low, trees, leaves, hills: colours above the horizon; haze has the colour of the low sky.
        light: brightness of the ground and the trees, around 1.
        tint: colour of all light, (batch, 3), around 1.
        haze: share of light that is lost per metre.
        shadow: darkness of shadows, 0 under clouds.
        grain: strength of surface textures.
        slush: cover of snow everywhere in winter, 0 to 1.
    """

    winter: Tensor
    texture: Tensor
    texture_start: Tensor
    yaw_start: Tensor
    verge: Tensor
    asphalt: Tensor
    paint: Tensor
    sky_high: Tensor
    sky_low: Tensor
    trees: Tensor
    leaves: Tensor
    hills: Tensor
    light: Tensor
    tint: Tensor
    haze: Tensor
    shadow: Tensor
    grain: Tensor
    slush: Tensor

    def __len__(self) -> int:
        return len(self.winter)


def sample_appearances(seeds: Sequence[int], season: str = "mixed") -> Appearance:
    """Make appearances from seeds.

    Args:
        seeds: one per episode.
        season: "summer", "winter", or "mixed", where the seed decides.

    Raises:
        ValueError: for another season.

    >>> sample_appearances([1, 2], "winter").winter
    tensor([1., 1.])
    """
    one_of("season", season, (*SEASONS, "mixed"))
    u = uniforms(seeds, 64, stream=_STREAM).float()
    winter = (u[:, 0] < 0.5).float() if season == "mixed" else torch.full((len(u),), float(season == "winter"))

    def by_season(pair: tuple[tuple[int, ...], tuple[int, ...]]) -> Tensor:
        return torch.lerp(torch.tensor(pair[0]).float(), torch.tensor(pair[1]).float(), winter[:, None])

    def colour(given: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], first: int) -> Tensor:
        # Brightness varies more than hue.
        change = 0.75 * between(-1, 1, u[:, first : first + 1]) + 0.25 * between(-1, 1, u[:, first + 1 : first + 4])
        return by_season(given[0]) + by_season(given[1]) * change

    clouds = torch.where(winter > 0, between(0.3, 1.0, u[:, 1]), u[:, 1])
    sky_low = colour(_SKY_LOW, 4)
    grey = torch.tensor([1.0, 1.0, 1.02])
    overcast = clouds[:, None] * (0.75 + 0.2 * winter[:, None])
    sky_high = torch.lerp(colour(_SKY_HIGH, 8), sky_low.mean(1, keepdim=True) * 0.9 * grey, overcast)
    sky_low = torch.lerp(sky_low, sky_low.mean(1, keepdim=True) * grey, overcast)
    warmth = between(-0.06, 0.06, u[:, 15:16]) * torch.tensor([1.0, 0.2, -1.0])
    return Appearance(
        winter=winter,
        texture=winter.long() * VARIANTS + (u[:, 2] * VARIANTS).long(),
        texture_start=u[:, 3] * ALONG,
        yaw_start=u[:, 16] * 2 * torch.pi,
        verge=colour(_GRASS, 20),
        asphalt=colour(_ASPHALT, 24),
        paint=between(205, 245, u[:, 12:13]) * torch.tensor([1.0, 1.0, 0.97]),
        sky_high=sky_high,
        sky_low=sky_low,
        trees=colour(_TREES, 28),
        leaves=colour(_LEAVES, 32),
        hills=colour(_HILLS, 36),
        light=between(0.62, 1.12, u[:, 17]) - 0.08 * clouds,
        tint=1 + warmth,
        haze=torch.exp(between(-6.6, -4.6, u[:, 18])),
        # Shadows are dark in the sun and vanish under a closed sky.
        shadow=0.62 * (1.25 * (1 - clouds)).clamp(0, 1) * between(0.6, 1.0, u[:, 40]),
        grain=between(0.35, 0.75, u[:, 19]) * (1 - 0.3 * winter),
        slush=0.35 * u[:, 41] * winter,
    )
