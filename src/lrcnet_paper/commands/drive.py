"""`lrcnet drive`: let trained policies drive over one road, and write a page or a film of their drives."""

import argparse

from lrcnet.flags import refuse
from lrcnet_paper.road_seeds import CLOSED_LOOP

HELP = "let one or two trained policies drive, and write an offline page (or a GIF, an MP4) that replays it"
EXAMPLE = "lrcnet drive runs/driving_own_lrcu-s_seed0 runs/driving_own_lstm_seed0 --html drive.html --gif drive.gif"
GROUP, STATUS = "trained networks", "loading the policy"
CHECKPOINTS = "run folder of a policy, or one of its .ckpt files; a second one drives beside it"
NOISE = "variances of noise on pixels from 0 to 1 (default: 0 0.02 0.05 0.1 0.2 on a page, 0 in a film)"
ATTENTION = "whether the page can show the policy's attention (default: yes)"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the policies").add_argument
    add("checkpoints", nargs="+", metavar="CHECKPOINT", help=CHECKPOINTS)
    add = parser.add_argument_group("what to make").add_argument
    add("--html", metavar="FILE", help="file to write the page to")
    add("--gif", metavar="FILE", help="file for an animated GIF of the first season and noise (needs Pillow)")
    add("--mp4", metavar="FILE", help="file for a film of the first season and noise (needs imageio-ffmpeg)")
    add("--clip", type=float, nargs=2, metavar=("FROM", "TO"), help="part of the drive in a film, s (default: all)")
    add("--attention", action=argparse.BooleanOptionalAction, default=True, help=ATTENTION)
    add = parser.add_argument_group("the road").add_argument
    add("--world", default="own", metavar="NAME", help="world to drive in: own, vista or carracing (default: own)")
    add("--season", metavar="NAME", help="summer or winter (default: both on a page, summer in a film)")
    add("--road", type=int, metavar="SEED", help=f"seed of road and appearance (default: {CLOSED_LOOP[0]}, unseen)")
    add("--length", type=float, default=400.0, metavar="M", help="length of the road (default: 400 m)")
    add("--steps", type=int, default=3000, metavar="N", help="maximum number of 1/30 s steps (default: 3000)")
    add("--trace", metavar="DIR", help="VISTA only: folder of a trace to use in place of a road from a seed")
    add = parser.add_argument_group("the noise").add_argument
    add("--noise", type=float, nargs="+", metavar="VARIANCE", help=NOISE)
    add("--seed", type=int, metavar="N", help="random seed of the noise (default: 0)")


def run(arguments: argparse.Namespace) -> int:
    if arguments.noise and not any(arguments.noise):
        refuse(arguments, ["seed"], "without --noise nothing is random")
    if arguments.trace:
        refuse(arguments, ["road", "season"], "--trace brings its own road and season")
    if not (arguments.gif or arguments.mp4):
        refuse(arguments, ["clip"], "without --gif or --mp4 there is no film")
    from lrcnet_paper.driving_replay import Targets, drive_page

    targets = Targets(arguments.html, arguments.gif, arguments.mp4, arguments.clip)
    driven = drive_page(
        arguments.checkpoints,
        targets,
        **{name: getattr(arguments, name) for name in ("world", "length", "steps", "trace")},
        seasons=(arguments.season,) if arguments.season else None,
        noises=arguments.noise,
        road=CLOSED_LOOP[0] if arguments.road is None else arguments.road,
        seed=arguments.seed or 0,
        with_attention=arguments.attention,
    )
    print("\n".join(driven.describe()))
    for file in targets.files:
        print(f"written to {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return 0
