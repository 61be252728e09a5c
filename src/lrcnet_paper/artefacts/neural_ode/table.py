"""Table: test error of LRC and Neural ODE on six dynamical systems, with trajectories and learning curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.artefact import Artefact, Claim, Rendered
from lrcnet_paper.artefacts.neural_ode.figures import METRIC, draw_pictures
from lrcnet_paper.artefacts.neural_ode.rows import ADAPTIVE, BY_EULER, CLAIMED, LRC_S, ROWS, Row
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group, group_runs
from lrcnet_paper.results.verdict import Conditions, judge_comparison, paired_interval
from lrcnet_paper.tasks.neural_ode import SYSTEMS
from lrcnet_paper.training.budgets import check_budget
from lrcnet_paper.training.change import Change
from lrcnet_paper.training.problems.trajectories import SHOWN_AT

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "LRCs on Neural-ODE benchmarks"
SAYS = "LRCs learn six dynamical systems with a lower error than Neural ODEs."
DIFFERENCES = (
    "The paper gives 1000, 2000 and 4000 iterations without assigning them to systems; claims are judged after 2000.",
    "The paper does not state the elastance of its LRC; the claims are about LRC-S.",
    "The spiral is the row vector times A, as in the authors' program; the paper prints the mirror image.",
    "Training and test share one trajectory, as in the paper.",
)


TASK = "neural-ode"
MARKS = SHOWN_AT
JUDGED = 2000
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
    return Rendered(
        tables=[_main_table(groups)],
        pictures=pictures[:1],
        claims=_claims(groups),
        skipped=skipped,
        differences=DIFFERENCES,
        sensitivities=[
            *pictures[1:],
            _same_solver_table(groups),
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


def _mark(group: Group) -> int | None:
    """Return the number of iterations to judge: 2000, or 1000 if the run is shorter; None below that."""
    return next((mark for mark in (JUDGED, MARKS[0]) if group.epochs >= mark), None)


def _error(group: Group | None, *, solver: str = "", at: int | None = None, best: bool = False) -> Estimate | None:
    """Return the test error of the last or the best roll-out up to `at` iterations (None: the number to judge).

    The solver is the run's own, or the one named.
    """
    if group is None:
        return None
    mark = _mark(group) if at is None else at
    name = METRIC + (f"_{solver}" if solver else "") + ("_min" if best else "") + (f"@{mark}" if mark else "")
    return group.metric(name, digits=4)


def _conditions(*groups: Group | None) -> Conditions:
    present = [group for group in groups if group is not None]
    marks = [_mark(group) for group in present]
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
            numbers = (_error(group), _error(group, solver=other), len(group.runs), _mark(group) or group.epochs)
            rows.append((*names, *numbers, 1000 * group.seconds_per_epoch(), group.parameters))
    return Table(
        "test-error",
        "Test error (mean absolute error over 1000 points, last iteration)",
        (
            "system",
            "model and its solver",
            "paper",
            "ours, own solver",
            "ours, other solver",
            "seeds",
            "iteration",
            "ms per iteration",
            "parameters",
        ),
        rows,
        "Each model is rolled out from the initial state by the solver of its training; beside it stands the error of "
        "the same network by the other solver. The paper does not state the elastance of its LRC: claims are about "
        f"LRC-S alone, against the Neural ODE by Dormand-Prince. {_count_lower_means(groups)}",
        row_headers=2,
    )


def _count_lower_means(groups: Mapping[tuple[str, Row], Group]) -> str:
    """Say on how many systems the mean error of LRC-S is below that of each Neural ODE, whatever the intervals say."""
    counts = []
    for row in (ADAPTIVE, BY_EULER):
        errors = [(_error(groups.get((s, LRC_S))), _error(groups.get((s, row)))) for s in SYSTEMS]
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
                cells += [_error(group, at=mark, best=best) if reached else None for best in (False, True)]
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
            ("Euler", (_error(lrc), _error(euler))),
            ("Dormand-Prince", (_error(lrc, solver="dopri5"), _error(adaptive))),
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
            "On a periodic orbit the phase of a roll-out drifts with the smallest change of the field: under a "
            "constant rate the error jumps from one training step to the next, and the last error is far above the "
            "minimum. With cosine decay to 0, which the paper does not mention, the field settles.",
            row_headers=2,
        )
    ]


def _claims(groups: Mapping[tuple[str, Row], Group]) -> list[Claim]:
    claims = []
    for system, definition in SYSTEMS.items():
        pair = groups.get((system, LRC_S)), groups.get((system, ADAPTIVE))
        errors = _error(pair[0]), _error(pair[1])
        claimed = CLAIMED["test loss"][system]
        verdict = judge_comparison(
            (claimed["lrc"], claimed["neural-ode"]),
            errors,
            larger_is_better=False,
            under=_conditions(*pair),
            comparable=None in pair or _mark(pair[0]) == _mark(pair[1]),  # type: ignore[arg-type]
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
