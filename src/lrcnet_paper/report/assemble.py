"""The content of a report: the rendered artefacts, and where and how their runs were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lrcnet.pages.content import Cell, Picture, Table
from lrcnet.progress import track
from lrcnet_paper import artefacts as paper
from lrcnet_paper.artefacts.artefact import Part, Rendered
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.tasks import TASKS
from lrcnet_paper.training.protocols import reasons_out_of_date


@dataclass(frozen=True)
class ArtefactSection:
    """An artefact with its content, as one section of a report.

    Attributes:
        name: the artefact's name.
        title: its heading.
        rendered: its content.
        says: the statement of the paper that it supports; "" for a drawing or a part of the set-up.
        part: the part of a report that it belongs to.
    """

    name: str
    title: str
    rendered: Rendered
    says: str = ""
    part: Part = "paper"


def assemble(runs: Sequence[FinishedRun], names: Sequence[str] | None = None) -> list[ArtefactSection]:
    """Render all artefacts or the named ones, in the order of `artefacts.ARTEFACTS`.

    Runs of an older protocol are not the authors' experiment and are left out; `outdated_table` lists them.
    """
    current = current_runs(runs)
    wanted = list(paper.ARTEFACTS) if names is None else [name for name in paper.ARTEFACTS if name in names]
    sections = []
    for name in track(wanted, "drawing", unit="artefact"):
        artefact = paper.load(name)
        content = artefact.render(current)
        sections.append(ArtefactSection(name, artefact.title, content, artefact.says, artefact.part))
    return sections


def current_runs(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """Return the runs that follow today's protocol."""
    return [run for run in runs if not _reasons(run)]


def further_tables(rendered: Rendered) -> list[Table]:
    """Return the tables among the sensitivities."""
    return [block for block in rendered.sensitivities if isinstance(block, Table)]


def further_pictures(rendered: Rendered) -> list[Picture]:
    """Return the pictures among the sensitivities."""
    return [block for block in rendered.sensitivities if isinstance(block, Picture)]


def outdated_table(runs: Sequence[FinishedRun]) -> Table | None:
    """Return a table of the runs that are left out because the experiment has changed; None if there are none."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for run in runs:
        for reason in _reasons(run):
            counts[run.result.task, run.result.model, reason] += 1
    if not counts:
        return None
    rows = [(task, model, count, f"{reason}.") for (task, model, reason), count in sorted(counts.items())]
    note = "These runs stay readable as evidence of the earlier set-up. No table, picture or verdict uses them."
    return Table("outdated", "Runs of an earlier set-up", ("task", "model", "runs", "difference"), rows, note)


def _reasons(run: FinishedRun) -> list[str]:
    spec = run.result.spec
    return reasons_out_of_date(spec.task, spec.model, spec.protocol)


def own_task_tables(runs: Sequence[FinishedRun]) -> list[Table]:
    """Return a table for each task that is not the paper's: one row per model, averaged over its seeds."""
    result = []
    for name in dict.fromkeys(run.result.task for run in runs if run.result.task not in TASKS):
        groups = group_runs(runs, name)
        metric = next(iter(groups[0].runs[0].result.metrics), "")
        rows = [
            (f"{group.model} ({group.budget_label})", group.epochs, group.parameters, group.metric(metric))
            for group in groups
        ]
        columns = ("model", "epochs", "parameters", metric or "metric")
        result.append(Table(f"own-{name}", f"Your task {name}", columns, rows))
    return result


def environment_tables(runs: Sequence[FinishedRun]) -> list[Table]:
    """Return tables of the machines and the versions, with the number of runs on each."""
    machines: Counter[tuple[Cell, ...]] = Counter()
    versions: Counter[str] = Counter()
    for run in runs:
        machine = run.result.machine
        machines[tuple(machine.get(name, "–") for name in ("system", "processor", "cores", "threads"))] += 1
        versions[", ".join(f"{name} {version}" for name, version in run.result.versions.items())] += 1
    return [
        Table(
            "machines",
            "Machines",
            ("system", "processor", "cores", "threads", "runs"),
            [(*row, count) for row, count in machines.most_common()],
        ),
        Table("versions", "Versions", ("versions", "runs"), list(versions.most_common())),
    ]


def commands(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the command of each run, without duplicates."""
    return list(dict.fromkeys(run.result.command for run in runs))


EVERYTHING = (
    "Everything at once, each run at the full length of its budget (shorter runs have --epochs in their command):"
)


def reproduce_commands(runs: Sequence[FinishedRun]) -> list[str]:
    """Return the commands that repeat all runs: one per budget, the budget with most runs first."""
    budgets = Counter(run.result.budget for run in runs if run.result.budget != "custom")
    return [f"lrcnet reproduce --budget {budget}" for budget, _ in budgets.most_common()]
