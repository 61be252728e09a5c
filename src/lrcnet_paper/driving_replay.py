"""The pipeline of `lrcnet drive`: load a trained policy, let it drive one car, write the page that replays it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lrcnet.errors import check_target, one_of, positive_size
from lrcnet_paper.driving.worlds import WORLDS, make_world
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.report.drive_page import Setting, write_drive
from lrcnet_paper.report.drive_pictures import pillow
from lrcnet_paper.report.replay import Replay, record_drive
from lrcnet_paper.results.provenance import provenance_of
from lrcnet_paper.road_seeds import CLOSED_LOOP
from lrcnet_paper.training.trained_network import load_trained

AnyPath = str | os.PathLike[str]


class DrivePage(NamedTuple):
    """A drive and the page that replays it."""

    replay: Replay
    file: Path


def drive_page(
    checkpoint: AnyPath,
    html: AnyPath,
    *,
    world: str = "own",
    season: str = "summer",
    noise: float = 0.0,
    road: int = CLOSED_LOOP[0],
    seed: int = 0,
    length: float = 400.0,
    steps: int = 3000,
    trace: AnyPath | None = None,
    with_attention: bool = True,
) -> DrivePage:
    """Let a trained policy drive one car, and write one offline page that replays the drive.

    Args:
        checkpoint: run folder of a policy, or one of its .ckpt files.
        html: file to write the page to.
        world: "own", "vista" or "carracing".
        season: "summer" or "winter".
        noise: variance of Gaussian noise on pixels from 0 to 1.
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
    # Refuse bad arguments before the drive, which takes longer.
    one_of("world", world, WORLDS)
    one_of("season", season, ("summer", "winter"))
    if not noise >= 0:
        raise ValueError(f"noise is a variance, so it must be at least 0, but is {noise:g}")
    positive_size("steps", steps)
    check_target(html)
    pillow()
    trained = load_trained(checkpoint)
    policy = trained.network
    if not isinstance(policy, Policy):
        raise ValueError(
            f"CHECKPOINT must be a driving policy, but this is {trained.spec.model} trained on {trained.spec.task}; "
            "train one with: lrcnet train driving"
        )
    provenance_of(trained)
    cars = make_world(world, [road], season=season, length=length, traces=None if trace is None else [trace])
    replay = record_drive(policy, cars, noise=noise, seed=seed, steps=steps, with_attention=with_attention)
    # The page names the trace's folder without its path, which would reveal something about the machine.
    trace_name = "" if trace is None else Path(trace).resolve().name
    setting = Setting(world, season, road, noise, seed, trace=trace_name)
    return DrivePage(replay, write_drive(trained, replay, setting, html))
