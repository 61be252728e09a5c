"""The page of a drive as text: its content, its omissions and its size."""

import base64
import dataclasses
import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from synthetic_drives import drive_set, smoke_policy, synthetic_replay

from lrcnet_paper.driving import LEFT_ROAD
from lrcnet_paper.report import drive_charts as charts
from lrcnet_paper.report import drive_pictures as pictures
from lrcnet_paper.report.drive_data import neuron_ranges
from lrcnet_paper.report.drive_map import make_road_maps
from lrcnet_paper.report.drive_page import write_drives
from lrcnet_paper.report.drive_set import Setting
from lrcnet_paper.training.trained_network import load_trained


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        return load_trained(smoke_policy(tmp_path_factory.mktemp("policy"), patch))


def page_text(trained, replay, tmp_path, **options):
    return write_drives(drive_set(trained, replay, **options), tmp_path / "drive.html").read_text()


def page_data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))


def decode(address):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))))


def test_it_says_where_it_comes_from(trained, tmp_path):
    page = page_text(trained, synthetic_replay(), tmp_path)
    for words in ("LRCU-S", "best.ckpt", "seed 0", "validation loss", "winter", "road 7", "noise 0.1", "torch 2."):
        assert words in page, words
    assert str(tmp_path) not in page
    assert str(trained.file.parent) not in page


def test_a_users_trace_has_its_own_road_and_season(trained, tmp_path):
    page = page_text(
        trained, synthetic_replay(), tmp_path, setting=Setting("vista", 7, 3, trace="devens"), noises=(0.0,)
    )
    assert "VISTA, trace devens; season: as recorded." in page
    assert "recorded path" in page
    assert "road 7" not in page


def test_nothing_is_loaded_from_anywhere(trained, tmp_path):
    page = page_text(trained, synthetic_replay(), tmp_path)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)


def test_a_crash_is_marked_and_an_arrival_is_not(trained, tmp_path):
    crash = page_text(trained, synthetic_replay(status=LEFT_ROAD), tmp_path)
    assert "Left the road after" in crash
    assert "more than 2 m away from the expert" in crash
    assert page_data(crash)["drives"][0]["crashed"] is True
    arrival = page_text(trained, synthetic_replay(), tmp_path)
    assert "Arrived after" in arrival
    assert page_data(arrival)["drives"][0]["crashed"] is False


def test_the_page_holds_the_numbers_of_the_drive(trained, tmp_path):
    replay = synthetic_replay()
    replay.speed[3] = np.nan
    page = page_text(trained, replay, tmp_path)
    (data,) = page_data(page)["drives"]
    np.testing.assert_allclose(data["action"], replay.action, atol=1e-5)
    assert data["speed"][2:5] == [12.0, None, 12.0]
    assert len(data["x"]) == replay.steps + 1


def test_without_attention_there_is_no_switch_for_it(trained, tmp_path):
    page = page_text(trained, synthetic_replay(with_attention=False), tmp_path)
    assert 'id="attention"' not in page
    assert page_data(page)["drives"][0]["attention"] is None


def test_pictures_get_coarser_where_the_page_would_grow_too_large():
    frames = np.random.default_rng(0).integers(0, 256, (40, 48, 160, 3)).astype(np.uint8)
    (fine,), (coarse,) = pictures.sheets(frames), pictures.sheets(frames, 1)
    assert len(coarse) < len(fine)


def test_frames_stand_on_the_sheets_in_order():
    bright = np.arange(0, 250, dtype=np.uint8)
    sheets = pictures.sheets(np.broadcast_to(bright[:, None, None, None], (250, 48, 160, 3)).copy())
    assert len(sheets) == 2
    first, second = map(decode, sheets)
    assert first.shape == (20 * 48, 10 * 160, 3)
    assert abs(int(first[48 + 24, 3 * 160 + 80, 0]) - 13) <= 2
    assert abs(int(second[24, 80, 0]) - 200) <= 2


def test_neurons_are_scaled_by_percentiles_after_the_first_second():
    replay = synthetic_replay(200, neurons=2)
    replay.activity[:, 0] = np.linspace(-1, 1, 200)
    replay.activity[:30, 0] = 50.0  # the initial state is far away from everything that follows
    ranges = neuron_ranges(replay.activity)
    settled = np.linspace(-1, 1, 200)[30:]
    np.testing.assert_allclose(ranges["low"][0], np.percentile(settled, 2))
    np.testing.assert_allclose(ranges["high"][0], np.percentile(settled, 98))
    assert ranges["most"][0] == 50.0


def test_two_policies_and_their_conditions_stand_in_one_table(trained, tmp_path):
    replays = [synthetic_replay(60), synthetic_replay(90, status=LEFT_ROAD)]
    page = write_drives(drive_set([trained, trained], *replays, noises=(0.0,)), tmp_path / "drive.html").read_text()
    assert "LRCU-S, seed 0 A and LRCU-S, seed 0 B drive" in page
    assert page.count('class="screen"') == 2
    assert "winter, no noise" in page
    assert [drive["policy"] for drive in page_data(page)["drives"]] == [0, 1]


def test_a_label_that_looks_like_html_stays_text(trained, tmp_path):
    page = page_text(
        trained,
        synthetic_replay(),
        tmp_path,
        setting=Setting("vista", 7, 3, trace="</script><script>alert(1)</script>"),
    )
    assert "<script>alert" not in page


def test_a_tall_road_is_turned_and_not_mirrored():
    replay = synthetic_replay(49)
    up = np.stack([-((np.linspace(0, 1, 50)) ** 2) * 30, np.linspace(0, 100, 50)], 1)  # north, bending to the left
    replay = dataclasses.replace(
        replay, centre_line=up, x=up[:, 0], y=up[:, 1], road_curvature=None, road_speed=np.full(50, 12.0)
    )
    road_map = make_road_maps({"summer": [replay]})["summer"]
    x, y, direction = road_map.place(up[:, 0], up[:, 1], np.full(50, np.pi / 2))
    assert road_map.box[2] > road_map.box[3]
    assert x[-1] > x[0]
    assert y[-1] < y[0], "left of a car that drives to the right is up on a screen"
    np.testing.assert_allclose(direction, 0, atol=1e-12)
    assert road_map.curvature[5:-5].min() > 0, "a left bend has a positive curvature"


def test_missing_values_leave_a_gap_in_the_curve():
    values = np.array([1.0, np.nan, 1.0, 2.0])
    svg = charts.chart("a", "A", "m", [charts.Curve("a", "policy", values)], span=0.1, limits=(0.0, 3.0))
    path = re.search(r'class="curve policy" d="([^"]+)"', svg).group(1)
    assert path.count("M") == 2
    assert path.count("L") == 1
