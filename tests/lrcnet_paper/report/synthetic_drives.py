"""Drives for the tests of `lrcnet drive`: a policy trained for one epoch, and replays made without driving."""

import math

import numpy as np

from lrcnet_paper.driving import ARRIVED
from lrcnet_paper.report.drive_set import DriveSet, RecordedDrive, Setting
from lrcnet_paper.report.replay import Replay


def smoke_policy(folder, monkeypatch):
    """Train a policy for some seconds and return the folder of its run."""
    from lrcnet_paper import training
    from lrcnet_paper.tasks.driving import recording

    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    recording.cache_clear()
    spec = training.RunSpec(
        *("driving", "own-sample", "lrcu-s"),
        epochs=1,
        samples=2,
        batch_size=2,
        piece=4,
        budget="smoke",
        schedule="cosine",
    )
    training.run(spec, folder / "runs")
    recording.cache_clear()
    return folder / "runs" / spec.folder_name()


def drive_set(trained, *replays, setting=None, noises=(0.1,), seasons=("winter",)):
    """Return drives as a page takes them; the replays are listed by season, then noise, then policy."""
    trained = list(trained) if isinstance(trained, list | tuple) else [trained]
    places = [(policy, season, noise) for season in seasons for noise in noises for policy in range(len(trained))]
    drives = [RecordedDrive(*place, replay) for place, replay in zip(places, replays, strict=True)]
    return DriveSet(setting or Setting("own", 7, 3), trained, drives)


def synthetic_replay(steps=120, *, status=ARRIVED, with_attention=True, neurons=5, seed=0):
    """Return a drive around a bend: grey frames, each brighter than the one before, with attention on the left half."""
    every, chance = 2, np.random.default_rng(seed)
    count = -(-steps // every)
    bright = np.linspace(40, 220, count).round().astype(np.uint8)
    frames = np.broadcast_to(bright[:, None, None, None], (count, 48, 160, 3)).copy()
    attention = np.zeros((count, 24, 80), np.uint8)
    attention[:, :, :40] = 255
    time = np.arange(steps + 1) / 30
    direction = time / 3
    curvature = 0.02 * np.sin(time[:-1])
    return Replay(
        frames=frames,
        attention=attention if with_attention else None,
        frame_interval=every,
        action=curvature,
        advice=curvature + 0.002,
        offset=0.5 * np.sin(2 * time),
        speed=np.full(steps + 1, 12.0),
        x=36 * np.sin(direction),
        y=36 * (1 - np.cos(direction)),
        direction=direction,
        activity=np.outer(curvature, np.linspace(-1, 1, neurons)) + 1e-4 * chance.normal(size=(steps, neurons)),
        centre_line=np.stack([36 * np.sin(a := np.linspace(0, math.pi / 2, 60)), 36 * (1 - np.cos(a))], 1),
        road_curvature=np.full(60, 1 / 36),
        road_speed=np.full(60, 12.0),
        status=status,
    )
