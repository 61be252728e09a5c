"""`lrcnet demo`: an LRC and a Neural ODE learn two dynamical systems, beside the paper's numbers, with a figure."""

import argparse

HELP = "train an LRC and a Neural ODE on two dynamical systems, compare with the paper, draw the trajectories"
EXAMPLE = "lrcnet demo --out demo"
GROUP, STATUS = "the paper", "loading torch"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the runs").add_argument
    add("--seed", type=int, default=0, metavar="N", help="random seed for weights and training windows (default: 0)")
    add("--iterations", type=int, default=1000, metavar="N", help="training steps of each model (default: 1000)")
    add = parser.add_argument_group("files and output").add_argument
    add("--out", default="demo", metavar="DIR", help="folder of the runs and the figure (default: demo)")


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from lrcnet.progress import status
    from lrcnet_paper.demo import draw_trajectories, format_table, run_demo
    from lrcnet_paper.training import RunSpec

    def announce(spec: RunSpec) -> None:
        print(f"training {spec.model} on {spec.variant}, {spec.iterations} iterations", flush=True)
        status(f"training {spec.model} on {spec.variant}")

    runs = run_demo(arguments.out, seed=arguments.seed, iterations=arguments.iterations, on_start=announce)
    print("\n" + format_table(runs))
    picture = Path(arguments.out) / "trajectories.png"
    draw_trajectories(runs).savefig(picture, dpi=150)
    print(f"\nThe trajectories are in {picture}.")
    return 0
