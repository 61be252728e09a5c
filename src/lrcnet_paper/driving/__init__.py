"""A small world to keep a lane in: roads, a car, a driver and a camera, batched and in torch alone. Knows no network.

`environment` makes it a gymnasium environment, `own` reads recordings of real cars (both need the extra `driving`). `make_world` also makes two worlds from elsewhere: VISTA and CarRacing (extras of their own).
"""

from lrcnet_paper.driving.camera import HEIGHT, WIDTH, Camera
from lrcnet_paper.driving.closed_loop import Ended, Instant, drive, noisy
from lrcnet_paper.driving.drivable import Drivable, Situation
from lrcnet_paper.driving.driver import Driver
from lrcnet_paper.driving.look import Look, sample_looks
from lrcnet_paper.driving.recording import Recording, open_recording, record, split_roads
from lrcnet_paper.driving.road import LANE_WIDTH, ROAD_WIDTH, Road, from_curvature, sample_roads
from lrcnet_paper.driving.vehicle import ARRIVED, LEFT_ROAD, RUNNING, STEP, TURNED_AWAY, State, advance
from lrcnet_paper.driving.windows import Windows
from lrcnet_paper.driving.world import Moment, World, drives
from lrcnet_paper.driving.worlds import make_world

__all__ = [
    "ARRIVED",
    "HEIGHT",
    "LANE_WIDTH",
    "LEFT_ROAD",
    "ROAD_WIDTH",
    "RUNNING",
    "STEP",
    "TURNED_AWAY",
    "WIDTH",
    "Camera",
    "Drivable",
    "Driver",
    "Ended",
    "Instant",
    "Look",
    "Moment",
    "Recording",
    "Road",
    "Situation",
    "State",
    "Windows",
    "World",
    "advance",
    "drive",
    "drives",
    "from_curvature",
    "make_world",
    "noisy",
    "open_recording",
    "record",
    "sample_looks",
    "sample_roads",
    "split_roads",
]
