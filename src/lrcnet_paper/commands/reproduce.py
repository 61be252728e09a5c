"""`lrcnet reproduce`: train the missing runs of tables and figures, then draw them beside the paper's numbers."""

import argparse
from functools import partial
from typing import Any

from lrcnet.flags import refuse

HELP = "regenerate tables and figures of the paper, ours beside the paper's"
EXAMPLE = "lrcnet reproduce classification --budget quick --out runs"
GROUP, STATUS = "the paper", "looking for finished runs"

BUDGET = "smoke (seconds), quick (minutes on two cores), long (a day) or paper (weeks); default: quick"
ONLY = "pattern of the runs as TASK/VARIANT/MODEL, e.g. 'psmnist/*/lrcu-*' or 'person/coarse+lr0.01/*'; repeatable"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the runs").add_argument
    add("artefact", nargs="*", metavar="NAME", help="names of tables and figures (default: all)")
    add("--budget", default="quick", help=BUDGET)
    add("--seeds", type=int, metavar="N", help="number of seeds of each run (default: the budget's own)")
    add("--only", action="append", metavar="PATTERN", help=ONLY)
    add("--epochs", type=int, metavar="N", help="largest number of epochs (or iterations); a larger N continues later")
    add = parser.add_argument_group("machine").add_argument
    add("--engine", default="local", help="local (in this process) or ray (on a cluster) (default: local)")
    add("--address", help="address of a running Ray cluster (default: a new one on this machine)")
    add("--threads", type=int, help="threads per run (default: those of its first start, else chosen by the task)")
    add = parser.add_argument_group("files and output").add_argument
    add("--out", default="runs", metavar="DIR", help="folder for runs, pictures and tables (default: runs)")
    add("--data", metavar="DIR", help="folder of the data files (default: LRCNET_DATA, then the cache)")
    add("--collect", metavar="DIR", help="folder for one small JSON file per finished run")
    add("--list", action="store_true", help="list of the runs and whether they are done; nothing is trained")
    add("--quiet", action="store_true", help="no progress")
    add("--wide", action="store_true", help="all columns of the tables, even if the terminal is narrower")
    add("--json", metavar="FILE", help="file for the tables and claims as JSON")


def run(arguments: argparse.Namespace) -> int:
    from lrcnet_paper import reproduction
    from lrcnet_paper.reproduction.printing import print_outcome

    if arguments.engine != "ray":
        refuse(arguments, ["address"], "--engine is not ray")
    if arguments.list:
        refuse(arguments, ["threads", "data", "collect", "address", "quiet", "wide", "json"], "--list trains nothing")
    out, names = arguments.out, reproduction.check_names(arguments.artefact)
    choice = {"seeds": arguments.seeds, "epochs": arguments.epochs, "only": arguments.only}
    if arguments.list:
        specs = reproduction.plan_runs(names, arguments.budget, out, **choice)
        done = [reproduction.is_done(spec, out) for spec in specs]
        print("\n".join(f"{'done' if d else 'to do':<6} {s.command()}" for s, d in zip(specs, done, strict=True)))
        print(f"{sum(done)} of {len(specs)} runs done")
        return 0
    passed_on: Any = {name: getattr(arguments, name) for name in ("data", "engine", "address", "threads", "collect")}
    passed_on |= {"progress": not arguments.quiet, "on_line": partial(print, flush=True), **choice}
    outcome = reproduction.reproduce(names, arguments.budget, out, **passed_on)
    print_outcome(outcome, out, collect=arguments.collect, wide=arguments.wide, json=arguments.json)
    if outcome.left_out is not None:
        raise outcome.left_out
    return 0
