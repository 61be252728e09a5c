"""Recordings of real cars are converted to our format, from a folder with a CSV or from one file of JPEGs."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from lrcnet_paper.driving.real_recordings import curvature_of_steering, from_folder, from_jpegs

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install 'lrcnet[driving]'")


def image(level: int, size: tuple[int, int] = (320, 160)):
    rows = np.arange(size[1], dtype=np.float64)[:, None, None] * 0.5 + level
    return Image.fromarray(np.broadcast_to(rows, (size[1], size[0], 3)).astype(np.uint8))


@pytest.fixture
def source(tmp_path) -> Path:
    folder = tmp_path / "drive"
    folder.mkdir()
    for k in range(4):
        image(10 * k).save(folder / f"{k}.png")
    lines = ["frame,curvature,speed,season,road,weather"]
    lines += [f"{k}.png,{0.01 * k},12.5,{'winter' if k > 1 else 'summer'},{k // 2},fine" for k in range(4)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_folder_with_a_csv(source, tmp_path) -> None:
    recording = from_folder(source, tmp_path / "out")
    assert recording.frames.shape == (4, 48, 160, 3)
    np.testing.assert_allclose(recording.curvature, [0, 0.01, 0.02, 0.03])
    np.testing.assert_array_equal(recording.season, [0, 0, 1, 1])
    np.testing.assert_array_equal(recording.starts, [0, 2, 4])
    assert np.isnan(recording.offset).all()
    # The middle 96 of 160 rows; each of our rows averages two of them.
    expected = (32 + 2 * np.arange(48) + 0.5) * 0.5
    np.testing.assert_allclose(recording.frames[0, :, 7, 1], expected, atol=1)


def test_a_crop_box_selects_a_part(source, tmp_path) -> None:
    recording = from_folder(source, tmp_path / "out", box=(0.25, 0.7, 0.75, 1.0))
    np.testing.assert_allclose(recording.frames[0, :, 80, 0], (112 + np.arange(48)) * 0.5, atol=1)
    with pytest.raises(ValueError, match="left < right and top < bottom"):
        from_folder(source, tmp_path / "other", box=(0.5, 0.0, 0.2, 1.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frame,steering\n0.png,1\n", r"lacks \['curvature'\]"),
        ("frame,curvature\n", "has none under its header"),
        ("frame,curvature\n0.png,0.1\n1.png,left\n", "line 3 of labels.csv: curvature is 'left'"),
        ("frame,curvature\n0.png,nan\n", "must be a finite number"),
        ("frame,curvature,season\n0.png,0.1,spring\n", "line 2 of labels.csv: season is 'spring'"),
    ],
)
def test_a_bad_csv_is_refused_with_its_line(source, tmp_path, text, message) -> None:
    (source / "labels.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        from_folder(source, tmp_path / "out")


def test_jpegs_back_to_back(tmp_path) -> None:
    parts = []
    for k in range(3):
        stream = io.BytesIO()
        image(40 * k, (160, 80)).save(stream, "JPEG", quality=95)
        parts.append(stream.getvalue())
    (tmp_path / "x.jpegs").write_bytes(b"".join(parts))
    offsets = np.cumsum([0, *map(len, parts)])
    np.savez(tmp_path / "x_index.npz", offsets=offsets, wheel=np.array([0.0, 1.6, -1.6]))
    recording = from_jpegs(
        tmp_path / "x.jpegs", tmp_path / "out", lambda labels: curvature_of_steering(labels["wheel"], ratio=16)
    )
    np.testing.assert_allclose(recording.curvature, [0, np.tan(0.1) / 2.7, -np.tan(0.1) / 2.7], rtol=1e-6)
    assert recording.frames[2].mean() - recording.frames[0].mean() == pytest.approx(80, abs=2)
    np.testing.assert_array_equal(recording.starts, [0, 3])
    with pytest.raises(ValueError, match="curvature must give 3 finite numbers"):
        from_jpegs(tmp_path / "x.jpegs", tmp_path / "out2", lambda labels: labels["wheel"][:2])
    np.savez(tmp_path / "x_index.npz", offsets=offsets * 2)
    with pytest.raises(ValueError, match=r"end within x\.jpegs"):
        from_jpegs(tmp_path / "x.jpegs", tmp_path / "out3", lambda labels: labels["wheel"])


@pytest.mark.parametrize(
    ("name", "frames", "label"),
    [
        # Steering 1 is 25 degrees to the right in that simulator.
        ("udacity_sim_160x80", 4053, lambda z: curvature_of_steering(np.radians(25) * z["steering"], left=-1)),
        ("deeptesla_clip_320x180", 755, lambda z: curvature_of_steering(np.radians(z["wheel_deg"]), ratio=15)),
    ],
)
def test_real_images_load(name, frames, label, tmp_path) -> None:
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    path = Path(os.environ.get("LRCNET_DATA") or beside) / "driving" / f"{name}.jpegs"
    if not path.exists():
        pytest.skip(f"{path.name} is not on this machine: set LRCNET_DATA to the folder of the real data")
    recording = from_jpegs(path, tmp_path, label, box=(0.0, 0.4, 1.0, 1.0))
    assert recording.frames.shape == (frames, 48, 160, 3)
    assert np.abs(recording.curvature).max() < 0.2
    # Real images are neither black nor of one colour, and successive frames are similar.
    some = recording.frames[100:110].astype(np.float64)
    assert some.std() > 10
    assert np.abs(np.diff(some, axis=0)).mean() < 30
