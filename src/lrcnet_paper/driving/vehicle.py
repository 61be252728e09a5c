"""The car: a kinematic bicycle in the road's own coordinates, steered by curvature with a limit on the steering's rate.

Lengths in metres, angles in radians, time in seconds, curvature in 1/m; left is positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet_paper.driving.road import ROAD_WIDTH, Road

STEP = 1 / 30
WHEELBASE = 2.7
# Of the front wheels; half a turn of the steering wheel in about half a second.
STEERING_RATE = 0.4
LARGEST_CURVATURE = 0.08
_LARGEST_STEERING = math.atan(WHEELBASE * LARGEST_CURVATURE)
LARGEST_HEADING = math.pi / 10

RUNNING, LEFT_ROAD, TURNED_AWAY, ARRIVED = 0, 1, 2, 3
"""How an episode stands: goes on, offset too large, heading error too large, end of the road."""


@dataclass(frozen=True)
class State:
    """Where the cars are, each (batch,) in float64.

    Attributes:
        arc: way along the middle of the lane, m.
        offset: from the middle of the lane to the car's rear axle, m.
        heading: of the car against the road's direction, rad.
        steering: angle of the front wheels, rad.
    """

    arc: Tensor
    offset: Tensor
    heading: Tensor
    steering: Tensor

    @property
    def curvature(self) -> Tensor:
        """Of the path that the car takes now, 1/m."""
        return self.steering.tan() / WHEELBASE


def start(batch: int) -> State:
    """Cars at the beginning of their roads, in the middle of the lane."""
    return State(*torch.zeros(4, batch, dtype=torch.float64))


def advance(road: Road, state: State, action: Tensor, disturbance: Tensor | float = 0.0) -> State:
    """One step of 1/30 s.

    The rear axle moves along the car, d(arc)/dt = v cos(heading) / (1 - curvature_road * offset),
    d(offset)/dt = v sin(heading), and the car turns by v tan(steering) / wheelbase; the midpoint rule.

    Args:
        road: under the cars; it also sets their speed.
        state: before the step.
        action: the curvature wanted, 1/m, (batch,).
        disturbance: curvature that the wind adds, 1/m, (batch,).

    Returns:
        The state after the step.
    """
    wanted = (action.double() * WHEELBASE).atan().clamp(-_LARGEST_STEERING, _LARGEST_STEERING)
    change = (wanted - state.steering).clamp(-STEERING_RATE * STEP, STEERING_RATE * STEP)
    speed = road.at(road.speed, state.arc)

    def slopes(state: State) -> tuple[Tensor, Tensor, Tensor]:
        bend = road.at(road.curvature, state.arc)
        along = speed * state.heading.cos() / (1 - bend * state.offset)
        return along, speed * state.heading.sin(), speed * (state.curvature + disturbance) - bend * along

    def moved(slope: tuple[Tensor, Tensor, Tensor], share: float) -> State:
        arc, offset, heading = (share * STEP * dz for dz in slope)
        return State(state.arc + arc, state.offset + offset, state.heading + heading, state.steering + share * change)

    return moved(slopes(moved(slopes(state), 0.5)), 1.0)


def drive_status(road: Road, state: State) -> Tensor:
    """RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED for each car, (batch,), as VISTA ends an episode."""
    code = torch.full(state.arc.shape, RUNNING)
    code = torch.where(state.arc >= road.length, ARRIVED, code)
    code = torch.where(state.heading.abs() > LARGEST_HEADING, TURNED_AWAY, code)
    return torch.where(state.offset.abs() > ROAD_WIDTH / 2, LEFT_ROAD, code)
