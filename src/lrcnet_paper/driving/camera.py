"""The camera: a pinhole over flat ground without roll, so that every image row sees one distance.

Per row the nearest point of the lane, its direction and curvature give the distance of any pixel from the lane's
middle as a parabola in the column; what remains per pixel is a few elementwise operations and one texture look-up. A
small matrix of colours per row then mixes ground, road, paint and haze (below the horizon) or sky, hills and trees.

Axes: batch, row (from the top), column (from the left). In the car's frame x points ahead and y to the left, metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet_paper.driving.appearance import Appearance
from lrcnet_paper.driving.road import GRID, LANE_WIDTH, SIGHT, Road
from lrcnet_paper.driving.textures import ACROSS, ALONG, PANORAMA, panorama, pyramid
from lrcnet_paper.driving.vehicle import State

HEIGHT, WIDTH = 48, 160
FOCAL = 120.0
CAMERA_HEIGHT, CAMERA_AHEAD = 1.5, 1.5
HORIZON = 14
"""Rows above the horizon."""
LINE, DASH, DASH_PERIOD = 0.15, 3.0, 9.0
ROAD_EDGE = 4.1
"""From the line between the lanes to where the asphalt ends, m."""
# A lane that turns further than this away from the camera is hidden or out of the picture.
_FACING = 1.2
# Frames drawn at a time: all that one operation touches then stays in the cache.
_CHUNK = 16


@dataclass(frozen=True)
class Lens:
    """How much a camera sees; all have one focal length, FOCAL, and stand at one place of the car.

    Attributes:
        height, width: of the picture, pixels.
        horizon: rows above the horizon; 14 at least, which trees and hills take.
    """

    height: int = HEIGHT
    width: int = WIDTH
    horizon: int = HORIZON

    @property
    def above(self) -> int:
        """Rows of nothing but sky."""
        return self.horizon - HORIZON


@dataclass(frozen=True)
class _Row:
    """What every image row below the horizon knows of its place, each (row, 1)."""

    distance: Tensor
    wide: Tensor
    deep: Tensor


def _rows(lens: Lens) -> _Row:
    below = torch.arange(lens.height - lens.horizon) + 0.5
    # The row just below the horizon would look 360 m far, where no road is known.
    distance = (FOCAL * CAMERA_HEIGHT / below[:, None]).clamp_max(SIGHT - 10.0)
    return _Row(distance, distance / FOCAL, distance**2 / (FOCAL * CAMERA_HEIGHT))


def _columns(lens: Lens) -> Tensor:
    """Pixels to the right of the middle, (column,)."""
    return torch.arange(lens.width) - (lens.width - 1) / 2


_OURS = Lens()
_ROW, _COLUMN = _rows(_OURS), _columns(_OURS)


@dataclass(frozen=True)
class _View:
    """The lane as each image row sees it, each (batch, row, 1) in float32; u is the column.

    Attributes:
        across: distance from the line between the lanes is across[0] + across[1] * u + across[2] * u^2, m.
        along: way along the road is along[0] + along[1] * u, in periods of the texture.
        wide, slant: a pixel covers wide + |slant[0] + slant[1] * u| metres across the lane.
        dash: how much of the line between the lanes is painted there.
        wear, snow: state of the road.
    """

    across: tuple[Tensor, Tensor, Tensor]
    along: tuple[Tensor, Tensor]
    wide: Tensor
    slant: tuple[Tensor, Tensor]
    dash: Tensor
    wear: Tensor
    snow: Tensor


class Camera:
    """Draws what cars see.

    Args:
        road: the roads.
        appearance: the episodes' appearance, of the same batch size.
        lens: what it sees; by default what the networks get.

    Raises:
        ValueError: if the batch sizes differ.
    """

    def __init__(self, road: Road, appearance: Appearance, lens: Lens = _OURS) -> None:
        if len(road) != len(appearance):
            raise ValueError(
                f"road and appearance must have one batch size; they have {len(road)} and {len(appearance)}"
            )
        self._road, self._appearance, self._lens = road, appearance, lens
        self._row, self._column = _rows(lens), _columns(lens)
        self._angle = (self._column / FOCAL).atan()
        self._ground = pyramid(
            tuple((deep, wide) for deep, wide in torch.cat([self._row.deep, self._row.wide], 1).tolist())
        )
        self._trees = panorama(HORIZON)
        self._colours = _colours(appearance, lens, self._row)
        self._table = torch.stack([road.x, road.y, road.direction, road.curvature], 2)
        self._quality = torch.stack([road.wear, road.snow * appearance.winter[:, None]], 2).float()
        # Its last row of weights stays 1; the others are written anew for every picture.
        self._weights = torch.ones(min(_CHUNK, len(road)), lens.height, 4, lens.width)
        self._weights[:, : lens.above, :3] = 0

    @torch.no_grad()
    def frames(self, state: State) -> Tensor:
        """Pictures, (batch, 48, 160, 3) or as large as the lens makes them, uint8, RGB."""
        height, width = self._lens.height, self._lens.width
        above, horizon = self._lens.above, self._lens.horizon
        image = torch.empty(len(self._road), height, width, 3, dtype=torch.uint8)
        yaw, view = self._view(state)
        for first in range(0, len(image), _CHUNK):
            part = slice(first, min(first + _CHUNK, len(image)))
            weights = self._weights[: part.stop - part.start]
            self._fill_background(weights[:, above:horizon, :3], yaw[part], part)
            self._fill_ground(weights[:, horizon:, :3], view, part)
            colour = torch.bmm(self._colours[part].flatten(0, 1), weights.flatten(0, 1)).clamp_(0, 255)
            # Straight to bytes, torch would go pixel by pixel; by way of integers it uses the whole vector.
            planes = colour.to(torch.int32).to(torch.uint8).view(-1, height, 3, width)
            torch.stack(planes.unbind(2), -1, out=image[part])
        return image

    def _view(self, state: State) -> tuple[Tensor, _View]:
        road, appearance, row = self._road, self._appearance, self._row
        x, y, yaw = road.pose(state.arc, state.offset, state.heading)
        # Cars that drive on beyond the end of the road see its last metres.
        low = (state.arc / GRID).floor().long().clamp(0, self._table.shape[1] - SIGHT)[:, None]
        index = low + torch.arange(SIGHT)
        rows = torch.arange(len(road))[:, None] * self._table.shape[1]
        points = self._table.flatten(0, 1).index_select(0, (rows + index).flatten()).view(len(road), SIGHT, 4)
        cos, sin = yaw.cos()[:, None], yaw.sin()[:, None]
        east, north = points[..., 0] - x[:, None], points[..., 1] - y[:, None]
        ahead = (cos * east + sin * north - CAMERA_AHEAD).float()
        left = (cos * north - sin * east).float()
        turned = (points[..., 2] - yaw[:, None]).float()
        facing = (turned.abs() < _FACING).long().cumprod(1)
        last = (facing.sum(1, keepdim=True) - 1).clamp_min(0)
        wanted = row.distance[:, 0].expand(len(road), -1).contiguous()
        nearest = torch.searchsorted(ahead.masked_fill(facing == 0, torch.inf), wanted).minimum(last)

        def of(table: Tensor) -> Tensor:
            return table.gather(1, nearest)[..., None]

        hand = road.hand.float()[:, None, None]
        cos, sin, bend = of(turned).cos(), of(turned).sin(), of(points[..., 3]).float()
        gap, side = row.distance - of(ahead), of(left)
        # In the frame of the lane's point: `beyond` along it, `beside` to its left; columns run to the right.
        beyond, beside = gap * cos - side * sin, -gap * sin - side * cos
        way = (low + nearest)[..., None] * GRID + beyond
        lean = -sin * row.wide
        across = (
            hand * (beside - bend / 2 * beyond**2) - LANE_WIDTH / 2,
            -hand * (cos - bend * beyond * sin) * row.wide,
            -hand * bend / 2 * lean**2,
        )
        # Where the row crosses the line between the lanes, and how much of it is painted there.
        half = self._lens.width / 2
        crossing = (-across[0] / torch.where(across[1].abs() < 1e-3, 1e-3, across[1])).clamp(-half, half)
        quality = self._quality.flatten(0, 1).index_select(0, (rows + low + nearest).flatten())
        wear, snow = quality.view(*nearest.shape, 2, 1).unbind(2)
        snow = torch.maximum(snow, appearance.slush[:, None, None])
        start = (way + appearance.texture_start[:, None, None]).remainder(ALONG)
        # A pixel's footprint across the lane: its width, and what its height covers because the ray runs aslant.
        slant = (0.6 * row.deep * sin, 0.6 * row.deep * cos / FOCAL)
        dash = _painted(way + lean * crossing, row.deep)
        view = _View(across, (start / ALONG, lean / ALONG), row.wide * cos, slant, dash, wear, snow)
        return (yaw + hand[:, 0, 0] * appearance.yaw_start).float(), view

    def _fill_background(self, weights: Tensor, yaw: Tensor, part: slice) -> None:
        # A mirrored world has a mirrored horizon.
        angle = self._road.hand[part].float()[:, None] * (yaw[:, None] - self._angle)
        column = (angle * (PANORAMA / (2 * math.pi))).floor().long() % PANORAMA
        flat = self._appearance.texture[part, None] * PANORAMA + column
        trees = torch.index_select(self._trees.flatten(0, 1), 0, flat.flatten())
        weights.copy_(trees.view(-1, self._lens.width, 3, HORIZON).permute(0, 3, 2, 1))

    def _fill_ground(self, weights: Tensor, view: _View, part: slice) -> None:
        appearance, ground, column = self._appearance, self._ground, self._column
        across = (view.across[2][part] * column).add_(view.across[1][part]).mul_(column).add_(view.across[0][part])
        # In periods of the texture, of which only the fraction counts.
        down = (view.along[1][part] * column).add_(view.along[0][part])
        side = (across * (1 / ACROSS)).add_(0.5)
        place = _fraction_(down).mul_(ground.along_count).floor_().mul_(ground.across_count)
        place += _fraction_(side).mul_(ground.across_count).floor_()
        place += ground.first[appearance.texture[part], :, None]
        texel = torch.index_select(ground.texels, 0, place.int().flatten()).view(place.shape)

        def patches_above(cover: Tensor) -> Tensor:
            return (texel * 4).add_(2 - 5 * cover).clamp_(0, 1)

        sharp = (view.slant[1][part] * column).add_(view.slant[0][part]).abs_().add_(view.wide[part]).reciprocal_()
        # A pixel that covers more than the road is at most as grey as the road at its nearest.
        sharp.clamp_min_(0.5 / ROAD_EDGE)
        from_middle = across.abs_()
        road = (ROAD_EDGE - from_middle).mul_(sharp).add_(0.5).clamp_(0, 1).mul_(patches_above(view.snow[part]))
        # A line thinner than a pixel is as bright as the share of the pixel that it covers.
        full = (sharp * LINE).clamp_max_(1)
        centre = (LINE / 2 - from_middle).mul_(sharp).add_(0.5).clamp_min_(0).minimum(full).mul_(view.dash[part])
        paint = (from_middle - LANE_WIDTH).abs_().neg_().add_(LINE / 2).mul_(sharp).add_(0.5).clamp_min_(0)
        paint = paint.minimum(full).add_(centre).mul_(patches_above(torch.maximum(view.wear[part], view.snow[part])))

        grain, shadow = appearance.grain[part, None, None], appearance.shadow[part, None, None]
        light = (texel * 2**16).frac_().mul_(2 * grain).add_(1 - grain)
        light *= texel.mul_(2**8).frac_().mul_(-shadow).add_(1)
        weights[:, :, 0] = light
        torch.mul(light, road, out=weights[:, :, 1])
        torch.mul(light, paint, out=weights[:, :, 2])


def _fraction_(value: Tensor) -> Tensor:
    """value - floor(value) in its place, always below 1: of -1e-9 it would be 1 in float32, a texel too far."""
    return value.sub_(value.floor()).clamp_max_(1 - 2**-24)


def _painted(way: Tensor, deep: Tensor) -> Tensor:
    """Share of dashes in a piece of road of length `deep` around `way`."""

    def until(end: Tensor) -> Tensor:
        return (end / DASH_PERIOD).floor() * DASH + end.remainder(DASH_PERIOD).clamp_max(DASH)

    return (until(way + deep / 2) - until(way - deep / 2)) / deep


def _colours(appearance: Appearance, lens: Lens, row: _Row) -> Tensor:
    """How the four weights of a pixel become red, green and blue, (batch, row, 3, 4)."""
    light = (appearance.light[:, None] * appearance.tint)[:, None]
    height = torch.cat([torch.zeros(lens.above), torch.linspace(0, 1, HORIZON)])[:, None] ** 1.3
    sky = torch.lerp(appearance.sky_high[:, None], appearance.sky_low[:, None], height) * appearance.tint[:, None]
    # Trees stand some 90 m away, hills a kilometre.
    veil = 1 - torch.exp(-90 * appearance.haze)[:, None, None]
    fog = appearance.sky_low[:, None] * appearance.tint[:, None]
    trees = torch.lerp(appearance.trees[:, None] * light, fog, veil)
    leaves = appearance.leaves[:, None] * light * (1 - veil)
    hills = torch.lerp(appearance.hills[:, None] * appearance.tint[:, None], fog, 0.25)
    above = torch.stack([trees - sky, leaves.expand_as(sky), hills - sky, sky], 3)

    clear = torch.exp(-row.distance.clamp_max(100.0) * appearance.haze[:, None, None])
    verge, asphalt, paint = (
        z[:, None] * light * clear for z in (appearance.verge, appearance.asphalt, appearance.paint)
    )
    below = torch.stack([verge, asphalt - verge, paint - asphalt, fog * (1 - clear)], 3)
    return torch.cat([above, below], 1)
