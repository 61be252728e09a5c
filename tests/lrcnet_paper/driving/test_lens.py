"""A camera may see more than the networks' input: the middle of its frame is that input."""

from lrcnet_paper.driving import Camera, World
from lrcnet_paper.driving.vista_trace import LENS, ROI


def test_the_middle_of_a_wide_frame_is_the_narrow_one() -> None:
    world = World(range(8), season="mixed")
    for _ in range(30):
        world.step(world.advice())
    wide = Camera(world.road, world.appearance, LENS).frames(world.state)
    assert wide.shape == (8, LENS.height, LENS.width, 3)
    part = wide[:, ROI[0] : ROI[2], ROI[1] : ROI[3]]
    # The line between the lanes may leave the narrow frame at another dash than the wide one.
    assert (part == world.frames()).float().mean() > 0.999
