"""The expert that makes the recordings: it looks ahead, reacts late, wanders a little and recovers from pushes.

All randomness is a smooth function of time whose phases belong to the episode's seed, so a drive can be repeated from
its seed alone. Units: metres, radians, seconds, 1/m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

from lrcnet_paper.driving.road import Road
from lrcnet_paper.driving.seeded_random import between, uniforms
from lrcnet_paper.driving.vehicle import STEP, State

DELAY = 0.2
LOOK_AHEAD = 0.9
PREVIEW = 0.1
"""Time that the steering needs to follow a command, s: the expert reads the road's curvature that far ahead."""
_STREAM = 3
_WAVES, _PUSHES = 4, 24
_PUSH_INTERVAL, _PUSH_DURATION = 9.0, 0.8

Number = TypeVar("Number", float, Tensor)


class Expert:
    """Steers a batch of cars along their centre lines, as people do.

    The command is the road's curvature at the place where the car will be when the hands move, minus the curvature that
    brings the car back to its lane by the look-ahead point: k = k_road(s + v * preview) - 2 / L^2 * (offset - wander
    + L * sin(heading)), with L = 0.9 s * v, all of it as it was 0.2 s ago.

    Args:
        seeds: one per car.
        hand: 1 for traffic on the right, -1 for traffic on the left, (batch,); the noise is mirrored with the road.
        noise: scale of wander and pushes; 0 is a perfect expert on a still day.
    """

    def __init__(self, seeds: Sequence[int], hand: Tensor, *, noise: float = 1.0) -> None:
        u = uniforms(seeds, 2 * _WAVES + 3 * _PUSHES + 1, stream=_STREAM)
        self._hand, self._noise = hand, noise
        self._rate = 2 * math.pi * between(0.04, 0.25, u[:, :_WAVES])
        self._phase = 2 * math.pi * u[:, _WAVES : 2 * _WAVES]
        when, strength, side = u[:, 2 * _WAVES : 2 * _WAVES + 3 * _PUSHES].chunk(3, 1)
        self._push_start = _PUSH_INTERVAL * (torch.arange(_PUSHES) + between(0.2, 0.9, when))
        self._push = between(0.04, 0.14, strength) * torch.where(side < 0.5, -1.0, 1.0)
        self._past: list[tuple[Tensor, Tensor, Tensor]] = []

    def wander(self, time: float) -> Tensor:
        """Return the offset that the expert mistakes for the centre line, m, (batch,): slow, at most 0.2 m."""
        waves = (self._rate * time + self._phase).sin().sum(1)
        return self._hand * self._noise * (0.2 / _WAVES) * waves

    def push(self, time: float, speed: Tensor) -> Tensor:
        """Return the wind's curvature, 1/m, (batch,): about every 9 s a gust that turns the car by 0.04 to 0.14 rad."""
        since = (time - self._push_start) / _PUSH_DURATION
        gust = torch.where((since > 0) & (since < 1), (math.pi * since).sin(), 0.0)
        turn_rate = (self._push * gust).sum(1) * (math.pi / 2 / _PUSH_DURATION)
        return self._hand * self._noise * turn_rate / speed

    def act(self, road: Road, state: State, time: float) -> Tensor:
        """Return the curvature that the expert steers at this time, 1/m, (batch,); call it once per step of 1/30 s."""
        self._past.append((state.arc, state.offset, state.heading))
        delay_steps = round(DELAY / STEP)
        if len(self._past) > delay_steps + 1:
            self._past.pop(0)
        arc, offset, heading = self._past[0]
        delay = (len(self._past) - 1) * STEP
        return steer_along(road, arc, offset - self.wander(time), heading, preview=delay + PREVIEW)


def steer_along(road: Road, arc: Tensor, offset: Tensor, heading: Tensor, *, preview: float = PREVIEW) -> Tensor:
    """Return the curvature that keeps cars on the centre line of their roads, 1/m, (batch,).

    Args:
        road: roads under the cars.
        arc, offset, heading: position of the cars, as in `State`.
        preview: time ahead at which the road's curvature is read, s.
    """
    speed = road.at(road.speed, arc)
    return steer_back(road.at(road.curvature, arc + speed * preview), offset, heading.sin(), speed)


def steer_back(path_curvature: Number, offset: Number, sine: Number, speed: Number) -> Number:
    """Return the curvature that follows a path and leads back to it by the look-ahead point, 1/m.

    Args:
        path_curvature: curvature of the path ahead, 1/m.
        offset: distance from the path, m.
        sine: sine of the heading against the path.
        speed: m/s.
    """
    ahead = LOOK_AHEAD * speed
    return path_curvature - 2 * (offset + ahead * sine) / ahead**2
