"""`lrcnet demo`: an LRC and a Neural ODE learn two dynamical systems, beside the paper's numbers, with a picture."""

import argparse

HELP = "train an LRC and a Neural ODE on two dynamical systems, compare with the paper, draw the trajectories"
EXAMPLE = "lrcnet demo --out demo"

SYSTEMS = ("spiral", "lotka-volterra-asymptotic")
MODELS = ("lrc-s", "neural-ode")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="demo", metavar="DIR", help="folder for runs and picture (default: demo)")
    parser.add_argument("--seed", type=int, default=0, help="of initial weights and training windows (default: 0)")
    parser.add_argument("--iterations", type=int, default=1000, help="training steps of each model (default: 1000)")


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from lrcnet_paper import training
    from lrcnet_paper.demo import draw, table
    from lrcnet_paper.results.reading import read_runs
    from lrcnet_paper.results.roll_out import save_roll_outs

    out = Path(arguments.out)
    specs = [
        training.RunSpec("neural-ode", system, model, seed=arguments.seed, iterations=arguments.iterations)
        for system in SYSTEMS
        for model in MODELS
    ]
    for spec in specs:
        print(f"training {spec.model} on {spec.variant}, {arguments.iterations} iterations", flush=True)
        training.run(spec, out)
    save_roll_outs(out)
    wanted = {(spec.variant, spec.model): spec for spec in specs}
    runs = {
        (run.result.variant, run.result.model): run
        for run in read_runs(out)
        if run.result.seed == arguments.seed and run.result.epochs == arguments.iterations
    }
    runs = {key: runs[key] for key in wanted}
    print("\n" + table(runs))
    picture = out / "trajectories.png"
    draw(runs).savefig(picture, dpi=150)
    print(f"\nThe trajectories are in {picture}.")
    return 0
