"""Table: accuracy of LSTM, GRU, MGU and both LRCUs on person activity, IMDB and permuted sequential MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table, minus_signs
from lrcnet_paper import tasks
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.artefacts.classification.claims import (
    CLAIMED,
    accuracy,
    accuracy_after,
    clear_differences,
    judge_task,
    primary_variant,
    protocol_epochs,
)
from lrcnet_paper.artefacts.classification.defaults import defaults_tables
from lrcnet_paper.artefacts.classification.figures import draw_accuracies, draw_learning_curves, draw_rates
from lrcnet_paper.artefacts.classification.rates import RateTrial, describe_searches, rate_table, search_rates
from lrcnet_paper.artefacts.classification.runs import MODELS, TASKS, TITLES, has_other_solver, plan_runs
from lrcnet_paper.artefacts.curves import Dot, mean_curve
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group, group_runs
from lrcnet_paper.results.interval import paired_interval
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "LRCUs on classification benchmarks"
SAYS = "LRCUs classify sequences more accurately than LSTM, GRU and MGU."


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan five models on three tasks, and other rates and solvers on person activity."""
    return plan_runs(check_budget(budget), seeds)


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate each task on its primary variant, judge the claims, and add other data, solvers, rates and models."""
    groups_by_task = {task: _longest_budgets(group_runs(runs, task)) for task in TASKS}
    rates = search_rates(groups_by_task["person"])
    pictures, skipped = _pictures(groups_by_task, rates)
    primary = {task: primary_variant(task, groups) for task, groups in groups_by_task.items()}
    plain = {task: [g for g in groups if g.follows_recipe] for task, groups in groups_by_task.items()}
    others = [g for g in plain["person"] if g.variant != primary["person"]]
    return Rendered(
        tables=[_primary_table(task, primary[task], groups) for task, groups in plain.items()],
        pictures=pictures[:1],
        claims=[claim for task, groups in groups_by_task.items() for claim in judge_task(task, groups)],
        skipped=skipped,
        differences=_differences(primary),
        sensitivities=[
            *([_table("person", others, name="person-other-data")] if others else []),
            *defaults_tables(groups_by_task),
            *_solver_tables(groups_by_task["person"]),
            *([rate_table(rates)] if rates else []),
            *pictures[1:],
        ],
    )


def _differences(primary: Mapping[str, str]) -> list[str]:
    """List the differences from the protocol of the primary variants."""
    data = [
        f"{TITLES[task]}, variant {variant}: {tasks.find(task, variant).notes}."
        for task, variant in primary.items()
        # Permuted psMNIST is the paper's own task.
        if variant != "permuted"
    ]
    return [
        *data,
        "IMDB and psMNIST are trained for fewer epochs than in the paper; the table gives their number.",
        "Keras counts a review as positive above a logit of 0.5, we above 0.",
    ]


def _longest_budgets(groups: Sequence[Group]) -> list[Group]:
    """Keep the groups of each variant's longest budget; the shorter budgets add nothing."""
    longest: dict[str, str] = {}
    for group in groups:
        longest.setdefault(group.variant, group.budget)
    return [group for group in groups if group.budget == longest[group.variant]]


def _row_order(group: Group) -> tuple[int, int]:
    position = MODELS.index(group.model) if group.model in MODELS else len(MODELS)
    return position, -group.epochs


def _primary_table(task: str, variant: str, groups: Sequence[Group]) -> Table:
    """Tabulate the variant that claims are judged on; its note adds clear differences and the clean split."""
    own = [group for group in groups if group.variant == variant]
    clean = [group for group in groups if group.variant == f"{variant}-clean"]
    table = _table(task, own)
    return replace(table, note=" ".join([table.note, *clear_differences(own), *_compare_with_clean_split(own, clean)]))


def _compare_with_clean_split(faithful: Sequence[Group], clean: Sequence[Group]) -> list[str]:
    """Set the accuracies beside those of the clean split, over the models that were trained as long as planned on both.

    Return no sentence without such a model.
    """
    means = [
        {g.model: a.mean for g in groups if g.epochs >= protocol_epochs(g) and (a := accuracy(g)) is not None}
        for groups in (faithful, clean)
    ]
    both = [model for model in means[0] if model in means[1]]
    if not both:
        return []
    ranges = [f"{min(m[model] for model in both):.2f} to {max(m[model] for model in both):.2f} %" for m in means]
    windows = [tasks.find(groups[0].task, groups[0].variant).splits["train"] for groups in (faithful, clean)]
    return [
        f"On the clean split, by sequence, where no windows overlap across the split and {windows[1]:,} instead of "
        f"{windows[0]:,} windows are for training, the models have {ranges[1]} instead of {ranges[0]}."
    ]


def _table(task: str, groups: Sequence[Group], name: str = "") -> Table:
    claimed: Mapping[str, Estimate] = CLAIMED["accuracy"][task]
    order = list(dict.fromkeys(group.variant for group in groups))
    rows: list[tuple[Cell, ...]] = [
        (
            group.variant,
            palette.model_label(group.model),
            # The paper has no number for the clean splits.
            None if group.variant.endswith("-clean") else claimed.get(group.model),
            accuracy(group) or "NaN",
            len(group.runs),
            f"{group.epochs} of {protocol_epochs(group)}",
            group.budget_label,
            group.seconds_per_epoch(),
            group.total_seconds() / 60,
            group.parameters,
        )
        for group in sorted(groups, key=lambda g: (order.index(g.variant), *_row_order(g)))
    ]
    if not rows:
        rows = [("–", palette.model_label(model), claimed[model], *[None] * 7) for model in MODELS]
    return Table(
        name or task,
        f"{TITLES[task]}{', other data' if name else ''}: test accuracy (%)",
        (
            "variant",
            "model",
            "paper",
            "ours",
            "seeds",
            "epochs",
            "budget",
            "s per epoch",
            "total (min)",
            "parameters",
        ),
        rows,
        _table_note(task, groups),
        row_headers=2,
    )


TIMES = (
    "Times are training only, the median over seeds, and indications: some runs shared the machine with others, so "
    "that they vary from seed to seed."
)
_GRU = "GRU and MGU are the authors': reset before the matrix product, one Glorot kernel over [x, h] per gate."


def _table_note(task: str, groups: Sequence[Group]) -> str:
    variants = dict.fromkeys(group.variant for group in groups)
    descriptions = [f"{variant}: {tasks.find(task, variant).notes}." for variant in variants]
    reported = {"last": "of the last epoch", "best-validation": "of the epoch of best validation"}
    rule = "; ".join(
        dict.fromkeys(f"accuracy {reported[tasks.find(task, v).recipe.reported]}" for v in variants or (None,))
    )
    return " ".join([*descriptions, f"{rule[0].upper()}{rule[1:]}.", TIMES, _GRU])


def _solver_tables(groups: Sequence[Group]) -> list[Table]:
    """Tabulate LRC-S by solver below LRCU-S on irregular data; return no table if no other solver was tried."""
    variants = {group.variant for group in groups if has_other_solver(group)}
    compared = [
        group
        for group in sorted(groups, key=lambda g: (g.variant, g.model != "lrcu-s", g.spec.solver))
        if group.variant in variants and (has_other_solver(group) or (group.model == "lrcu-s" and group.follows_recipe))
    ]
    epochs = {v: min(group.epochs for group in compared if group.variant == v) for v in variants}
    rows: list[tuple[Cell, ...]] = [
        (
            group.variant,
            palette.model_label(group.model),
            group.spec.solver or "euler-1 (its own)",
            accuracy_after(group, epochs[group.variant]) or "NaN",
            len(group.runs),
            f"{epochs[group.variant]} of {protocol_epochs(group)}",
            group.budget_label,
            group.seconds_per_epoch(),
        )
        for group in compared
    ]
    if not rows:
        return []
    table = Table(
        "solvers",
        "Person activity with better solvers on irregular data: test accuracy (%)",
        ("variant", "model", "solver and steps", "ours", "seeds", "epochs", "budget", "s per epoch"),
        rows,
        "The paper says that more expensive solvers can be used for irregular data, but has no numbers. For readings "
        "out of order (negative dt), solvers other than explicit Euler use a time step of 0. Compared after equal "
        f"numbers of epochs: longer runs are read off their learning curves there. {TIMES}",
        row_headers=3,
    )
    return [table]


def _pictures(
    groups_by_task: Mapping[str, Sequence[Group]], rates: Sequence[RateTrial]
) -> tuple[list[Picture], list[str]]:
    """Draw the accuracies, the rates and all learning curves, and list the pictures that could not be drawn."""
    panels = {
        (task, variant): sorted((g for g in groups if g.variant == variant and g.follows_recipe), key=_row_order)
        for task, groups in groups_by_task.items()
        for variant in dict.fromkeys(group.variant for group in groups)
    }
    primary = {task: primary_variant(task, groups) for task, groups in groups_by_task.items()}
    accuracies = _accuracy_pictures({key: groups for key, groups in panels.items() if primary[key[0]] == key[1]})
    pictures = [*accuracies, *([_rate_picture(rates)] if rates else [])]
    skipped = [] if accuracies else ["accuracy: no finished run"]
    for (task, variant), groups in panels.items():
        if any(run.history for group in groups for run in group.runs):
            pictures.append(_learning_curves(task, variant, groups))
        else:
            skipped.append(f"learning curves of {task} ({variant}): no run has a metrics file")
    return pictures, skipped


def _accuracy_pictures(panels: Mapping[tuple[str, str], Sequence[Group]]) -> list[Picture]:
    """Draw the accuracies of all tasks and variants in one picture; return no picture without an accuracy."""
    dots = {
        f"{TITLES[task]}, {variant}": [
            Dot(
                g.model,
                CLAIMED["accuracy"][task].get(g.model),
                accuracy(g),
                f"{palette.model_label(g.model)}, {g.epochs} of {protocol_epochs(g)} epochs",
            )
            for g in groups
        ]
        for (task, variant), groups in panels.items()
        if any(accuracy(g) for g in groups)
    }
    if not dots:
        return []
    picture = Picture(
        "accuracy",
        "Difference of our test accuracy to the paper's, mean ± standard deviation over seeds. Ours may be on other "
        "data or for fewer epochs, as labelled.",
        "One row per task and model: our accuracy minus the paper's as a mark, the paper's spread as a bar "
        "about 0. The table has the same numbers.",
        draw_accuracies(dots, _accuracy_finding(panels)),
    )
    return [picture]


def _accuracy_finding(panels: Mapping[tuple[str, str], Sequence[Group]]) -> str:
    """Name the range of the differences to the paper's accuracy after its full training."""
    differences = [
        ours.mean - paper.mean
        for (task, _), groups in panels.items()
        for group in groups
        if group.epochs >= protocol_epochs(group)
        and (ours := accuracy(group)) is not None
        and (paper := CLAIMED["accuracy"][task].get(group.model)) is not None
    ]
    if not differences:
        return "No model has been trained for the paper's number of epochs yet"
    return (
        f"After the paper's number of epochs, {len(differences)} models differ from its accuracies by "
        f"{minus_signs(f'{min(differences):+.1f} to {max(differences):+.1f}')} points"
    )


def _rate_picture(rates: Sequence[RateTrial]) -> Picture:
    return Picture(
        "rates",
        "Person activity by learning rate, mean over seeds; bands reach one standard deviation to each side.",
        "One panel per variant: test accuracy over the learning rate on a logarithmic axis, one line per model. The "
        "table has the same numbers.",
        draw_rates(rates, CLAIMED["accuracy"]["person"], describe_searches(rates)),
    )


def _learning_curves(task: str, variant: str, groups: Sequence[Group]) -> Picture:
    measured = "validation" if "validation" in tasks.find(task, variant).splits else "test"
    return Picture(
        f"learning-curves-{task}-{variant}",
        f"{TITLES[task]}, {variant}: training loss and {measured} accuracy, "
        f"{'one seed' if _one_seed(groups) else 'mean over seeds; the band reaches from the worst to the best seed'}.",
        f"Three panels, one line per model: training loss over epochs, which falls; {measured} accuracy in percent "
        "over epochs and over minutes, which rises.",
        draw_learning_curves(
            groups, measured, CLAIMED["accuracy"][task], _curves_finding(groups, task, variant, measured)
        ),
    )


def _curves_finding(groups: Sequence[Group], task: str, variant: str, measured: str) -> str:
    """Name the best model, or if they were trained for different lengths, the leaders at equal epochs and times."""
    accuracies = {g.model: a for g in groups if (a := accuracy(g)) is not None and g.model in MODELS}
    if not accuracies:
        return f"{TITLES[task]}, {variant}: no accuracy yet"
    compared = [group for group in groups if group.model in accuracies]
    lengths = sorted({group.epochs for group in compared})
    if len(lengths) == 1:
        return f"{TITLES[task]}, {variant}: after {lengths[0]} epochs {_describe_best(accuracies)}"
    at_epoch = _leader(compared, measured, {group.model: lengths[0] for group in compared})
    # Models were stopped after different times: compare all when the first stops, and those trained longest when the
    # first of them does.
    longest = [group for group in compared if group.epochs == lengths[-1]]
    contests = [(compared, "each model")]
    if len(longest) > 1:
        contests.append((longest, f"each of the {len(longest)} models trained longest"))
    times = [
        f"After {seconds / 60:.0f} min of {who}, {leader} leads."
        for members, who in contests
        for seconds in [min(group.total_seconds() for group in members)]
        for leader in [_leader(members, measured, {g.model: seconds / g.seconds_per_epoch() for g in members})]
    ]
    one_seed = ", one seed" if _one_seed(compared) else ""
    return " ".join(
        [f"{TITLES[task]}, {variant}{one_seed}. After {lengths[0]} epochs of each model, {at_epoch} leads.", *times]
    )


def _one_seed(groups: Sequence[Group]) -> bool:
    return all(len(group.runs) == 1 for group in groups)


def _describe_best(accuracies: Mapping[str, Estimate]) -> str:
    """Name the model with the best test accuracy, and say so if its lead over the second is not clear."""
    best, *others = sorted(accuracies, key=lambda model: -accuracies[model].mean)
    text = f"{palette.model_label(best)} has the best test accuracy, {accuracies[best].mean:.1f} %"
    if not others:
        return text
    interval = paired_interval(accuracies[best], accuracies[others[0]])
    if interval is not None and interval.low > 0:
        return text
    reason = "from fewer than two common seeds" if interval is None else "within the spread over seeds"
    second = f"{palette.model_label(others[0])}, {accuracies[others[0]].mean:.1f} %"
    return f"{text}; its lead over the second ({second}) is {reason}"


def _leader(groups: Sequence[Group], measured: str, epochs: Mapping[str, float]) -> str:
    """Return the model with the highest accuracy so far, at an epoch of its own, and that accuracy."""
    so_far = {}
    for group in groups:
        where, mean, _, _ = mean_curve(group, f"{measured}_accuracy", 100.0)
        so_far[group.model] = max(
            (y for x, y in zip(where, mean, strict=True) if x <= epochs[group.model]), default=0.0
        )
    best = max(so_far, key=lambda model: so_far[model])
    return f"{palette.model_label(best)} ({so_far[best]:.1f} %)"


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, says=SAYS)
