"""`lrcnet train`: train one run, or continue it where it was interrupted."""

import argparse
from typing import Any

HELP = "train one model on one task; the same command again resumes"
EXAMPLE = "lrcnet train person --variant coarse --model lrcu-s --seed 0 --epochs 100"
GROUP, STATUS = "the paper", "loading torch and the data"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the run").add_argument
    add("task", metavar="TASK", help="neural-ode, person, imdb, psmnist, driving, or a task of your own")
    add("--model", required=True, help="lrcu-s, lrcu-a, lrc-s, lrc-a, stc, ltc, lstm, gru, mgu, ctrnn, neural-ode, ...")
    add("--variant", help="variant of the task (default: its first one)")
    add("--solver", default="", help="solver and unfoldings, e.g. hybrid-6 (default: the model's own)")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="argument of the model, e.g. units=32")
    add("--seed", type=int, default=0, help="random seed for weights and sample order (default: 0)")
    add("--budget", default="custom", help="label of the result: smoke, quick, paper or custom (default: custom)")
    add = (group := parser.add_argument_group("training")).add_argument
    length = group.add_mutually_exclusive_group().add_argument
    length("--epochs", type=int, help="passes over the training split (default: the task's own number)")
    length("--iterations", type=int, help="training steps, for neural-ode (default: the task's own number)")
    add("--lr", type=float, help="learning rate (default: the task's own)")
    add("--search-lr", action="store_true", help="search over the rates 1e-4, 1e-3, 1e-2 by validation loss")
    add("--batch-size", type=int, help="samples per step and process (default: the task's own)")
    add("--clip", type=float, help="largest norm of the gradient (default: no clipping)")
    add("--schedule", help="schedule of the learning rate: constant or cosine (default: the task's own)")
    add("--samples", type=int, help="number of samples to take from each split, for a quick look (default: all)")
    add("--piece", type=int, help="length in steps of the pieces to train on (default: whole sequences)")
    add = parser.add_argument_group("files and output").add_argument
    add("--data", metavar="DIR", help="folder of files or recordings (default: LRCNET_DATA, then the cache)")
    add("--out", metavar="DIR", help="folder of the run (default: runs/NAME); with --search-lr the folder of all runs")
    add("--resume", action=argparse.BooleanOptionalAction, help="existing run: required, refused (default: continued)")
    for name in ("tensorboard", "wandb", "mlflow"):
        add(f"--{name}", action="store_true", help=f"logging to {name} beside metrics.csv")
    add("--quiet", action="store_true", help="no progress bar")
    add = parser.add_argument_group("machine").add_argument
    add("--devices", type=int, default=1, help="processes or GPUs per node (default: 1)")
    add("--nodes", type=int, default=1, help="machines, each started with this command (default: 1)")
    add("--threads", type=int, help="threads per process (default: those of the first start, else chosen by the task)")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet_paper.training import train
    from lrcnet_paper.training.loggers import LOGGERS
    from lrcnet_paper.training.spec import FLAGS, parse_option
    from lrcnet_paper.training.summary import format_rate, format_run

    given = vars(arguments)
    # By flag, so that this parser and the command line that a run writes down cannot drift apart.
    settings = {field: given[flag.removeprefix("--").replace("-", "_")] for flag, field in FLAGS.items()}
    settings |= {name: given[name] for name in ("seed", "variant", "out", "resume", "data", "threads")}
    settings |= {"loggers": tuple(name for name in LOGGERS if given[name]), "search_rate": arguments.search_lr}
    settings |= {"options": dict(map(parse_option, arguments.option)), "progress": not arguments.quiet}
    place: list[Any] = []
    settings |= {"on_rate": lambda *rate: print(format_rate(*rate)), "on_folder": lambda *one: place.extend(one)}
    result, (folder, before) = train(arguments.task, arguments.model, **settings), place
    print(format_run(result, folder, before, arguments.task if arguments.task.endswith(".py") else None))
    return 0
