"""A small world to keep a lane in: roads, a car, a driver and a camera, batched and in torch alone. Knows no network.

`environment` makes it a gymnasium environment, `own` reads recordings of real cars (both need the extra `driving`). `make_world` also makes two worlds from elsewhere: VISTA and CarRacing (extras of their own).
"""

from lrcnet_paper.driving.appearance import Appearance, sample_appearances
from lrcnet_paper.driving.camera import HEIGHT, WIDTH, Camera
from lrcnet_paper.driving.closed_loop import DriveOutcomes, PolicyStep, add_noise, drive
from lrcnet_paper.driving.drivable import Drivable, Situation
from lrcnet_paper.driving.expert import Expert
from lrcnet_paper.driving.recording import DriveRecording, open_recording, record, split_roads
from lrcnet_paper.driving.road import LANE_WIDTH, ROAD_WIDTH, Road, roads_from_curvature, sample_roads
from lrcnet_paper.driving.vehicle import ARRIVED, LEFT_ROAD, RUNNING, STEP, TURNED_AWAY, State, advance
from lrcnet_paper.driving.windows import Windows
from lrcnet_paper.driving.world import ExpertStep, World, expert_drive
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
    "Appearance",
    "Camera",
    "Drivable",
    "DriveOutcomes",
    "DriveRecording",
    "Expert",
    "ExpertStep",
    "PolicyStep",
    "Road",
    "Situation",
    "State",
    "Windows",
    "World",
    "add_noise",
    "advance",
    "drive",
    "expert_drive",
    "make_world",
    "open_recording",
    "record",
    "roads_from_curvature",
    "sample_appearances",
    "sample_roads",
    "split_roads",
]
