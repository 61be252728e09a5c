"""Traces in VISTA's format: they hold the frames of our own camera, and a broken trace is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from lrcnet_paper.driving import World
from lrcnet_paper.driving.vista_trace import FILES, LENS, ROI, open_trace, record_trace
from lrcnet_paper.driving.vista_video import TraceVideo, write_video
from tests.lrcnet_paper.driving.needs import refuse

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _ffmpeg() -> None:
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        refuse("imageio-ffmpeg is not installed; run: pip install 'lrcnet[vista]'")


@pytest.fixture(scope="module")
def trace(_ffmpeg: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record_trace(tmp_path_factory.mktemp("traces") / "seven", 7, season="summer", length=12.0)


def copy(trace: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((trace / name).read_bytes())
    return folder


def test_a_video_gives_back_every_byte_from_any_frame(tmp_path: Path) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (12, 9, 14, 3), dtype=np.uint8)
    write_video(tmp_path / "v.avi", frames, size=(9, 14))
    video = TraceVideo(str(tmp_path / "v.avi"), (9, 14))
    assert video.fps == 30
    for start in (0, 5, 2):
        video.seek(video.frame_to_secs(start))
        for number in range(start, 12):
            _, frame = video.read()
            assert video.frame_num == number
            assert np.array_equal(frame[..., ::-1], frames[number])
    with pytest.raises(ValueError, match=r"v.avi must have as many frames as its .csv says, but ends after 12"):
        video.read()
    video.close()


def test_a_trace_holds_the_drive(trace: Path) -> None:
    world = World([7], season="summer", length=12.0)
    video = TraceVideo(str(trace / "camera_front.avi"), (LENS.height, LENS.width))
    _, first = video.read()
    video.close()
    assert np.array_equal(first[ROI[0] : ROI[2], ROI[1] : ROI[3], ::-1], world.frames()[0].numpy())
    speed, imu = (np.loadtxt(trace / name, delimiter=",") for name in ("speed.csv", "imu.csv"))
    assert speed[0, 1] == pytest.approx(world.speed.item())
    assert imu.shape == (len(speed), 7)
    optics = open_trace(trace)
    assert (optics.height, optics.width) == (LENS.height, LENS.width)
    assert optics.roi == ROI


def test_a_trace_is_recorded_once(trace: Path) -> None:
    before = (trace / "camera_front.avi").stat().st_mtime_ns
    record_trace(trace, 7, season="summer", length=12.0)
    assert (trace / "camera_front.avi").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="seven holds a trace of another road or other settings"):
        record_trace(trace, 8, season="summer", length=12.0)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(trace: Path, tmp_path: Path, name: str) -> None:
    broken = copy(trace, tmp_path / "broken")
    (broken / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"but lacks {re.escape(name)}; record one with"):
        open_trace(broken)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("speed.csv", "0,1\n0.1,2,3\n", "same number of columns in every line"),
        ("speed.csv", "", "speed.csv must have 2 columns of numbers"),
        ("imu.csv", "0,1\n1,1\n2,1\n3,1\n", "imu.csv must have 7 columns of numbers"),
        ("camera_front.csv", "frame,ros_time\n0,a\n1,b\n2,c\n", "camera_front.csv must have 2 columns of numbers"),
        ("params.xml", "<rig>", "params.xml must be XML"),
        ("params.xml", "<rig/>", "must give height, width and roi of camera_front"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*Empty input file:UserWarning")
def test_a_corrupt_file_is_named(trace: Path, tmp_path: Path, name: str, text: str, message: str) -> None:
    broken = copy(trace, tmp_path / "broken")
    (broken / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        open_trace(broken)


def test_a_region_outside_the_frame_is_refused(trace: Path, tmp_path: Path) -> None:
    broken = copy(trace, tmp_path / "broken")
    params = (broken / "params.xml").read_text()
    region = ",".join(str(number) for number in ROI)
    (broken / "params.xml").write_text(params.replace(region, "0,0,48,9999"))
    with pytest.raises(ValueError, match=r"roi in params.xml must be top, left, bottom, right within the frame"):
        open_trace(broken)


def test_a_file_that_is_no_video_is_named(tmp_path: Path) -> None:
    (tmp_path / "v.avi").write_text("not a video")
    with pytest.raises(ValueError, match=r"v.avi must be a video, but ffmpeg finds none in it"):
        TraceVideo(str(tmp_path / "v.avi"), (9, 14))


def test_the_noise_of_the_expert_is_recorded(tmp_path: Path) -> None:
    steady, unsteady = (
        np.loadtxt(record_trace(tmp_path / str(noise), 3, length=40.0, noise=noise) / "imu.csv", delimiter=",")[:, 6]
        for noise in (0.0, 1.0)
    )
    assert torch.tensor(unsteady).diff().abs().mean() > torch.tensor(steady).diff().abs().mean()
