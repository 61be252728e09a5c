"""Table: accuracy of LSTM, GRU, MGU and both LRCUs on person activity, IMDB and permuted sequential MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lrcnet import tasks
from lrcnet.paper import palette
from lrcnet.paper.artefact import Cell, Picture, Rendered, Table, check_budget
from lrcnet.paper.classification_claims import CLAIMED, accuracy, conditions, judged, whole
from lrcnet.paper.classification_figures import draw_accuracies, draw_learning_curves, draw_rates
from lrcnet.paper.classification_rates import Rate, rate_claims, rate_table, searched
from lrcnet.paper.classification_runs import MODELS, SOLVER_CHANGES, TASKS, TITLES, planned_runs
from lrcnet.paper.curves import Dot
from lrcnet.paper.estimate import Estimate
from lrcnet.paper.groups import Group, grouped
from lrcnet.paper.verdict import Verdict, judge_number

if TYPE_CHECKING:
    from lrcnet.paper.finished import Finished
    from lrcnet.training.spec import RunSpec

TITLE = "LRCUs on classification benchmarks"


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Five models on three tasks; of person activity each variant, other rates, and other solvers on irregular data."""
    return planned_runs(check_budget(budget), seeds)


def render(runs: Sequence[Finished]) -> Rendered:
    """One table per task, tables of solvers and rates, claims, learning curves."""
    found = {task: _shown(grouped(runs, task)) for task in TASKS}
    rates = searched(found["person"])
    pictures, skipped = _pictures(found, rates)
    return Rendered(
        tables=[
            *(_table(task, [g for g in groups if not g.change]) for task, groups in found.items()),
            *_solver_tables(found["person"]),
            *([rate_table(rates)] if rates else []),
        ],
        pictures=pictures,
        claims=[
            *(claim for task, groups in found.items() for claim in judged(task, groups)),
            *rate_claims(rates),
        ],
        skipped=skipped,
    )


def _shown(groups: Sequence[Group]) -> list[Group]:
    """The groups of the longest budget of each variant: shorter ones would only stand in the way."""
    first: dict[str, str] = {}
    for group in groups:
        first.setdefault(group.variant, group.budget)
    return [group for group in groups if group.budget == first[group.variant]]


def _order(group: Group) -> tuple[int, int]:
    place = MODELS.index(group.model) if group.model in MODELS else len(MODELS)
    return place, -group.epochs


def _table(task: str, groups: Sequence[Group]) -> Table:
    claimed: Mapping[str, Estimate] = CLAIMED["accuracy"][task]
    rows: list[tuple[Cell, ...]] = []
    for variant in dict.fromkeys(group.variant for group in groups):
        for group in sorted((g for g in groups if g.variant == variant and g.model in claimed), key=_order):
            number = accuracy(group)
            verdict = judge_number(claimed[group.model], number, larger_is_better=True, under=conditions(group))
            rows.append(
                (
                    variant,
                    palette.look(group.model).label,
                    claimed[group.model],
                    number or "NaN",
                    len(group.runs),
                    verdict if group.finished else Verdict("not reached", ("every run diverged",)),
                    f"{group.epochs} of {whole(group)}",
                    group.budget_label,
                    group.seconds_per_epoch(),
                    group.total_seconds() / 60,
                    group.parameters,
                )
            )
    if not rows:
        rows = [("–", palette.look(model).label, claimed[model], *[None] * 8) for model in MODELS]
    return Table(
        task,
        f"{TITLES[task]}: test accuracy (%)",
        (
            "variant",
            "model",
            "paper",
            "ours",
            "seeds",
            "verdict",
            "epochs",
            "budget",
            "s per epoch",
            "total (min)",
            "parameters",
        ),
        rows,
        _table_note(task, groups),
    )


_GRU = "Our GRU is torch's, which applies the reset gate after the matrix product; the paper's applies it before."


def _table_note(task: str, groups: Sequence[Group]) -> str:
    variants = dict.fromkeys(group.variant for group in groups)
    said = [f"{variant}: {tasks.find(task, variant).notes}." for variant in variants]
    reported = {"last": "of the last epoch", "best-validation": "of the epoch of best validation"}
    rule = "; ".join(
        dict.fromkeys(f"accuracy {reported[tasks.find(task, v).recipe.reported]}" for v in variants or (None,))
    )
    return " ".join([*said, f"{rule[0].upper()}{rule[1:]}. Times are one run's, training only.", _GRU])


def _solver_tables(groups: Sequence[Group]) -> list[Table]:
    """What a better solver buys on irregular data: LRC-S by solver, LRCU-S above them; none where nobody tried."""
    variants = {group.variant for group in groups if group.change in SOLVER_CHANGES}
    rows: list[tuple[Cell, ...]] = [
        (
            group.variant,
            palette.look(group.model).label,
            group.change or "euler-1 (its own)",
            accuracy(group) or "NaN",
            len(group.runs),
            f"{group.epochs} of {whole(group)}",
            group.budget_label,
            group.seconds_per_epoch(),
        )
        for group in sorted(groups, key=lambda g: (g.variant, g.model != "lrcu-s", g.change))
        if group.variant in variants
        and (group.change in SOLVER_CHANGES or (group.model == "lrcu-s" and not group.change))
    ]
    if not rows:
        return []
    table = Table(
        "solvers",
        "Person activity: what a better solver buys on irregular data, test accuracy (%)",
        ("variant", "model", "solver and steps", "ours", "seeds", "epochs", "budget", "s per epoch"),
        rows,
        "Not in the paper, which says that more expensive solvers can be used for irregular data. Readings out of "
        "order (negative dt) take no time under the solvers other than explicit Euler.",
    )
    return [table]


def _pictures(found: Mapping[str, Sequence[Group]], rates: Sequence[Rate]) -> tuple[list[Picture], list[str]]:
    panels = {}
    for task, groups in found.items():
        for variant in dict.fromkeys(group.variant for group in groups):
            members = sorted((g for g in groups if g.variant == variant and not g.change), key=_order)
            panels[task, variant] = members
    dots = {
        f"{TITLES[task]}, {variant}": [
            Dot(
                g.model,
                CLAIMED["accuracy"][task].get(g.model),
                accuracy(g),
                f"{palette.look(g.model).label}, {g.epochs} ep.",
            )
            for g in groups
        ]
        for (task, variant), groups in panels.items()
        if any(accuracy(g) for g in groups)
    }
    pictures, skipped = [], []
    if dots:
        pictures.append(
            Picture(
                "accuracy",
                "Test accuracy, mean ± standard deviation over seeds: the paper (hollow, grey) and ours (filled). "
                "Ours may be on other data or for fewer epochs (ep.), as labelled.",
                "One panel per task and variant; one line per model with two dots, the paper's accuracy and ours. The "
                "table has the same numbers.",
                draw_accuracies(dots),
            )
        )
    else:
        skipped.append("accuracy: no finished run")
    if rates:
        pictures.append(
            Picture(
                "rates",
                "Person activity by learning rate, mean ± standard deviation over seeds; models of one rate are drawn "
                "side by side. Ringed: the rate that a search by validation loss picks for that model.",
                "One panel per variant: test accuracy over the learning rate on a logarithmic axis, one line per "
                "model. The table has the same numbers.",
                draw_rates(rates),
            )
        )
    for (task, variant), groups in panels.items():
        if not any(run.history for group in groups for run in group.runs):
            skipped.append(f"learning curves of {task} ({variant}): no run has a metrics file")
            continue
        measured = "validation" if "validation" in tasks.find(task, variant).splits else "test"
        pictures.append(
            Picture(
                f"learning-curves-{task}-{variant}",
                f"{TITLES[task]}, {variant}: training loss and {measured} accuracy, mean over seeds, band from the "
                "worst to the best seed.",
                f"Two panels over epochs: training loss, which falls, and {measured} accuracy in percent, which "
                "rises, one line per model.",
                draw_learning_curves(groups, measured),
            )
        )
    return pictures, skipped
