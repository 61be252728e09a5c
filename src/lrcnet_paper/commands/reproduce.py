"""`lrcnet reproduce`: train what an artefact of the paper needs and is not there yet, then draw it beside the paper."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lrcnet_paper.training import Result, RunSpec

HELP = "regenerate tables and figures of the paper, ours beside the paper's"
EXAMPLE = "lrcnet reproduce classification --budget quick --out runs"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("artefact", nargs="*", help="names of tables and figures; none: everything the project knows")
    parser.add_argument(
        "--budget",
        default="quick",
        help="smoke (seconds), quick (minutes on two cores) or paper (the full protocol); default: quick",
    )
    parser.add_argument("--seeds", type=int, metavar="N", help="runs per number (default: the budget's own)")
    parser.add_argument("--engine", default="local", help="local (in this process) or ray (a cluster); default: local")
    parser.add_argument("--address", help="of a Ray cluster that is there already (default: one on this machine)")
    parser.add_argument("--threads", type=int, help="threads per run")
    parser.add_argument(
        "--out", default="runs", metavar="DIR", help="folder for runs, pictures and tables (default: runs)"
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the data files (default: LRCNET_DATA, then the cache)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="train and measure only runs whose TASK/VARIANT/MODEL matches, e.g. 'psmnist/*/lrcu-*', or with another "
        "rate or solver 'person/coarse+lr0.01/*'; repeatable",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        metavar="N",
        help="train at most so many epochs (or iterations); the tables say so, and a larger N carries on later",
    )
    parser.add_argument("--collect", metavar="DIR", help="also write one small JSON file per finished run to DIR")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    parser.add_argument(
        "--list", action="store_true", help="show the runs and whether they are done, and train nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    from lrcnet.errors import one_of
    from lrcnet_paper import artefacts as paper
    from lrcnet_paper.training.budgets import check_budget

    names = [one_of("artefact", name, paper.ARTEFACTS) for name in arguments.artefact] or list(paper.ARTEFACTS)
    budget = check_budget(arguments.budget)
    for flag in ("seeds", "epochs"):
        value = getattr(arguments, flag)
        if value is not None and value < 1:
            raise ValueError(f"--{flag} must be at least 1, but is {value}")
    planned = [spec for name in names for spec in paper.load(name).runs(budget, arguments.seeds)]
    chosen = _shortened(_matching(planned, arguments.only), arguments.epochs, arguments.out)
    if arguments.list:
        return _list(chosen, arguments.out)
    left = _train(_possible(chosen, arguments.out, arguments.data), arguments)
    _analyse(names, arguments)
    drawn = _draw(names, arguments)
    if left is not None:
        raise left
    return drawn


def _meant(run: RunSpec | Result, patterns: Sequence[str] | None) -> bool:
    from fnmatch import fnmatch

    from lrcnet_paper.training import Result

    # After a plus stands what was not the model's or the task's own; a pattern may ask for it or pass over it.
    label = run.variant if isinstance(run, Result) else run.label()
    names = [f"{run.task}/{variant}/{run.model}" for variant in {label, label.partition("+")[0]}]
    return not patterns or any(fnmatch(name, pattern) for name in names for pattern in patterns)


def _matching(specs: Sequence[RunSpec], patterns: Sequence[str] | None) -> list[RunSpec]:
    if not patterns:
        return list(dict.fromkeys(specs))
    kept = [spec for spec in specs if _meant(spec, patterns)]
    if not kept:
        known = sorted({f"{s.task}/{s.label()}/{s.model}" for s in specs})
        raise ValueError(
            f"--only {' '.join(patterns)} matches none of the runs: {', '.join(known) or 'there are none'}"
        )
    return kept


def _shortened(specs: Sequence[RunSpec], epochs: int | None, out: str) -> list[RunSpec]:
    """Each run cut to so many epochs or iterations, whichever it counts; one that is longer already stays so."""
    from pathlib import Path

    from lrcnet_paper import tasks
    from lrcnet_paper.results.reading import trained_so_far

    cut = []
    for spec in specs:
        recipe = tasks.find(spec.task, spec.variant).recipe
        field, own = ("epochs", recipe.epochs) if recipe.epochs is not None else ("iterations", recipe.iterations)
        planned = getattr(spec, field) or own or 1
        length = planned if epochs is None else min(epochs, planned)
        length = max(length, trained_so_far(Path(out) / spec.folder_name()))
        cut.append(spec if length == planned else spec.with_(**{field: length}))
    return cut


def _done(spec: RunSpec, out: str) -> bool:
    from pathlib import Path

    from lrcnet_paper.training.single_run import finished_result

    return finished_result(Path(out) / spec.folder_name(), spec) is not None


def _list(specs: Sequence[RunSpec], out: str) -> int:
    done = [_done(spec, out) for spec in specs]
    for spec, finished in zip(specs, done, strict=True):
        print(f"{'done' if finished else 'to do':<6} {spec.command()}")
    print(f"{sum(done)} of {len(specs)} runs done")
    return 0


def _possible(specs: Sequence[RunSpec], out: str, data: str | None) -> list[RunSpec]:
    """The runs that are done or whose files are here; of the others it says once why not."""
    from lrcnet_paper import tasks

    here: dict[tuple[str, str], bool] = {}
    kept = []
    for spec in specs:
        key = (spec.task, spec.variant)
        if _done(spec, out):
            kept.append(spec)
            continue
        if key not in here:
            try:
                tasks.find(*key).load("test", data)
                here[key] = True
            except FileNotFoundError as error:
                here[key] = False
                print(f"left out: {spec.task} {spec.variant}: {error}")
        if here[key]:
            kept.append(spec)
    return kept


def _train(specs: Sequence[RunSpec], arguments: argparse.Namespace) -> Exception | None:
    """Train what is missing; the error, if some had to be left out: what is there is drawn all the same."""
    from lrcnet_paper.results.roll_out import save_roll_outs
    from lrcnet_paper.training import run_all
    from lrcnet_paper.training.grid import RunsLeftError

    if not specs:
        return None
    counter = _Counter(len(set(specs)))
    left = None
    try:
        run_all(
            specs,
            arguments.out,
            data=arguments.data,
            engine=arguments.engine,
            progress=not arguments.quiet,
            threads=arguments.threads,
            address=arguments.address,
            on_result=counter.tell,
        )
    except RunsLeftError as error:
        left = error
    save_roll_outs(arguments.out)
    return left


def _analyse(names: Sequence[str], arguments: argparse.Namespace) -> None:
    """What artefacts measure on trained networks, where it has not been measured yet."""
    from pathlib import Path

    from lrcnet_paper.results.analysis import analyse_all

    if Path(arguments.out).is_dir():
        analyse_all(
            names,
            arguments.out,
            only=lambda result: _meant(result, arguments.only),
            tell=lambda line: print(f"measuring {line}", flush=True),
        )


class _Counter:
    """Says after each run what came out, and roughly how long the rest will take."""

    def __init__(self, total: int) -> None:
        import time

        self.total, self.seen, self.trained = total, 0, 0
        self.clock = time.monotonic
        self.started = self.last = self.clock()

    def tell(self, spec: RunSpec, result: Result) -> None:
        from lrcnet_paper import tasks

        self.seen += 1
        now = self.clock()
        # A result that was there already comes at once; the others are what a run takes.
        self.trained += now - self.last > 0.05
        self.last = now
        metric = tasks.find(spec.task, spec.variant).metric
        value = f"{metric} {result.metrics[metric]:.4g}" if metric in result.metrics else result.status
        left = (self.total - self.seen) * (now - self.started) / self.trained if self.trained else 0.0
        rest = f"; about {_duration(left)} left" if left > 1 else ""
        name = f"{spec.task} {spec.label()} {spec.model} seed {spec.seed}"
        print(f"[{self.seen}/{self.total}] {name}: {value}{rest}", flush=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _draw(names: Sequence[str], arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from lrcnet.pages import tables
    from lrcnet_paper import report
    from lrcnet_paper.report.assemble import claims_table
    from lrcnet_paper.results.collected import collect
    from lrcnet_paper.results.reading import read_runs

    out = Path(arguments.out)
    runs = read_runs(out) if out.is_dir() else []
    for section in report.assemble(runs, names):
        rendered = section.rendered
        shown = [*([claims_table(rendered.claims)] if rendered.claims else []), *rendered.tables]
        print(f"\n{section.title}\n{'=' * len(section.title)}")
        for table in shown:
            print(f"\n{tables.to_text(table)}")
        for reason in rendered.skipped:
            print(f"\nnot drawn: {reason}")
        written = report.write_folder(section, out / "artefacts")
        print(f"\n{len(written)} files in {out / 'artefacts' / section.name}")
    if arguments.collect:
        files = collect(runs, arguments.collect)
        print(f"\n{len(files)} new files in {arguments.collect}")
    print(f"\nlrcnet report {arguments.out} --html report.html  makes one page of it")
    return 0
