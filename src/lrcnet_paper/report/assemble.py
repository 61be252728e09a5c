"""The content of a report: the rendered artefacts, and where and how their runs were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lrcnet.pages.content import Cell, Table
from lrcnet_paper import artefacts as paper
from lrcnet_paper.artefacts.artefact import Claim, Rendered
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.groups import group_runs
from lrcnet_paper.tasks import TASKS

WORDS = ("better", "reproduced", "not reached", "refuted", "open")


@dataclass(frozen=True)
class ArtefactSection:
    """An artefact with its content, as one section of a report."""

    name: str
    title: str
    rendered: Rendered


def assemble(runs: Sequence[FinishedRun], names: Sequence[str] | None = None) -> list[ArtefactSection]:
    """Render all artefacts or the named ones, in the order of `artefacts.ARTEFACTS`."""
    wanted = list(paper.ARTEFACTS) if names is None else [name for name in paper.ARTEFACTS if name in names]
    sections = []
    for name in wanted:
        artefact = paper.load(name)
        sections.append(ArtefactSection(name, artefact.title, artefact.render(runs)))
    return sections


def verdict_counts(sections: Sequence[ArtefactSection]) -> dict[str, int]:
    """Count the claims of each verdict, in the order of `WORDS`."""
    counted: Counter[str] = Counter(claim.verdict.word for section in sections for claim in section.rendered.claims)
    return {word: counted[word] for word in WORDS}


def claims_table(claims: Sequence[Claim]) -> Table:
    """Return the claims as a table."""
    return Table(
        "claims",
        "Claims",
        ("claim", "paper", "ours", "verdict"),
        [(claim.statement, claim.paper, claim.ours, claim.verdict) for claim in claims],
    )


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
