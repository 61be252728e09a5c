"""`lrcnet train`: fit one run, or go on with it where it was interrupted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lrcnet_paper.training import Result, RunSpec

HELP = "train one model on one task; the same command again resumes"
EXAMPLE = "lrcnet train person --variant coarse --model lrcu-s --seed 0 --epochs 100"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="neural-ode, person, imdb, psmnist or driving")
    parser.add_argument("--model", required=True, help="lrcu-s, lrcu-a, lrc-s, lrc-a, stc, ltc, lstm, gru, mgu, ...")
    parser.add_argument("--variant", help="variant of the task; its first one if not given")
    parser.add_argument("--solver", default="", help="solver and unfoldings, e.g. hybrid-6 (default: the model's own)")
    parser.add_argument("--seed", type=int, default=0, help="of initial weights and order of samples (default: 0)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="the task's own number if not given")
    length.add_argument("--iterations", type=int, help="for neural-ode, which counts these")
    parser.add_argument("--lr", type=float, help="learning rate; the task's own if not given")
    parser.add_argument("--batch-size", type=int, help="samples per step and process; the task's own if not given")
    parser.add_argument("--clip", type=float, help="largest norm of the gradient (default: no clipping)")
    parser.add_argument("--schedule", help="of the learning rate: constant or cosine (default: the task's own)")
    parser.add_argument("--budget", default="custom", help="label of the result: smoke, quick, paper or custom")
    parser.add_argument("--samples", type=int, help="take only so many samples of each split, for a quick look")
    parser.add_argument("--piece", type=int, help="train on pieces of so many steps instead of whole sequences")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="argument of the model, e.g. units=32",
    )
    parser.add_argument("--search-lr", action="store_true", help="try 1e-4, 1e-3, 1e-2; keep the least validation loss")
    parser.add_argument("--data", help="folder of the task's files (default: LRCNET_DATA, then the cache)")
    parser.add_argument("--out", help="the run's folder (default: runs/NAME); with --search-lr that of all runs")
    parser.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        help="insist on, or refuse, going on with a run that is there (default: go on if there is one)",
    )
    parser.add_argument("--devices", type=int, default=1, help="processes or GPUs per node (default: 1)")
    parser.add_argument("--nodes", type=int, default=1, help="machines, each started with this command (default: 1)")
    parser.add_argument("--threads", type=int, help="threads per process")
    for name in ("tensorboard", "wandb", "mlflow"):
        parser.add_argument(f"--{name}", action="store_true", help=f"log to {name} beside metrics.csv")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from lrcnet_paper.training.loggers import LOGGERS
    from lrcnet_paper.training.single_run import run_in
    from lrcnet_paper.training.rate_search import search_learning_rate

    spec = _spec(arguments)
    loggers = tuple(name for name in LOGGERS if getattr(arguments, name))
    if arguments.search_lr:
        if arguments.lr is not None:
            raise ValueError("--search-lr tries its own rates, but --lr was given; leave one of them out")
        if arguments.resume is not None:
            flag = "--resume" if arguments.resume else "--no-resume"
            raise ValueError(f"--search-lr goes on with the runs that are there, but {flag} was given; leave it out")
        _, result = search_learning_rate(
            spec,
            arguments.out or "runs",
            arguments.data,
            progress=not arguments.quiet,
            threads=arguments.threads,
            loggers=loggers,
            on_result=_show_rate,
        )
    else:
        place = Path(arguments.out or Path("runs") / spec.folder_name())
        _check_resume(place, arguments.resume)
        result = run_in(
            place,
            spec,
            data=arguments.data,
            progress=not arguments.quiet,
            threads=arguments.threads,
            loggers=loggers,
        )
    _show(result)
    return 0


def _spec(arguments: argparse.Namespace) -> RunSpec:
    from lrcnet_paper.tasks import find
    from lrcnet_paper.training import RunSpec
    from lrcnet_paper.training.spec import FLAGS, parse_option

    # By flag, so that a run's own command line and this parser cannot drift apart.
    fields = {field: getattr(arguments, flag.removeprefix("--").replace("-", "_")) for flag, field in FLAGS.items()}
    task = find(arguments.task, arguments.variant)
    fields["schedule"] = fields["schedule"] or task.recipe.schedule
    return RunSpec(
        task=task.name,
        variant=task.variant,
        model=arguments.model,
        seed=arguments.seed,
        options=dict(parse_option(text) for text in arguments.option),
        **fields,
    )


def _check_resume(place: object, wanted: bool | None) -> None:
    from pathlib import Path

    from lrcnet_paper.training.run_folder import read_spec

    there = read_spec(Path(str(place))) is not None
    if wanted is True and not there:
        raise ValueError(f"--resume needs a run to go on with, but there is none in {place}; leave --resume out")
    if wanted is False and there:
        raise ValueError(f"--no-resume was given, but there is a run in {place}; choose another folder with --out")


def _show_rate(rate: float, result: Result | None) -> None:
    found = "diverged" if result is None else f"validation loss {result.metrics['validation_loss']:.4f}"
    print(f"learning rate {rate:g}: {found}")


def _show(result: Result) -> None:
    rows = {
        "task": f"{result.task} {result.spec.label()}",
        "model": f"{result.model}, {result.parameters:,} parameters, seed {result.seed}",
        "trained": f"{result.epochs} {result.unit}s, {result.seconds_per_epoch:.4g} s each; reported: {result.best_epoch}",
        **{name: f"{value:.6g}" for name, value in result.metrics.items()},
    }
    width = max(map(len, rows))
    for name, text in rows.items():
        print(f"{name:<{width}}  {text}")
