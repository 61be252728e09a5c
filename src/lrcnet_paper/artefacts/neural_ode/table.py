"""Table: test error of LRC and Neural ODE on six dynamical systems, with trajectories and learning curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.artefact import Artefact, Claim, Rendered
from lrcnet_paper.artefacts.neural_ode.errors import JUDGED, MARKS, METRIC, judged_mark, mean_error
from lrcnet_paper.artefacts.neural_ode.factors import count_clear_factors, factor_table, factors_by_length
from lrcnet_paper.artefacts.neural_ode.figures import draw_pictures
from lrcnet_paper.artefacts.neural_ode.rows import ADAPTIVE, BY_EULER, CLAIMED, LRC_S, ROWS, Row
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group, group_runs
from lrcnet_paper.results.interval import paired_interval
from lrcnet_paper.results.verdict import Conditions, judge_comparison
from lrcnet_paper.tasks.neural_ode import SYSTEMS
from lrcnet_paper.training.budgets import check_budget
from lrcnet_paper.training.change import Change

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "LRCs on Neural-ODE benchmarks"
SAYS = "LRCs learn six dynamical systems with a lower error than Neural ODEs."
LENGTHS = (
    "The paper gives 1000, 2000 and 4000 iterations without assigning them to systems; claims are judged after "
    f"{JUDGED}."
)
DIFFERENCES = (
    "The paper does not state the elastance of its LRC; the claims are about LRC-S.",
    "The spiral is the row vector times A, as in the authors' program; the paper prints the mirror image.",
    f"The non-linear Lotka-Volterra system is the paper's, {SYSTEMS['lotka-volterra-nonlinear'].equations}; the "
    "authors' program has + 0.33 x y.",
    "Training and test share one trajectory, as in the paper.",
)


TASK = "neural-ode"
ITERATIONS = {"smoke": 4, "quick": 1000, "paper": 4000}
SEEDS = {"smoke": 1, "quick": 1, "paper": 3}
DECAYING = "cosine"
SCHEDULES = {"smoke": ("constant",), "quick": ("constant",), "paper": ("constant", DECAYING)}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan LRC-S, LRC-A and the Neural ODE by both solvers on six systems; at the paper budget with decay too."""
    from lrcnet_paper.training.spec import RunSpec

    check_budget(budget)
    settings: dict[str, Any] = {"iterations": ITERATIONS[budget], "budget": budget}
    return [
        RunSpec(TASK, system, row.model, solver=row.solver, seed=seed, schedule=schedule, **settings)
        for seed in range(SEEDS[budget] if seeds is None else seeds)
        for schedule in SCHEDULES[budget]
        for system in SYSTEMS
        for row in ROWS
    ]


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our table beside the paper's, at 1000, 2000 and 4000 iterations, and draw the trajectories."""
    groups = find_groups(runs)
    pictures, skipped = draw_pictures(groups)
    factors = factors_by_length(groups)
    return Rendered(
        tables=[_main_table(groups)],
        pictures=pictures[:1],
        claims=_claims(groups),
        skipped=skipped,
        differences=[" ".join([LENGTHS, *count_clear_factors(factors)]), *DIFFERENCES],
        sensitivities=[
            *pictures[1:],
            _same_solver_table(groups),
            *([factor_table(factors)] if any(factors.values()) else []),
            *([_lengths_table(groups)] if any(group.epochs >= MARKS[0] for group in groups.values()) else []),
            *_rates_tables(groups, find_groups(runs, schedule=DECAYING)),
        ],
    )


def find_groups(runs: Sequence[FinishedRun], schedule: str = "") -> dict[tuple[str, Row], Group]:
    """Return (system, row) -> the runs of the longest budget under a schedule, so that no cell mixes two budgets."""
    longest: dict[tuple[str, Row], Group] = {}
    for group in group_runs(runs, TASK):
        row = Row(group.model, group.spec.solver)
        if row in ROWS and group.change == Change(row.solver, schedule) and not group.spec.options:
            longest.setdefault((group.variant, row), group)
    return longest


def _conditions(*groups: Group | None) -> Conditions:
    present = [group for group in groups if group is not None]
    marks = [judged_mark(group) for group in present]
    short = [mark or group.epochs for mark, group in zip(marks, present, strict=True) if mark != JUDGED]
    return Conditions(
        smoke=any(group.budget == "smoke" for group in present),
        shorter=bool(short),
        notes=(f"{min(short)} of {JUDGED} iterations",) if short else (),
    )


def _main_table(groups: Mapping[tuple[str, Row], Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system, description in SYSTEMS.items():
        for row in ROWS:
            group = groups.get((system, row))
            names = (description.title, row.label, _paper(system, row))
            if group is None:
                rows.append((*names, *[None] * 6))
                continue
            other = "dopri5" if row.by_euler else "euler"
            numbers = (
                mean_error(group),
                mean_error(group, solver=other),
                len(group.runs),
                judged_mark(group) or group.epochs,
            )
            rows.append((*names, *numbers, 1000 * group.seconds_per_epoch(), group.parameters))
    return Table(
        "test-error",
        "Test error (mean absolute error over 1000 points) after the iterations given",
        (
            "system",
            "model and its solver",
            "paper",
            "ours, own solver",
            "ours, other solver",
            "seeds",
            "iteration",
            "ms per iteration, median of seeds",
            "parameters",
        ),
        rows,
        "Each model is rolled out from the initial state by the solver of its training; beside it stands the error of "
        "the same network by the other solver. The paper does not state the elastance of its LRC: claims are about "
        f"LRC-S alone, against the Neural ODE by Dormand-Prince. {_count_lower_means(groups)} Times are "
        "indications: some runs shared the machine with others and took many times as long, so that networks of equal "
        "size differ.",
        row_headers=2,
    )


def _count_lower_means(groups: Mapping[tuple[str, Row], Group]) -> str:
    """Say on how many systems the mean error of LRC-S is below that of each Neural ODE, whatever the intervals say."""
    counts = []
    for row in (ADAPTIVE, BY_EULER):
        errors = [(mean_error(groups.get((s, LRC_S))), mean_error(groups.get((s, row)))) for s in SYSTEMS]
        pairs = [(ours.mean, theirs.mean) for ours, theirs in errors if ours is not None and theirs is not None]
        counts.append(f"{sum(ours < theirs for ours, theirs in pairs)} of {len(pairs)}")
    return (
        f"The mean error of LRC-S is the lower one on {counts[0]} systems against the Neural ODE by Dormand-Prince, "
        f"and on {counts[1]} against the one that is trained and tested by Euler steps."
    )


def _paper(system: str, row: Row) -> Estimate | None:
    claimed: Mapping[str, Estimate] = CLAIMED["test loss"][system]
    return {LRC_S: claimed["lrc"], ADAPTIVE: claimed["neural-ode"]}.get(row)


def _lengths_table(groups: Mapping[tuple[str, Row], Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system, description in SYSTEMS.items():
        for row in ROWS:
            group = groups.get((system, row))
            cells: list[Cell] = []
            for mark in MARKS:
                reached = group is not None and group.epochs >= mark
                cells += [mean_error(group, at=mark, best=best) if reached else None for best in (False, True)]
            rows.append((description.title, row.label, _paper(system, row), *cells))
    return Table(
        "lengths",
        "Test error after 1000, 2000 and 4000 iterations: the last, and the minimum so far",
        ("system", "model", "paper", *(f"{mark}, {kind}" for mark in MARKS for kind in ("last", "minimum"))),
        rows,
        "The minimum is over the roll-outs after every 100 iterations. It is chosen by the test error itself, so it "
        "only shows what is possible.",
        row_headers=2,
    )


def _same_solver_table(groups: Mapping[tuple[str, Row], Group]) -> Table:
    """Compare LRC-S with the Neural ODE when both use the same solver."""
    rows: list[tuple[Cell, ...]] = []
    for system, description in SYSTEMS.items():
        lrc, adaptive, euler = (groups.get((system, row)) for row in (LRC_S, ADAPTIVE, BY_EULER))
        for solver, pair in (
            ("Euler", (mean_error(lrc), mean_error(euler))),
            ("Dormand-Prince", (mean_error(lrc, solver="dopri5"), mean_error(adaptive))),
        ):
            interval = paired_interval(*pair, by_ratio=True)
            ratio = None if interval is None else f"{math.exp(interval.mean):.2f}"
            reach = None if interval is None else f"{math.exp(interval.low):.2f} to {math.exp(interval.high):.2f}"
            rows.append((description.title, solver, *pair, ratio, reach))
    return Table(
        "same-solver",
        "Both models by the same solver",
        ("system", "solver of both", "LRC-S", "Neural ODE", "ratio LRC-S / Neural ODE", "95 % interval"),
        rows,
        "Euler: the Neural ODE is trained and tested by Euler steps, as LRC is. Dormand-Prince: LRC, trained by Euler, "
        "is rolled out by Dormand-Prince. Geometric mean of the ratio over seeds; below 1, LRC-S is ahead.",
        row_headers=2,
    )


def _rates_tables(constant: Mapping[tuple[str, Row], Group], decaying: Mapping[tuple[str, Row], Group]) -> list[Table]:
    """Compare a constant with a decaying rate; return no table if no decay was tried."""
    rows: list[tuple[Cell, ...]] = []
    for (system, row), decayed in sorted(decaying.items(), key=lambda item: (list(SYSTEMS).index(item[0][0]), item[0])):
        for rate, group in (("constant", constant.get((system, row))), (DECAYING, decayed)):
            if group is not None:
                errors = [group.metric(METRIC + kind, digits=4) for kind in ("", "_min")]
                rows.append((SYSTEMS[system].title, row.label, rate, *errors, group.epochs, len(group.runs)))
    if not rows:
        return []
    return [
        Table(
            "decaying-rate",
            "Constant and decaying learning rate, own solver",
            ("system", "model", "learning rate", "last", "minimum", "iterations", "seeds"),
            rows,
            "On a periodic orbit the phase of a roll-out drifts with the smallest change of the field, so that the "
            f"last error may be far above the minimum. {_describe_decay(constant, decaying)}",
            row_headers=2,
        )
    ]


def _describe_decay(constant: Mapping[tuple[str, Row], Group], decaying: Mapping[tuple[str, Row], Group]) -> str:
    """Count the systems on which decay has the lower mean error, and say how far last errors are above the minima."""
    both = [key for key in decaying if key in constant]
    counts: list[str] = []
    for row in ROWS:
        pairs = [(decaying[key].metric(METRIC), constant[key].metric(METRIC)) for key in both if key[1] == row]
        means = [(ours.mean, theirs.mean) for ours, theirs in pairs if ours is not None and theirs is not None]
        if means:
            lower = sum(ours < theirs for ours, theirs in means)
            counts.append(f"{lower} of {len(means)}{'' if counts else ' systems'} ({row.label})")
    if not counts:
        return "No system was trained with both rates."
    above = [_last_over_minimum(groups[key] for key in both) for groups in (constant, decaying)]
    return (
        "With cosine decay to 0, which the paper does not mention, the mean of the last errors is below that of a "
        f"constant rate on {join_words(counts)}. The last error is {above[0]:.2g} times the minimum with a constant "
        f"rate and {above[1]:.2g} times with decay, geometric mean over systems and models."
    )


def _last_over_minimum(groups: Iterable[Group]) -> float:
    """Return the geometric mean of the mean last error over the mean minimum; NaN if no run has both."""
    pairs = [(group.metric(METRIC), group.metric(f"{METRIC}_min")) for group in groups]
    ratios = [last.mean / least.mean for last, least in pairs if last is not None and least is not None]
    return geometric_mean(ratios) if ratios else math.nan


def _claims(groups: Mapping[tuple[str, Row], Group]) -> list[Claim]:
    claims = []
    for system, definition in SYSTEMS.items():
        pair = groups.get((system, LRC_S)), groups.get((system, ADAPTIVE))
        errors = mean_error(pair[0]), mean_error(pair[1])
        claimed = CLAIMED["test loss"][system]
        verdict = judge_comparison(
            (claimed["lrc"], claimed["neural-ode"]),
            errors,
            larger_is_better=False,
            under=_conditions(*pair),
            comparable=None in pair or judged_mark(pair[0]) == judged_mark(pair[1]),  # type: ignore[arg-type]
            by_ratio=True,
            same_scale=True,
        )
        claims.append(
            Claim(
                f"{definition.title}: LRC has a lower error than the Neural ODE, each by its own solver.",
                f"{claimed['lrc']} against {claimed['neural-ode']}",
                f"{errors[0] or '–'} against {errors[1] or '–'}",
                verdict,
            )
        )
    return claims


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, says=SAYS)
