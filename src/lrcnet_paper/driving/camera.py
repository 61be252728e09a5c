"""The camera of our own world: a pinhole over flat ground without roll, so that every image row sees one distance.

For each row, the nearest point of the lane with its direction and curvature gives the distance of any pixel from the
centre line as a parabola in the column. A pixel then needs only a few elementwise operations and one texture look-up. A
small matrix of colours per row mixes ground, road, paint and haze (below the horizon) or sky, hills and trees.

Axes: batch, row (from the top), column (from the left). In car coordinates x points ahead and y to the left, metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lrcnet_paper.driving.appearance import Appearance
from lrcnet_paper.driving.road import GRID, LANE_WIDTH, SIGHT, Road
from lrcnet_paper.driving.textures import ACROSS, ALONG, PANORAMA, Pyramid, panorama, pyramid
from lrcnet_paper.driving.vehicle import State

HEIGHT, WIDTH = 48, 160
FOCAL = 120.0
CAMERA_HEIGHT, CAMERA_AHEAD = 1.5, 1.5
HORIZON = 14
"""Number of rows above the horizon."""
LINE, DASH, DASH_PERIOD = 0.15, 3.0, 9.0
ROAD_EDGE = 4.1
"""Distance from the line between the lanes to the edge of the asphalt, m."""
REGIONS = ("sky", "horizon", "road", "roadside")
"""Regions of a frame; `Camera.regions` numbers them in this order."""
HORIZON_ROWS = 4
"""Rows above and below the horizon that count as the horizon; below it they see the ground beyond 40 m."""
# A lane that turns away from the camera by more than this angle is hidden or outside the frame.
_FACING = 1.2
# Frames rendered at a time, few enough that the data of one operation stays in the cache.
_CHUNK = 16


@dataclass(frozen=True)
class Lens:
    """Size of a camera's frames; all cameras have the focal length FOCAL and the same place on the car.

    Attributes:
        height, width: size of a frame, pixels.
        horizon: number of rows above the horizon; at least 14, which trees and hills take.
    """

    height: int = HEIGHT
    width: int = WIDTH
    horizon: int = HORIZON

    @property
    def above(self) -> int:
        """Number of rows that show sky only."""
        return self.horizon - HORIZON


@dataclass(frozen=True)
class _Row:
    """Geometry of every image row below the horizon, each (row, 1).

    Attributes:
        distance: distance of the ground that the row sees, m.
        wide, deep: size of a pixel on the ground, m.
    """

    distance: Tensor
    wide: Tensor
    deep: Tensor


def _rows(lens: Lens) -> _Row:
    below = torch.arange(lens.height - lens.horizon) + 0.5
    # The row just below the horizon would see 360 m far, where no road is known.
    distance = (FOCAL * CAMERA_HEIGHT / below[:, None]).clamp_max(SIGHT - 10.0)
    return _Row(distance, distance / FOCAL, distance**2 / (FOCAL * CAMERA_HEIGHT))


def _columns(lens: Lens) -> Tensor:
    """Return the position of each column relative to the middle of the frame, pixels, right positive, (column,)."""
    return torch.arange(lens.width) - (lens.width - 1) / 2


_OURS = Lens()
_ROW, _COLUMN = _rows(_OURS), _columns(_OURS)


@dataclass(frozen=True)
class _View:
    """The lane as each image row sees it, each (batch, row, 1) in float32; u is the column.

    Attributes:
        across: distance from the line between the lanes is across[0] + across[1] * u + across[2] * u^2, m.
        along: distance along the road is along[0] + along[1] * u, in periods of the texture.
        wide, slant: a pixel covers wide + |slant[0] + slant[1] * u| metres across the lane.
        dash: share of the line between the lanes that is painted there.
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
    """Renders the frames of cars.

    Args:
        road: the roads.
        appearance: the episodes' appearance, of the same batch size.
        lens: size of the frames; by default that of the networks' input.

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
        self._trees = panorama(HORIZON)
        self._colours = _colours(appearance, lens, self._row)
        self._table = torch.stack([road.x, road.y, road.direction, road.curvature], 2)
        self._quality = torch.stack([road.wear, road.snow * appearance.winter[:, None]], 2).float()
        # The last row of weights stays 1; the others are written anew for every frame.
        self._weights = torch.ones(min(_CHUNK, len(road)), lens.height, 4, lens.width)
        self._weights[:, : lens.above, :3] = 0

    @cached_property
    def _ground(self) -> Pyramid:
        """The textures, which take a second to make; a world that is never seen needs none."""
        return pyramid(tuple((deep, wide) for deep, wide in torch.cat([self._row.deep, self._row.wide], 1).tolist()))

    @torch.no_grad()
    def frames(self, state: State) -> Tensor:
        """Render frames, (batch, 48, 160, 3) or of the size of the lens, uint8, RGB."""
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
            # torch converts floats to bytes one by one; through int32 it uses vector instructions.
            planes = colour.to(torch.int32).to(torch.uint8).view(-1, height, 3, width)
            torch.stack(planes.unbind(2), -1, out=image[part])
        return image

    @torch.no_grad()
    def regions(self, state: State) -> Tensor:
        """Return the region that each pixel sees, (batch, 48, 160) or of the lens's size, uint8, an index of REGIONS.

        The horizon is a band of rows, the road everything between the edges of the asphalt below it.
        """
        _, view = self._view(state)
        across = view.across[0] + view.across[1] * self._column + view.across[2] * self._column**2
        regions = torch.full((len(self._road), self._lens.height, self._lens.width), REGIONS.index("sky"))
        on_road = across.abs() < ROAD_EDGE
        regions[:, self._lens.horizon :] = torch.where(on_road, REGIONS.index("road"), REGIONS.index("roadside"))
        regions[:, self._lens.horizon - HORIZON_ROWS : self._lens.horizon + HORIZON_ROWS] = REGIONS.index("horizon")
        return regions.to(torch.uint8)

    def _view(self, state: State) -> tuple[Tensor, _View]:
        road, appearance, row = self._road, self._appearance, self._row
        x, y, yaw = road.pose(state.arc, state.offset, state.heading)
        # Cars beyond the end of the road see its last metres.
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
        distances = row.distance[:, 0].expand(len(road), -1).contiguous()
        nearest = torch.searchsorted(ahead.masked_fill(facing == 0, torch.inf), distances).minimum(last)

        def at_nearest(table: Tensor) -> Tensor:
            return table.gather(1, nearest)[..., None]

        hand = road.hand.float()[:, None, None]
        cos, sin = at_nearest(turned).cos(), at_nearest(turned).sin()
        bend = at_nearest(points[..., 3]).float()
        gap, side = row.distance - at_nearest(ahead), at_nearest(left)
        # In coordinates of the lane's point: `beyond` along the lane, `beside` to its left; columns run to the right.
        beyond, beside = gap * cos - side * sin, -gap * sin - side * cos
        arc = (low + nearest)[..., None] * GRID + beyond
        lean = -sin * row.wide
        across = (
            hand * (beside - bend / 2 * beyond**2) - LANE_WIDTH / 2,
            -hand * (cos - bend * beyond * sin) * row.wide,
            -hand * bend / 2 * lean**2,
        )
        # The column where the row crosses the line between the lanes, for the share of it that is painted there.
        half = self._lens.width / 2
        crossing = (-across[0] / torch.where(across[1].abs() < 1e-3, 1e-3, across[1])).clamp(-half, half)
        quality = self._quality.flatten(0, 1).index_select(0, (rows + low + nearest).flatten())
        wear, snow = quality.view(*nearest.shape, 2, 1).unbind(2)
        snow = torch.maximum(snow, appearance.slush[:, None, None])
        start = (arc + appearance.texture_start[:, None, None]).remainder(ALONG)
        # A pixel's footprint across the lane: its width, and the part that its height covers as the ray is oblique.
        slant = (0.6 * row.deep * sin, 0.6 * row.deep * cos / FOCAL)
        dash = _painted_share(arc + lean * crossing, row.deep)
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
        # In periods of the texture; only the fractional part matters.
        down = (view.along[1][part] * column).add_(view.along[0][part])
        side = (across * (1 / ACROSS)).add_(0.5)
        place = _fraction_(down).mul_(ground.along_count).floor_().mul_(ground.across_count)
        place += _fraction_(side).mul_(ground.across_count).floor_()
        place += ground.first[appearance.texture[part], :, None]
        texel = torch.index_select(ground.texels, 0, place.int().flatten()).view(place.shape)

        def patches_above(cover: Tensor) -> Tensor:
            return (texel * 4).add_(2 - 5 * cover).clamp_(0, 1)

        sharp = (view.slant[1][part] * column).add_(view.slant[0][part]).abs_().add_(view.wide[part]).reciprocal_()
        # A pixel that covers more than the road must not become greyer than the road.
        sharp.clamp_min_(0.5 / ROAD_EDGE)
        from_line = across.abs_()
        road = (ROAD_EDGE - from_line).mul_(sharp).add_(0.5).clamp_(0, 1).mul_(patches_above(view.snow[part]))
        # A line thinner than a pixel has the brightness of the share of the pixel that it covers.
        full = (sharp * LINE).clamp_max_(1)
        centre = (LINE / 2 - from_line).mul_(sharp).add_(0.5).clamp_min_(0).minimum(full).mul_(view.dash[part])
        paint = (from_line - LANE_WIDTH).abs_().neg_().add_(LINE / 2).mul_(sharp).add_(0.5).clamp_min_(0)
        paint = paint.minimum(full).add_(centre).mul_(patches_above(torch.maximum(view.wear[part], view.snow[part])))

        grain, shadow = appearance.grain[part, None, None], appearance.shadow[part, None, None]
        light = (texel * 2**16).frac_().mul_(2 * grain).add_(1 - grain)
        light *= texel.mul_(2**8).frac_().mul_(-shadow).add_(1)
        weights[:, :, 0] = light
        torch.mul(light, road, out=weights[:, :, 1])
        torch.mul(light, paint, out=weights[:, :, 2])


def _fraction_(value: Tensor) -> Tensor:
    """Compute value - floor(value) in place, but below 1: in float32, -1e-9 would give 1, one texel too far."""
    return value.sub_(value.floor()).clamp_max_(1 - 2**-24)


def _painted_share(arc: Tensor, deep: Tensor) -> Tensor:
    """Return the share of dashes in a piece of road of length `deep` around `arc`."""

    def painted_until(end: Tensor) -> Tensor:
        return (end / DASH_PERIOD).floor() * DASH + end.remainder(DASH_PERIOD).clamp_max(DASH)

    return (painted_until(arc + deep / 2) - painted_until(arc - deep / 2)) / deep


def _colours(appearance: Appearance, lens: Lens, row: _Row) -> Tensor:
    """Return the matrices that turn the four weights of a pixel into red, green and blue, (batch, row, 3, 4)."""
    light = (appearance.light[:, None] * appearance.tint)[:, None]
    height = torch.cat([torch.zeros(lens.above), torch.linspace(0, 1, HORIZON)])[:, None] ** 1.3
    sky = torch.lerp(appearance.sky_high[:, None], appearance.sky_low[:, None], height) * appearance.tint[:, None]
    # Trees stand about 90 m away, hills about a kilometre.
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
