"""The driver who makes the recordings: looks ahead, reacts late, wanders a little, and recovers from pushes.

Everything random is a smooth function of time whose phases belong to the episode's seed, so a drive can be repeated
from its seed alone. Metres, radians, seconds, 1/m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from lrcnet_paper.driving.road import Road
from lrcnet_paper.driving.seeded_random import between, uniforms
from lrcnet_paper.driving.vehicle import STEP, State

DELAY = 0.2
LOOK_AHEAD = 0.9
_STREAM = 3
_WAVES, _PUSHES = 4, 24
_PUSH_EVERY, _PUSH_LASTS = 9.0, 0.8


class Expert:
    """Steers a batch of cars along the middle of their lane, as people do.

    The command is the road's curvature where the car will be when the hands move, less what takes the car back to its
    lane by the look-ahead point: k = k_road(s + v * preview) - 2 / L^2 * (offset - wander + L * sin(heading)), with
    L = 0.9 s * v, all of it as it was 0.2 s ago.

    Args:
        seeds: one per car.
        hand: 1 for traffic on the right, -1 on the left, (batch,); noise is mirrored with the road.
        noise: scales wander and pushes; 0 is a perfect driver on a still day.
    """

    def __init__(self, seeds: Sequence[int], hand: Tensor, *, noise: float = 1.0) -> None:
        u = uniforms(seeds, 2 * _WAVES + 3 * _PUSHES + 1, stream=_STREAM)
        self._hand, self._noise = hand, noise
        self._rate = 2 * math.pi * between(0.04, 0.25, u[:, :_WAVES])
        self._phase = 2 * math.pi * u[:, _WAVES : 2 * _WAVES]
        when, strength, side = u[:, 2 * _WAVES : 2 * _WAVES + 3 * _PUSHES].chunk(3, 1)
        self._push_start = _PUSH_EVERY * (torch.arange(_PUSHES) + between(0.2, 0.9, when))
        self._push = between(0.04, 0.14, strength) * torch.where(side < 0.5, -1.0, 1.0)
        self._past: list[tuple[Tensor, Tensor, Tensor]] = []

    def wander(self, time: float) -> Tensor:
        """The offset that the driver takes for the middle, m, (batch,): slow, at most 0.2 m."""
        waves = (self._rate * time + self._phase).sin().sum(1)
        return self._hand * self._noise * (0.2 / _WAVES) * waves

    def push(self, time: float, speed: Tensor) -> Tensor:
        """The wind's curvature, 1/m, (batch,): every 9 s or so a gust that turns the car by 0.04 to 0.14 rad."""
        since = (time - self._push_start) / _PUSH_LASTS
        gust = torch.where((since > 0) & (since < 1), (math.pi * since).sin(), 0.0)
        turned = (self._push * gust).sum(1) * (math.pi / 2 / _PUSH_LASTS)
        return self._hand * self._noise * turned / speed

    def act(self, road: Road, state: State, time: float) -> Tensor:
        """The curvature that the driver steers at this time, 1/m, (batch,); call it once per step of 1/30 s."""
        self._past.append((state.arc, state.offset, state.heading))
        late = round(DELAY / STEP)
        if len(self._past) > late + 1:
            self._past.pop(0)
        arc, offset, heading = self._past[0]
        seen_ago = (len(self._past) - 1) * STEP
        # The steering wheel needs about 0.1 s more to get there.
        return pursuit(road, arc, offset - self.wander(time), heading, preview=seen_ago + 0.1)


def pursuit(road: Road, arc: Tensor, offset: Tensor, heading: Tensor, *, preview: float) -> Tensor:
    """The curvature that leads back to the middle of the lane, 1/m, (batch,).

    Args:
        road: under the cars.
        arc, offset, heading: of the cars, as in `State`.
        preview: how far ahead to read the road's curvature, s.
    """
    speed = road.at(road.speed, arc)
    ahead = LOOK_AHEAD * speed
    feed = road.at(road.curvature, arc + speed * preview)
    return feed - 2 * (offset + ahead * heading.sin()) / ahead**2
