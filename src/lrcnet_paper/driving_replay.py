"""The pipeline of `lrcnet drive`: load trained policies, let each drive one car, write a page or a film."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from lrcnet.errors import check_target, one_of, positive_size
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


class Targets(NamedTuple):
    """Files to write drives to; None for those that are not wanted.

    Attributes:
        html: an offline page.
        gif, mp4: films of the first season and level of noise.
        clip: first and last moment of the films, s; None for the whole drive.
    """

    html: AnyPath | None = None
    gif: AnyPath | None = None
    mp4: AnyPath | None = None
    clip: tuple[float, float] | None = None

    @property
    def files(self) -> list[Path]:
        """The files that are wanted."""
        return [Path(path) for path in (self.html, self.gif, self.mp4) if path is not None]


def drive_page(
    checkpoints: AnyPath | Sequence[AnyPath],
    html: AnyPath | None = None,
    *,
    gif: AnyPath | None = None,
    mp4: AnyPath | None = None,
    clip: tuple[float, float] | None = None,
    world: str = "own",
    seasons: Sequence[str] = ("summer",),
    noises: Sequence[float] = (0.0,),
    road: int = CLOSED_LOOP[0],
    seed: int = 0,
    length: float = 400.0,
    steps: int = 3000,
    trace: AnyPath | None = None,
    with_attention: bool = True,
    progress: Callable[[str], None] | None = None,
) -> DriveSet:
    """Let one or two trained policies drive over one road, and write an offline page or a film of their drives.

    Args:
        checkpoints: run folder of a policy, or one of its .ckpt files; or two of them.
        html: file to write the page to.
        gif, mp4: files for films of the first season and level of noise. An MP4 needs imageio-ffmpeg (extra `film`).
        clip: first and last moment of the films, s; None for the whole drive.
        world: "own", "vista" or "carracing".
        seasons: "summer", "winter" or both.
        noises: variances of Gaussian noise on pixels from 0 to 1; every one is driven, and a slider chooses among them.
        road: seed of the road and its appearance; the default is the first road of the closed-loop measurements, which
            no recording has.
        seed: random seed of the noise.
        length: length of the road, m.
        steps: maximum number of 1/30 s steps.
        trace: VISTA only: folder of a trace to use in place of a road from a seed.
        with_attention: whether the page can show the policy's attention.
        progress: called with a line of text before every part of the work.

    Raises:
        ValueError: for an argument out of range, a run that is no trained driving policy, or an unusable trace.
        ImportError: if a package is missing; the message says which command installs it.
    """
    targets = Targets(html, gif, mp4, clip)
    one_of("world", world, WORLDS)
    _check(targets, seasons, noises, steps)
    tell = progress or (lambda line: None)
    paths = [checkpoints] if isinstance(checkpoints, str | os.PathLike) else list(checkpoints)
    if not 1 <= len(paths) <= 2:
        raise ValueError(f"one or two policies can drive together, but there are {len(paths)} checkpoints")
    trained = [_load_policy(path) for path in paths]
    # The page names the trace's folder without its path, which would reveal something about the machine.
    setting = Setting(world, road, seed, trace="" if trace is None else Path(trace).resolve().name)
    drives: list[RecordedDrive] = []
    total = len(seasons) * len(noises) * len(trained)
    for season in seasons:
        for noise in noises:
            for policy, one in enumerate(trained):
                cars = make_world(
                    world, [road], season=season, length=length, traces=None if trace is None else [trace]
                )
                tell(f"drive {len(drives) + 1} of {total}: {one.spec.model}, {season}, noise {noise:g}")
                assert isinstance(one.network, Policy)
                replay = record_drive(
                    one.network, cars, noise=noise, seed=seed, steps=steps, with_attention=with_attention
                )
                drives.append(RecordedDrive(policy, season, noise, replay))
    driven = DriveSet(setting, trained, drives)
    for path in targets.files:
        tell(f"writing {path.name}")
    if html is not None:
        write_drives(driven, html)
    if gif is not None:
        write_gif(driven, Path(gif), clip=clip)
    if mp4 is not None:
        write_mp4(driven, Path(mp4), clip=clip)
    return driven


def _check(targets: Targets, seasons: Sequence[str], noises: Sequence[float], steps: int) -> None:
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
