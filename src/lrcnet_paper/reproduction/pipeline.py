"""`reproduce` trains, measures and draws artefacts of the paper; `write_report` makes pages of finished runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrcnet.errors import check_target, one_of
from lrcnet.progress import is_drawn, status, track
from lrcnet_paper import artefacts, report
from lrcnet_paper.report import ArtefactSection
from lrcnet_paper.reproduction.costs import estimate_costs
from lrcnet_paper.reproduction.countdown import Countdown
from lrcnet_paper.reproduction.grid_table import GridTable
from lrcnet_paper.reproduction.plan import is_done, matches, plan_runs, split_by_data
from lrcnet_paper.results.analysis import analyse_all
from lrcnet_paper.results.collected import collect as collect_runs
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.reading import read_runs
from lrcnet_paper.results.roll_out import save_roll_outs
from lrcnet_paper.training.grid import RunsLeftError, run_all
from lrcnet_paper.training.spec import RunSpec

AnyPath = str | os.PathLike[str]
OnLine = Callable[[str], None]


@dataclass(frozen=True)
class Reproduction:
    """The outcome of `reproduce`.

    Attributes:
        runs: every finished run in the folder.
        sections: the rendered artefacts, each with its tables, pictures and claims.
        files: name of an artefact -> the files written for it.
        collected: the collected files that were written or changed.
        missing: (task, variant) -> why its runs were skipped: the files it lacks and how to get them.
        left_out: the error that names runs which could not be trained now, None if all were.
    """

    runs: Sequence[FinishedRun]
    sections: Sequence[ArtefactSection]
    files: Mapping[str, Sequence[Path]]
    collected: Sequence[Path]
    missing: Mapping[tuple[str, str], str]
    left_out: RunsLeftError | None


def reproduce(
    names: Sequence[str] | None = None,
    budget: str = "quick",
    out: AnyPath = "runs",
    *,
    seeds: int | None = None,
    epochs: int | None = None,
    only: Sequence[str] | None = None,
    data: AnyPath | None = None,
    engine: str = "local",
    address: str | None = None,
    threads: int | None = None,
    progress: bool = True,
    collect: AnyPath | None = None,
    on_line: OnLine = lambda line: None,
) -> Reproduction:
    """Train the runs that artefacts of the paper need and that are not finished yet, measure on them, and draw.

    Args:
        names: names of artefacts, as in `lrcnet_paper.artefacts.ARTEFACTS`; None takes all.
        budget: smoke (seconds), quick (minutes on two cores), long (a day) or paper (the full protocol).
        out: folder of the runs; each artefact is drawn to `OUT/artefacts/NAME`.
        seeds, epochs, only: which runs; see `plan_runs`.
        data: folder of the data files; None looks where `LRCNET_DATA` points, then in the cache.
        engine: "local" (in this process) or "ray" (a cluster).
        address: address of a running Ray cluster; None starts one on this machine.
        threads: threads per run.
        progress: whether to show progress bars.
        collect: folder to which one small JSON file per finished run is written as well.
        on_line: called with each line about the progress, such as `print`.

    Raises:
        ValueError: for an unknown name, budget or engine, or patterns that match no run.

    Example:
        >>> from tempfile import mkdtemp
        >>> outcome = reproduce(["elastance"], "smoke", mkdtemp())
        >>> [claim.verdict.word for claim in outcome.sections[0].rendered.claims]
        ['agrees', 'agrees']
    """
    chosen_names = check_names(names)
    planned = plan_runs(chosen_names, budget, out, seeds=seeds, epochs=epochs, only=only)
    specs, missing = split_by_data(planned, out, data)
    for (task, variant), reason in missing.items():
        on_line(f"left out: {task} {variant}: {reason}")
    left_out = None
    if specs:
        if budget != "smoke":
            report_costs([spec for spec in specs if not is_done(spec, out)], data, on_line, threads)
        table = GridTable(specs) if progress and is_drawn() else None
        choices: dict[str, Any] = {"engine": engine, "progress": progress, "threads": threads, "address": address}
        try:
            ended = table.add if table else Countdown(len(specs), on_line).add
            run_all(specs, out, data=data, on_result=ended, **choices)
        except RunsLeftError as error:
            left_out = error
        if table:
            table.close()
        save_roll_outs(out)
    measure(chosen_names, out, only=only, on_line=on_line)
    runs = read_runs(out) if Path(out).is_dir() else []
    sections = report.assemble(runs, chosen_names)
    folder = Path(out) / "artefacts"
    files = {one.name: report.write_folder(one, folder) for one in track(sections, "writing", unit="artefact")}
    collected = [] if collect is None else collect_runs(runs, collect)
    return Reproduction(runs, sections, files, collected, missing, left_out)


def report_costs(specs: Sequence[RunSpec], data: AnyPath | None, on_line: OnLine, threads: int | None = None) -> None:
    """Report the core-hours of runs before they start, each kind of run and the sum."""
    costs = []
    for cost in estimate_costs(specs, data, threads):
        on_line(f"cost of {cost}")
        costs.append(cost)
    if costs:
        hours = sum(cost.hours for cost in costs)
        on_line(f"cost of all {sum(cost.runs for cost in costs)} runs: about {hours:.2g} core-hours of training")


def measure(
    names: Sequence[str], out: AnyPath, *, only: Sequence[str] | None = None, on_line: OnLine = lambda line: None
) -> int:
    """Make the missing measurements of artefacts on the finished runs in a folder, and return their number."""
    loaded = {name: artefacts.load(name) for name in names}
    return analyse_all(
        {name: one for name, one in loaded.items() if isinstance(one, artefacts.MeasuringArtefact)},
        out,
        only=lambda result: matches(result.spec, only),
        report=lambda line: on_line(f"measuring {line}"),
    )


def write_report(
    runs: Sequence[FinishedRun],
    names: Sequence[str] | None = None,
    *,
    html: AnyPath | None = None,
    markdown: AnyPath | None = None,
) -> tuple[list[ArtefactSection], list[Path]]:
    """Write one page of finished runs, as HTML, as Markdown, or both.

    Args:
        runs: finished runs, such as `read_runs(folder)` returns.
        names: names of artefacts; None takes all.
        html: file of the self-contained page.
        markdown: file of the Markdown page; its pictures go into a folder of the same name.

    Returns:
        The sections of the page, and the files of the pages.
    """
    chosen_names = check_names(names)
    # Drawing takes most of a minute.
    for target in (html, markdown):
        if target is not None:
            check_target(target)
    if markdown is not None:
        report.check_page(markdown)
    sections = report.assemble(runs, chosen_names)
    status("writing the page")
    pages = [] if html is None else [report.write_html(sections, runs, html)]
    if markdown is not None:
        pages.append(report.write_markdown(sections, runs, markdown))
    return sections, pages


def check_names(names: Sequence[str] | None) -> list[str]:
    """Return the names of artefacts, all of them if none is given; an unknown name is an error."""
    return [one_of("artefact", name, artefacts.ARTEFACTS) for name in names or artefacts.ARTEFACTS]
