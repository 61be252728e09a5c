"""A recording holds the expert's drives frame by frame, is made from seeds, and its windows are balanced by bends."""

import shutil

import numpy as np
import pytest
import torch

from lrcnet_paper.driving import STEP, DriveRecording, Windows, World, expert_drive, open_recording, record

ROADS = [3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("recording")
    record(target, ROADS, length=70.0, batch=2)
    return target


def test_frames_and_labels_are_those_of_the_drive(folder) -> None:
    recording = open_recording(folder)
    assert recording.frames.dtype == np.uint8
    assert isinstance(recording.frames, np.memmap)
    which = ROADS.index(6)
    start, end = recording.starts[which : which + 2]
    assert set(recording.road[start:end]) == {6}
    world = World([6], length=70.0)
    steps = list(expert_drive(world, world.expert()))
    assert len(steps) == end - start
    for time in (0, 50, len(steps) - 1):
        step = steps[time]
        assert step.frames is not None
        np.testing.assert_array_equal(recording.frames[start + time], step.frames[0].numpy())
        assert recording.curvature[start + time] == pytest.approx(step.action.item(), abs=1e-7)
        assert recording.offset[start + time] == pytest.approx(step.state.offset.item(), abs=1e-7)
        assert recording.speed[start + time] == pytest.approx(step.speed.item(), rel=1e-6)
    assert set(recording.season[start:end]) == {int(world.appearance.winter.item())}


def test_the_batch_size_changes_no_byte(folder, tmp_path) -> None:
    one, other = open_recording(folder), record(tmp_path / "again", ROADS, length=70.0, batch=32)
    np.testing.assert_array_equal(one.frames, other.frames)
    for name in ("curvature", "heading", "season", "road", "starts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_finished_recording_is_opened_and_an_unfinished_one_made_anew(folder, tmp_path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    written = (copy / "frames.npy").stat().st_mtime_ns
    record(copy, ROADS, length=70.0)
    assert (copy / "frames.npy").stat().st_mtime_ns == written
    (copy / "recording.json").unlink()
    with pytest.raises(FileNotFoundError, match="no finished recording"):
        open_recording(copy)
    record(copy, ROADS, length=70.0)
    assert (copy / "frames.npy").stat().st_mtime_ns != written
    with pytest.raises(ValueError, match="choose another folder"):
        record(copy, ROADS, length=80.0)
    with pytest.raises(ValueError, match="roads must name at least one road"):
        record(copy, [])


def test_windows_stay_within_a_drive(folder) -> None:
    recording = open_recording(folder)
    windows = Windows(recording, 32, stride=5)
    frames, dt, curvature = windows[[0, len(windows) - 1]]
    assert frames.shape == (2, 32, 48, 160, 3)
    assert dt is None
    assert curvature.shape == (2, 32)
    np.testing.assert_array_equal(windows[0][0].numpy(), recording.frames[:32])
    first = torch.as_tensor(windows._first)
    drive = torch.bucketize(first, torch.as_tensor(recording.starts), right=True)
    assert torch.equal(drive, torch.bucketize(first + 31, torch.as_tensor(recording.starts), right=True))
    with pytest.raises(ValueError, match="must have 5000 frames for a window"):
        Windows(recording, 5000)


def test_bends_are_drawn_as_often_as_straight_road() -> None:
    world = World(range(40), length=300.0)
    steps = list(expert_drive(world, world.expert(), frames=False))
    bend = torch.stack([step.road_curvature for step in steps], 1).float().numpy()
    count = bend.size
    unused = np.zeros(count, np.float32)
    recording = DriveRecording(
        np.broadcast_to(np.uint8(0), (count, 48, 160, 3)),
        bend.ravel(),
        unused,
        unused,
        unused,
        bend.ravel(),
        np.zeros(count, np.uint8),
        np.zeros(count, np.int64),
        np.arange(0, count + 1, bend.shape[1]),
    )
    windows = Windows(recording)
    natural = torch.bincount(windows.kind).double() / len(windows)
    draws = windows.draw_balanced(9000, torch.Generator().manual_seed(0))
    balanced = torch.bincount(windows.kind[draws]).double() / 9000
    assert natural.max() > 0.4
    assert (balanced - 1 / 3).abs().max() < 0.03
    assert windows.weights.sum().item() == pytest.approx(1)
    assert pytest.approx(1 / 30) == STEP
