"""`lrcnet drive`: lets a trained policy drive one car and writes a page that replays it."""

import argparse

HELP = "let a trained policy drive, and write one offline page that replays it: camera, steering, map, neurons"
EXAMPLE = "lrcnet drive runs/driving_own_lrcu-s_seed0 --world own --season winter --noise 0.1 --html drive.html"
# The first road of the closed-loop measurements: no recording has it.
ROAD = 5 * 10**7
LENGTH = 400.0
STEPS = 3000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a policy's run folder, or one of its .ckpt files")
    parser.add_argument("--html", metavar="FILE", required=True, help="where to write the page")
    parser.add_argument("--world", default="own", metavar="own|vista|carracing", help="where to drive (default: own)")
    parser.add_argument("--season", default="summer", metavar="summer|winter", help="default: summer")
    parser.add_argument(
        "--noise",
        type=float,
        default=0.0,
        metavar="VARIANCE",
        help="of Gaussian noise on pixels from 0 to 1 (default: 0; the paper has 0.1 and 0.2)",
    )
    parser.add_argument(
        "--road", type=int, default=ROAD, help=f"seed of road and look (default: {ROAD}, never trained on)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the noise (default: 0)")
    parser.add_argument(
        "--length", type=float, default=LENGTH, metavar="M", help=f"of the road (default: {LENGTH:g} m)"
    )
    parser.add_argument(
        "--steps", type=int, default=STEPS, metavar="N", help=f"of 1/30 s, after which it is over (default: {STEPS})"
    )
    parser.add_argument("--trace", metavar="DIR", help="VISTA only: a trace of your own instead of a road of ours")
    parser.add_argument(
        "--attention",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether the page can show where the policy looks (default: yes)",
    )


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from lrcnet.errors import one_of
    from lrcnet_paper.driving.worlds import WORLDS, make_world
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.report.drive_page import Setting, write_drive
    from lrcnet_paper.report.drive_pictures import pillow
    from lrcnet_paper.report.replay import record_drive
    from lrcnet_paper.results.provenance import provenance_of
    from lrcnet_paper.training.trained_network import load_trained

    # Everything that can be refused is, before the drive.
    one_of("--world", arguments.world, WORLDS)
    one_of("--season", arguments.season, ("summer", "winter"))
    if not arguments.noise >= 0:
        raise ValueError(f"--noise is a variance, so it must be at least 0, but is {arguments.noise:g}")
    if arguments.steps < 1:
        raise ValueError(f"--steps must be at least 1, but is {arguments.steps}")
    pillow()
    trained = load_trained(arguments.checkpoint)
    policy = trained.network
    if not isinstance(policy, Policy):
        raise ValueError(
            f"CHECKPOINT must be a driving policy, but this is {trained.spec.model} trained on {trained.spec.task}; "
            "train one with: lrcnet train driving"
        )
    provenance_of(trained)
    world = make_world(
        arguments.world,
        [arguments.road],
        season=arguments.season,
        length=arguments.length,
        traces=[arguments.trace] if arguments.trace else None,
    )
    replay = record_drive(
        policy,
        world,
        noise=arguments.noise,
        seed=arguments.seed,
        steps=arguments.steps,
        with_attention=arguments.attention,
    )
    setting = Setting(
        arguments.world,
        arguments.season,
        arguments.road,
        arguments.noise,
        arguments.seed,
        # Its name and not its path, which would tell about the machine.
        trace=Path(arguments.trace).resolve().name if arguments.trace else "",
    )
    page = write_drive(trained, replay, setting, Path(arguments.html))
    size = page.stat().st_size / 1e6
    print(f"{replay.ending}, {replay.seconds:.1f} s; written to {arguments.html} ({size:.1f} MB)")
    return 0
