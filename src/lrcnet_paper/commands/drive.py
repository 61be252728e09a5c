"""`lrcnet drive`: let a trained policy drive one car, and write a page that replays the drive."""

import argparse

from lrcnet.flags import refuse
from lrcnet_paper.road_seeds import CLOSED_LOOP

HELP = "let a trained policy drive, and write one offline page that replays it: camera, steering, map, neurons"
EXAMPLE = "lrcnet drive runs/driving_own_lrcu-s_seed0 --world own --season winter --noise 0.1 --html drive.html"
GROUP, STATUS = "trained networks", "loading the policy"


def configure(parser: argparse.ArgumentParser) -> None:
    add, road = parser.add_argument, CLOSED_LOOP[0]
    add("checkpoint", metavar="CHECKPOINT", help="run folder of a policy, or one of its .ckpt files")
    add("--html", metavar="FILE", required=True, help="file to write the page to")
    add("--world", default="own", metavar="own|vista|carracing", help="world to drive in (default: own)")
    add("--season", metavar="summer|winter", help="season of the world (default: summer)")
    add(
        "--noise",
        type=float,
        default=0.0,
        metavar="VARIANCE",
        help="variance of Gaussian noise on pixels from 0 to 1 (default: 0; the paper has 0.1 and 0.2)",
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
    if not arguments.noise:
        refuse(arguments, ["seed"], "without --noise nothing is random")
    if arguments.trace:
        refuse(arguments, ["road", "season"], "--trace brings its own road and season")
    from lrcnet_paper.driving_replay import drive_page

    replay, page = drive_page(
        arguments.checkpoint,
        arguments.html,
        world=arguments.world,
        season=arguments.season or "summer",
        noise=arguments.noise,
        road=CLOSED_LOOP[0] if arguments.road is None else arguments.road,
        seed=arguments.seed or 0,
        length=arguments.length,
        steps=arguments.steps,
        trace=arguments.trace or None,
        with_attention=arguments.attention,
    )
    print(f"{replay.ending}, {replay.seconds:.1f} s; written to {page} ({page.stat().st_size / 1e6:.1f} MB)")
    return 0
