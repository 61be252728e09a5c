"""`lrcnet drive`: let trained policies drive over one road, and write a page or a film of their drives."""

import argparse
import sys

from lrcnet.flags import refuse
from lrcnet_paper.road_seeds import CLOSED_LOOP

HELP = "let one or two trained policies drive, and write an offline page (or a GIF, an MP4) that replays it"
EXAMPLE = "lrcnet drive runs/driving_own_lrcu-s_seed0 runs/driving_own_lstm_seed0 --html drive.html --gif drive.gif"
GROUP, STATUS = "trained networks", "loading the policy"
LEVELS = (0.0, 0.02, 0.05, 0.1, 0.2)


def configure(parser: argparse.ArgumentParser) -> None:
    add, road = parser.add_argument, CLOSED_LOOP[0]
    add(
        "checkpoints",
        nargs="+",
        metavar="CHECKPOINT",
        help="run folder of a policy, or one of its .ckpt files; a second one drives beside it",
    )
    add("--html", metavar="FILE", help="file to write the page to")
    add("--gif", metavar="FILE", help="file for an animated GIF of the first season and noise (needs Pillow)")
    add("--mp4", metavar="FILE", help="file for a film of the first season and noise (needs imageio-ffmpeg)")
    add("--clip", type=float, nargs=2, metavar=("FROM", "TO"), help="part of the drive in a film, s (default: all)")
    add("--world", default="own", metavar="own|vista|carracing", help="world to drive in (default: own)")
    add("--season", metavar="summer|winter", help="season of the world (default: both on a page, summer in a film)")
    add(
        "--noise",
        type=float,
        nargs="+",
        metavar="VARIANCE",
        help="variances of Gaussian noise on pixels from 0 to 1, one drive each "
        f"(default: {' '.join(f'{v:g}' for v in LEVELS)} on a page, 0 in a film; the paper has 0.1 and 0.2)",
    )
    add("--road", type=int, help=f"seed of road and appearance (default: {road}, never trained on)")
    add("--seed", type=int, help="random seed of the noise (default: 0)")
    add("--length", type=float, default=400.0, metavar="M", help="length of the road (default: 400 m)")
    add("--steps", type=int, default=3000, metavar="N", help="maximum number of 1/30 s steps (default: 3000)")
    add("--trace", metavar="DIR", help="VISTA only: folder of a trace to use in place of a road from a seed")
    add(
        "--attention",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the page can show the policy's attention (default: yes)",
    )


def run(arguments: argparse.Namespace) -> int:
    noises = arguments.noise or (LEVELS if arguments.html else (0.0,))
    if not any(noises):
        refuse(arguments, ["seed"], "without --noise nothing is random")
    if arguments.trace:
        refuse(arguments, ["road", "season"], "--trace brings its own road and season")
    if not (arguments.gif or arguments.mp4):
        refuse(arguments, ["clip"], "without --gif or --mp4 there is no film")
    from lrcnet_paper.driving_replay import drive_page

    driven = drive_page(
        arguments.checkpoints,
        arguments.html,
        gif=arguments.gif,
        mp4=arguments.mp4,
        clip=tuple(arguments.clip) if arguments.clip else None,
        world=arguments.world,
        seasons=_seasons(arguments),
        noises=noises,
        road=CLOSED_LOOP[0] if arguments.road is None else arguments.road,
        seed=arguments.seed or 0,
        length=arguments.length,
        steps=arguments.steps,
        trace=arguments.trace or None,
        with_attention=arguments.attention,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    for drive in driven.drives:
        conditions = f"{driven.labels[drive.policy]}, {drive.season}, noise {drive.noise:g}"
        print(f"{conditions}: {drive.replay.ending}, {drive.replay.seconds:.1f} s")
    from pathlib import Path

    for file in filter(None, (arguments.html, arguments.gif, arguments.mp4)):
        print(f"written to {file} ({Path(file).stat().st_size / 1e6:.1f} MB)")
    return 0


def _seasons(arguments: argparse.Namespace) -> tuple[str, ...]:
    if arguments.season:
        return (arguments.season,)
    # CarRacing has no winter, and a trace has the season in which it was recorded.
    one = arguments.world == "carracing" or arguments.trace or not arguments.html
    return ("summer",) if one else ("summer", "winter")
