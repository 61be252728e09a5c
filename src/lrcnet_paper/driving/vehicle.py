"""The car: a kinematic bicycle in road coordinates, steered by curvature, with a limited steering rate.

Lengths are in metres, angles in radians, time in seconds, curvature in 1/m; left is positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lrcnet_paper.driving.road import ROAD_WIDTH, Road

STEP = 1 / 30
WHEELBASE = 2.7
# Rate of the front wheels, rad/s: half a turn of the steering wheel in about half a second.
STEERING_RATE = 0.4
LARGEST_CURVATURE = 0.08
_LARGEST_STEERING = math.atan(WHEELBASE * LARGEST_CURVATURE)
LARGEST_HEADING = math.pi / 10

RUNNING, LEFT_ROAD, TURNED_AWAY, ARRIVED = 0, 1, 2, 3
"""Status of a drive: not ended, offset too large, heading error too large, at the end of the road."""


@dataclass(frozen=True)
class State:
    """Position of the cars on their roads, each (batch,) in float64.

    Attributes:
        arc: distance along the centre line, m.
        offset: distance from the centre line to the car's rear axle, m.
        heading: angle of the car against the road's direction, rad.
        steering: angle of the front wheels, rad.
    """

    arc: Tensor
    offset: Tensor
    heading: Tensor
    steering: Tensor

    @property
    def curvature(self) -> Tensor:
        """Curvature of the path that the car takes now, 1/m."""
        return self.steering.tan() / WHEELBASE


def start(batch: int) -> State:
    """Return cars at the beginning of their roads, on the centre line."""
    return State(*torch.zeros(4, batch, dtype=torch.float64))


def advance(road: Road, state: State, action: Tensor, disturbance: Tensor | float = 0.0) -> State:
    """Advance every car by one step of 1/30 s.

    The rear axle moves along the car, d(arc)/dt = v cos(heading) / (1 - curvature_road * offset),
    d(offset)/dt = v sin(heading), and the car turns at the rate v tan(steering) / wheelbase. Steps follow the midpoint
    rule.

    Args:
        road: roads under the cars; they also set the speeds.
        state: state before the step.
        action: desired curvature, 1/m, (batch,).
        disturbance: curvature that the wind adds, 1/m, (batch,).

    Returns:
        The state after the step.
    """
    desired = (action.double() * WHEELBASE).atan().clamp(-_LARGEST_STEERING, _LARGEST_STEERING)
    change = (desired - state.steering).clamp(-STEERING_RATE * STEP, STEERING_RATE * STEP)
    speed = road.at(road.speed, state.arc)

    def slopes(state: State) -> tuple[Tensor, Tensor, Tensor]:
        bend = road.at(road.curvature, state.arc)
        along = speed * state.heading.cos() / (1 - bend * state.offset)
        return along, speed * state.heading.sin(), speed * (state.curvature + disturbance) - bend * along

    def move(slope: tuple[Tensor, Tensor, Tensor], share: float) -> State:
        arc, offset, heading = (share * STEP * dz for dz in slope)
        return State(state.arc + arc, state.offset + offset, state.heading + heading, state.steering + share * change)

    return move(slopes(move(slopes(state), 0.5)), 1.0)


def drive_status(offset: Tensor, heading: Tensor, arrived: Tensor) -> Tensor:
    """Return RUNNING, LEFT_ROAD, TURNED_AWAY or ARRIVED for each car, (batch,), by VISTA's rules.

    Args:
        offset: distance from the expert's path, m, (batch,).
        heading: angle against its direction, rad, (batch,).
        arrived: whether the end of the road is reached, (batch,), bool.
    """
    status = torch.full(offset.shape, RUNNING)
    status = torch.where(arrived, ARRIVED, status)
    status = torch.where(heading.abs() > LARGEST_HEADING, TURNED_AWAY, status)
    return torch.where(offset.abs() > ROAD_WIDTH / 2, LEFT_ROAD, status)


def road_status(road: Road, state: State) -> Tensor:
    """Return the `drive_status` of cars on roads, (batch,)."""
    return drive_status(state.offset, state.heading, state.arc >= road.length)
