"""The pipeline of `lrcnet drive`: load trained policies, let each drive one car, write a page or a film."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from lrcnet.errors import check_target, one_of, positive_size
from lrcnet.progress import status, track
from lrcnet_paper.driving.drivable import check_length
from lrcnet_paper.driving.worlds import WORLDS, make_world
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.report.drive_film import video_writer, write_gif, write_mp4
from lrcnet_paper.report.drive_page import write_drives
from lrcnet_paper.report.drive_pictures import pillow
from lrcnet_paper.report.drive_set import DriveSet, RecordedDrive, Setting
from lrcnet_paper.report.replay import record_drive
from lrcnet_paper.results.provenance import provenance_of
from lrcnet_paper.road_seeds import CLOSED_LOOP
from lrcnet_paper.training.trained_network import TrainedNetwork, load_trained

AnyPath = str | os.PathLike[str]
SEASONS = ("summer", "winter")
LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Levels of noise of a page; the paper has 0.1 and 0.2."""


class Targets(NamedTuple):
    """Files to write drives to; None for those that are not wanted.

    Attributes:
        html: an offline page.
        gif, mp4: films of the first season and level of noise. An MP4 needs imageio-ffmpeg (extra `film`).
        clip: first and last moment of the films, s; None for the whole drive.
    """

    html: AnyPath | None = None
    gif: AnyPath | None = None
    mp4: AnyPath | None = None
    clip: Sequence[float] | None = None

    @property
    def files(self) -> list[Path]:
        """The files that are wanted."""
        return [Path(path) for path in (self.html, self.gif, self.mp4) if path is not None]


def drive_page(
    checkpoints: AnyPath | Sequence[AnyPath],
    html: AnyPath | Targets,
    *,
    world: str = "own",
    seasons: Sequence[str] | None = None,
    noises: Sequence[float] | None = None,
    road: int = CLOSED_LOOP[0],
    seed: int = 0,
    length: float = 400.0,
    steps: int = 3000,
    trace: AnyPath | None = None,
    with_attention: bool = True,
) -> DriveSet:
    """Let one or two trained policies drive over one road, and write an offline page or a film of their drives.

    Args:
        checkpoints: run folder of a policy, or one of its .ckpt files; or two of them.
        html: file to write the page to, or several `Targets`.
        world: "own", "vista" or "carracing".
        seasons: seasons to drive in; None for both on a page, if the world has both, and for summer in a film.
        noises: variances of Gaussian noise on pixels from 0 to 1; None for `LEVELS` on a page and for 0 in a film.
        road: seed of the road and its appearance; the default is the first road of the closed-loop measurements, which
            no recording has.
        seed: random seed of the noise.
        length: length of the road, m.
        steps: maximum number of 1/30 s steps.
        trace: VISTA only: folder of a trace to use in place of a road from a seed.
        with_attention: whether the page can show the policy's attention.

    Raises:
        ValueError: for an argument out of range, a run that is no trained driving policy, or an unusable trace.
        ImportError: if a package is missing; the message says which command installs it.
    """
    targets = html if isinstance(html, Targets) else Targets(html)
    if noises is None:
        noises = (0.0,) if targets.html is None else LEVELS
    if seasons is None:
        # CarRacing has no winter, and a trace has the season in which it was recorded.
        one = targets.html is None or world == "carracing" or trace is not None
        seasons = SEASONS[:1] if one else SEASONS
    one_of("world", world, WORLDS)
    _check(targets, seasons, noises, steps, length)
    paths = [checkpoints] if isinstance(checkpoints, str | os.PathLike) else list(checkpoints)
    if not 1 <= len(paths) <= 2:
        raise ValueError(f"one or two policies can drive together, but there are {len(paths)} checkpoints")
    trained = [_load_policy(path) for path in paths]
    # The page names the trace's folder without its path, which would reveal something about the machine.
    setting = Setting(world, road, seed, trace="" if trace is None else Path(trace).resolve().name)

    def record(season: str, noise: float, policy: int) -> RecordedDrive:
        cars = make_world(world, [road], season=season, length=length, traces=None if trace is None else [trace])
        network = trained[policy].network
        assert isinstance(network, Policy)
        replay = record_drive(network, cars, noise=noise, seed=seed, steps=steps, with_attention=with_attention)
        return RecordedDrive(policy, season, noise, replay)

    places = list(product(seasons, noises, range(len(trained))))
    driven = DriveSet(setting, trained, [record(*place) for place in track(places, "driving", unit="drive")])
    for path in targets.files:
        status(f"writing {path.name}")
    _write(driven, targets)
    return driven


def _write(driven: DriveSet, targets: Targets) -> None:
    clip = None if targets.clip is None else (float(targets.clip[0]), float(targets.clip[1]))
    if targets.html is not None:
        write_drives(driven, targets.html)
    if targets.gif is not None:
        write_gif(driven, Path(targets.gif), clip=clip)
    if targets.mp4 is not None:
        write_mp4(driven, Path(targets.mp4), clip=clip)


def _check(targets: Targets, seasons: Sequence[str], noises: Sequence[float], steps: int, length: float) -> None:
    """Refuse bad arguments before the drives, which take longer."""
    if not targets.files:
        raise ValueError("say what to write: --html FILE for a page, --gif FILE or --mp4 FILE for a film")
    for season in seasons:
        one_of("season", season, SEASONS)
    for noise in noises:
        if not noise >= 0:
            raise ValueError(f"noise is a variance, so it must be at least 0, but is {noise:g}")
    if len(set(noises)) < len(noises):
        raise ValueError(f"each level of noise must be given once, but they are {', '.join(f'{v:g}' for v in noises)}")
    if not seasons or not noises:
        raise ValueError("there must be at least one season and one level of noise; use 0 for no noise")
    positive_size("steps", steps)
    check_length(length)
    for path in targets.files:
        check_target(path)
    pillow()
    if targets.mp4 is not None:
        video_writer()


def _load_policy(path: AnyPath) -> TrainedNetwork:
    trained = load_trained(path)
    if not isinstance(trained.network, Policy):
        raise ValueError(
            f"CHECKPOINT must be a driving policy, but this is {trained.spec.model} trained on {trained.spec.task}; "
            "train one with: lrcnet train driving"
        )
    provenance_of(trained)
    return trained
