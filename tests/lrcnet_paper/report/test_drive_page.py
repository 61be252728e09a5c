"""The page of a drive as text: its content, its omissions and its size."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image
from synthetic_drives import smoke_policy, synthetic_replay

from lrcnet_paper.driving import LEFT_ROAD
from lrcnet_paper.report import drive_charts as charts
from lrcnet_paper.report import drive_pictures as pictures
from lrcnet_paper.report.drive_page import Setting, write_drive
from lrcnet_paper.training.trained_network import load_trained

SETTING = Setting("own", "winter", 7, 0.1, 3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        return load_trained(smoke_policy(tmp_path_factory.mktemp("policy"), patch))


def page_text(trained, replay, tmp_path, setting=SETTING):
    return write_drive(trained, replay, setting, tmp_path / "drive.html").read_text()


def decode(address):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(address.split(",")[1]))))


def test_it_says_where_it_comes_from(trained, tmp_path):
    page = page_text(trained, synthetic_replay(), tmp_path)
    for words in ("LRCU-S", "best.ckpt", "seed 0", "validation loss", "winter", "road 7", "variance 0.1", "torch 2."):
        assert words in page, words
    assert str(tmp_path) not in page
    assert str(trained.file.parent) not in page


def test_a_users_trace_has_its_own_road_and_season(trained, tmp_path):
    page = page_text(trained, synthetic_replay(), tmp_path, Setting("vista", "winter", 7, 0.0, 3, trace="devens"))
    assert "VISTA, trace devens; season: as recorded; no noise" in page
    assert "recorded path" in page
    assert "winter" not in page
    assert "road 7" not in page


def test_nothing_is_loaded_from_anywhere(trained, tmp_path):
    page = page_text(trained, synthetic_replay(), tmp_path)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)


def test_a_crash_is_marked_and_an_arrival_is_not(trained, tmp_path):
    crash = page_text(trained, synthetic_replay(status=LEFT_ROAD), tmp_path)
    assert "Left the road after" in crash
    assert "more than 2 m away from the expert" in crash
    assert crash.count('class="crash"') == 2
    arrival = page_text(trained, synthetic_replay(), tmp_path)
    assert "Arrived after" in arrival
    assert 'class="crash"' not in arrival


def test_the_page_holds_the_numbers_of_the_drive(trained, tmp_path):
    replay = synthetic_replay()
    replay.speed[3] = np.nan
    page = page_text(trained, replay, tmp_path)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))
    np.testing.assert_allclose(data["action"], replay.action, atol=1e-5)
    assert data["speed"][2:5] == [12.0, None, 12.0]
    assert len(data["x"]) == replay.steps + 1


def test_without_attention_there_is_no_switch_for_it(trained, tmp_path):
    page = page_text(trained, synthetic_replay(with_attention=False), tmp_path)
    assert 'id="attention"' not in page
    assert 'class="attention-sheet"' not in page


def test_half_a_minute_of_noise_stays_below_six_megabytes(trained, tmp_path):
    replay = synthetic_replay(900, neurons=38)
    generator = np.random.default_rng(0)
    replay.frames[:] = generator.normal(128, 80, replay.frames.shape).clip(0, 255)
    replay.attention[:] = generator.integers(0, 256, replay.attention.shape)
    page = write_drive(trained, replay, SETTING, tmp_path / "drive.html")
    assert page.stat().st_size < 6_000_000


def test_frames_stand_on_the_sheets_in_order():
    bright = np.arange(0, 250, dtype=np.uint8)
    sheets = pictures.sheets(np.broadcast_to(bright[:, None, None, None], (250, 48, 160, 3)).copy())
    assert len(sheets) == 2
    first, second = map(decode, sheets)
    assert first.shape == (20 * 48, 10 * 160, 3)
    assert abs(int(first[48 + 24, 3 * 160 + 80, 0]) - 13) <= 2
    assert abs(int(second[24, 80, 0]) - 200) <= 2


def test_each_neuron_is_coloured_within_its_own_range():
    values = np.array([[0.0, -5.0, 1.0], [1.0, 5.0, 1.0]])
    picture = decode(pictures.colour_rows(values))
    assert picture.shape == (3 * pictures.ROW_PIXELS, 2, 3)
    dark, light = [0x00, 0x22, 0x4E], [0xFE, 0xE8, 0x38]
    assert picture[0].tolist() == picture[pictures.ROW_PIXELS].tolist() == [dark, light]
    assert picture[-1].tolist() == [[0x7D, 0x7C, 0x78]] * 2


def test_a_tall_road_is_turned_and_not_mirrored():
    up = np.stack([np.zeros(50), np.linspace(0, 100, 50)], 1)
    up[:, 0] = -((np.linspace(0, 1, 50)) ** 2) * 30  # to the north, bending to the left
    road_map = charts.make_map(up, up[:, 0], up[:, 1], np.full(50, np.pi / 2))
    assert road_map.box[2] > road_map.box[3]
    assert road_map.x[-1] > road_map.x[0]
    assert road_map.y[-1] < road_map.y[0], "left of a car that drives to the right is up on a screen"
    np.testing.assert_allclose(road_map.direction, 0, atol=1e-12)


def test_missing_values_leave_a_gap_in_the_curve():
    values = np.array([1.0, np.nan, 1.0, 2.0])
    svg = charts.chart("a", "A", "m", [charts.Curve("a", "policy", values)], seconds=0.1, covered=values, least=1.0)
    path = re.search(r'class="curve policy" d="([^"]+)"', svg).group(1)
    assert path.count("M") == 2
    assert path.count("L") == 1
