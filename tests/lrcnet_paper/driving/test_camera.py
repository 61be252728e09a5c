"""The camera shows the road where geometry puts it, in every season, and the same seed gives the same bytes."""

import hashlib

import pytest
import torch

from lrcnet_paper.driving import STEP, Camera, State, World, roads_from_curvature, sample_appearances
from lrcnet_paper.driving.camera import (
    _COLUMN,
    _ROW,
    CAMERA_AHEAD,
    CAMERA_HEIGHT,
    FOCAL,
    HORIZON,
    HORIZON_ROWS,
    REGIONS,
    ROAD_EDGE,
    _fraction_,
    _painted_share,
)


def place(arc: float, offset: float = 0.0, heading: float = 0.0, batch: int = 1) -> State:
    values = torch.tensor([arc, offset, heading, 0.0], dtype=torch.float64)
    return State(*values[:, None].repeat(1, batch))


def random_places(batch: int) -> State:
    source = torch.Generator().manual_seed(1)
    u, v, w = torch.rand(3, batch, generator=source, dtype=torch.float64)
    return State(40 + 800 * u, 2 * v - 1, 0.3 * w - 0.15, torch.zeros(batch, dtype=torch.float64))


def test_frames_are_bytes_of_the_papers_size() -> None:
    frames = World([1, 2, 3]).frames()
    assert frames.shape == (3, 48, 160, 3)
    assert frames.dtype == torch.uint8
    assert frames.is_contiguous()


def test_distance_from_the_lane_is_true_to_a_brute_force_search() -> None:
    world = World(range(12))
    world.state = random_places(12)
    _, view = world.camera._view(world.state)
    distance = view.across[0] + view.across[1] * _COLUMN + view.across[2] * _COLUMN**2 + 1.75
    x, y, yaw = (z[:, None, None] for z in world.road.pose(world.state.arc, world.state.offset, world.state.heading))
    ahead, left = _ROW.distance.double() + CAMERA_AHEAD, (-_ROW.wide * _COLUMN).double()
    ground = torch.stack([x + ahead * yaw.cos() - left * yaw.sin(), y + ahead * yaw.sin() + left * yaw.cos()], -1)
    arc = world.state.arc[:, None] + torch.arange(0, 100, 0.1, dtype=torch.float64)
    lane = torch.stack([world.road.at(world.road.x, arc), world.road.at(world.road.y, arc)], -1)
    direction = world.road.at(world.road.direction, arc)
    for rows, tolerance in ((slice(10, 34), 0.05), (slice(4, 10), 0.2)):
        points = ground[:, rows].flatten(1, 2)
        nearest = torch.cdist(points, lane).argmin(2)
        gap = points - lane.gather(1, nearest[..., None].expand(-1, -1, 2))
        angle = direction.gather(1, nearest)
        along, truth = (gap * torch.stack([angle.cos(), angle.sin()], -1)).sum(-1), gap[..., 1] * angle.cos()
        truth = truth - gap[..., 0] * angle.sin()
        near = (truth.abs() < 6) & (along.abs() < 0.1)
        assert near.double().mean() > 0.2
        assert (distance[:, rows].flatten(1) - truth)[near].abs().max() < tolerance


def test_the_edge_line_lies_where_a_pinhole_puts_it() -> None:
    frame = (
        Camera(roads_from_curvature(torch.zeros(1, 400)), sample_appearances([3], "summer"))
        .frames(place(20.0))[0]
        .float()
    )
    for row in (46, 40, 32):
        distance = FOCAL * CAMERA_HEIGHT / (row + 0.5 - HORIZON)
        column = 79.5 + 1.75 * FOCAL / distance
        if column < 158:
            # White paint is the only bright blue on a summer's ground.
            assert abs(frame[row, 80:, 2].argmax().item() + 80 - column) <= 1.5


def test_a_mirrored_world_gives_the_mirrored_frame() -> None:
    for season in ("summer", "winter"):
        world, mirror = World(range(20), season=season), World(range(20), season=season, mirrored=True)
        state = random_places(20)
        world.state = state
        mirror.state = State(state.arc, -state.offset, -state.heading, -state.steering)
        assert torch.equal(world.frames().flip(2), mirror.frames())


def test_the_same_seed_gives_the_same_bytes_in_any_batch() -> None:
    def digest(frames: torch.Tensor) -> str:
        return hashlib.sha256(frames.numpy().tobytes()).hexdigest()

    many, one = World(range(40)), World([33])
    for world in (many, one):
        for _ in range(40):
            world.step(torch.full((len(world),), 0.001))
    assert digest(many.frames()) == digest(many.frames())
    assert digest(many.frames()[33:34]) == digest(one.frames())
    assert digest(World([34]).frames()) != digest(World([33]).frames())


def test_seasons_differ_and_appearances_vary() -> None:
    summer, winter = (World(range(30), season=season).frames().float().mean((1, 2)) for season in ("summer", "winter"))
    # Grass is greener than blue and snow is not; the light differs between episodes.
    assert ((summer[:, 1] - summer[:, 2]) > (winter[:, 1] - winter[:, 2])).double().mean() > 0.9
    assert summer.std(0).min() > 5
    assert winter.std(0).min() > 5


def test_worn_paint_is_fainter_and_snow_covers_the_road() -> None:
    def frame(season: str, wear: float, snow: float) -> torch.Tensor:
        road = roads_from_curvature(torch.zeros(1, 400), wear=wear, snow=snow)
        return Camera(road, sample_appearances([4], season)).frames(place(20.0))[0].float()

    fresh, worn = frame("summer", 0.0, 0.0), frame("summer", 1.0, 0.0)
    assert (fresh - worn).clamp_min(0)[20:].mean() > 0.5
    assert (fresh - worn).min() >= 0
    bare, covered = frame("winter", 0.0, 0.0)[24:, 60:100].mean(), frame("winter", 0.0, 1.0)[24:, 60:100].mean()
    assert covered > bare + 30
    # In summer there is no snow, even where the road's table has some.
    assert torch.equal(frame("summer", 0.0, 1.0), fresh)


def test_dashes_cover_a_third_of_the_line_in_the_distance() -> None:
    arc = torch.arange(0, 90, 0.5)
    assert torch.allclose(_painted_share(arc, torch.tensor(9.0)), torch.tensor(1 / 3))
    assert _painted_share(torch.tensor([1.5, 6.0]), torch.tensor(0.1)).tolist() == pytest.approx([1.0, 0.0], abs=1e-4)


def test_frames_change_smoothly() -> None:
    """One step of the car changes little: no flicker of lines, textures or rows."""
    world = World(range(16))
    world.state = State(*(z.clone() for z in vars(random_places(16)).values()))
    world.state = State(world.state.arc, world.state.offset * 0.2, world.state.heading * 0.1, world.state.steering)
    before = world.frames().float()
    world.step(world.road_curvature)
    after = world.frames().float()
    other = World(range(100, 116)).frames().float()
    assert (after - before).abs().mean() < 0.35 * (after - other).abs().mean()
    assert pytest.approx(1 / 30) == STEP


def test_road_and_appearance_must_have_one_batch_size() -> None:
    with pytest.raises(ValueError, match="they have 1 and 2"):
        Camera(roads_from_curvature(torch.zeros(1, 400)), sample_appearances([1, 2]))


def test_a_place_never_lies_outside_the_texture() -> None:
    values = torch.tensor([-1e-9, -1e-30, 0.0, 3.0, -2.25, 1 - 2**-24])
    fraction = _fraction_(values.clone())
    assert bool(((fraction >= 0) & (fraction < 1)).all())
    for count in (2, 512, 4096):
        assert int((fraction * count).floor().max()) == count - 1
    assert fraction[4] == 0.75


def test_regions_lie_where_geometry_puts_them() -> None:
    road = roads_from_curvature(torch.zeros(1, 400, dtype=torch.float64))
    camera = Camera(road, sample_appearances([3], "summer"))
    regions = camera.regions(place(50.0))[0]
    sky, horizon, asphalt, roadside = range(len(REGIONS))
    assert (regions[: HORIZON - HORIZON_ROWS] == sky).all()
    assert (regions[HORIZON - HORIZON_ROWS : HORIZON + HORIZON_ROWS] == horizon).all()
    for row in range(HORIZON + HORIZON_ROWS, 48):
        distance = FOCAL * CAMERA_HEIGHT / (row - HORIZON + 0.5)
        # On a straight road the lane's centre is straight ahead; the other lane and its edge lie to the left.
        metres = (torch.arange(160) - 79.5) * distance / FOCAL
        expected = (metres + 1.75).abs() < ROAD_EDGE
        assert ((regions[row] == asphalt) == expected).float().mean() > 0.98
        assert ((regions[row] == roadside) == ~expected).float().mean() > 0.98
