"""Worlds to keep a lane in: our own (roads, a car, an expert, a camera; batched, in torch alone), VISTA and CarRacing.

No network is known here. `environment` makes our own world a gymnasium environment, and `real_recordings` reads
recordings of real cars; both need the extra `driving`. VISTA and CarRacing need an extra each.
"""

from lrcnet_paper.driving.appearance import Appearance, sample_appearances
from lrcnet_paper.driving.camera import HEIGHT, WIDTH, Camera
from lrcnet_paper.driving.closed_loop import DriveOutcomes, PolicyStep, add_noise, drive
from lrcnet_paper.driving.drivable import Drivable, Situation
from lrcnet_paper.driving.expert import Expert
from lrcnet_paper.driving.expert_drive import ExpertStep, expert_drive
from lrcnet_paper.driving.expert_recording import record
from lrcnet_paper.driving.recording import DriveRecording, open_recording
from lrcnet_paper.driving.road import LANE_WIDTH, ROAD_WIDTH, Road, roads_from_curvature, sample_roads
from lrcnet_paper.driving.vehicle import ARRIVED, LEFT_ROAD, RUNNING, STEP, TURNED_AWAY, State, advance
from lrcnet_paper.driving.windows import Windows
from lrcnet_paper.driving.world import World
from lrcnet_paper.driving.worlds import make_world
from lrcnet_paper.road_seeds import split_roads

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
