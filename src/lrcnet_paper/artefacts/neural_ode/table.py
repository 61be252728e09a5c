"""Table: test error of LRC and Neural ODE on six dynamical systems, with trajectories and learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts.artefact import Artefact, Claim, Rendered
from lrcnet_paper.artefacts.neural_ode.figures import draw_curves, draw_phase_portraits, draw_trajectories
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group, group_runs
from lrcnet_paper.results.verdict import Conditions, Verdict, Word, judge_comparison, judge_number
from lrcnet_paper.tasks.neural_ode import SYSTEMS
from lrcnet_paper.training.budgets import check_budget
from lrcnet_paper.training.change import Change
from lrcnet_paper.training.problems.trajectories import SHOWN_AT

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "LRCs on Neural-ODE benchmarks"


def _loss(mean: float, std: float) -> Estimate:
    return Estimate(mean, std, seeds=3, digits=4 if std < 0.001 else 3)


# Test loss (mean absolute error over 1000 points) over 3 seeds; the paper does not state the elastance of "lrc".
CLAIMED: Mapping[str, Any] = {
    "test loss": {
        "sinusoid": {"neural-ode": _loss(0.140, 0.033), "lrc": _loss(0.019, 0.005)},
        "spiral": {"neural-ode": _loss(0.012, 0.005), "lrc": _loss(0.009, 0.004)},
        "duffing": {"neural-ode": _loss(0.142, 0.117), "lrc": _loss(0.003, 0.001)},
        "lotka-volterra-periodic": {"neural-ode": _loss(0.025, 0.006), "lrc": _loss(0.005, 0.001)},
        "lotka-volterra-asymptotic": {"neural-ode": _loss(0.030, 0.0002), "lrc": _loss(0.009, 0.001)},
        "lotka-volterra-nonlinear": {"neural-ode": _loss(0.033, 0.010), "lrc": _loss(0.008, 0.004)},
    },
    "seconds per iteration": (0.4, 0.5),
}

TASK = "neural-ode"
METRIC = "mean_absolute_error"


class Row(NamedTuple):
    """A model with the solver that it is trained and tested by; "" for the paper's own."""

    model: str
    solver: str = ""


LRC_S, LRC_A, ADAPTIVE, BY_EULER = Row("lrc-s"), Row("lrc-a"), Row("neural-ode"), Row("neural-ode", "euler-1")
ROWS = (LRC_S, LRC_A, ADAPTIVE, BY_EULER)
# The paper gives three lengths without assigning them to systems. The verdict is on the middle one.
MARKS = SHOWN_AT
JUDGED = 2000
ITERATIONS = {"smoke": 4, "quick": 1000, "paper": 4000}
SEEDS = {"smoke": 1, "quick": 1, "paper": 3}
SCHEDULES = {"smoke": ("constant",), "quick": ("constant",), "paper": ("constant", "cosine")}


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
    groups = _longest_groups(runs)
    pictures, skipped = _pictures(groups)
    return Rendered(
        tables=[
            _main_table(groups),
            *([_lengths_table(groups)] if _longest(groups) >= MARKS[0] else []),
            *_rates_tables(runs, groups),
        ],
        pictures=pictures,
        claims=_claims(groups),
        skipped=skipped,
    )


def _longest_groups(runs: Sequence[FinishedRun]) -> dict[tuple[str, str], Group]:
    """Return (system, model) -> the runs of the longest budget, so that no cell mixes two budgets."""
    longest: dict[tuple[str, str], Group] = {}
    for group in group_runs(runs, TASK):
        if not group.change:
            longest.setdefault((group.variant, group.model), group)
    return longest


def _longest(groups: Mapping[tuple[str, str], Group]) -> int:
    return max((group.epochs for group in groups.values()), default=0)


def _mark(group: Group) -> int | None:
    """Return the number of iterations to judge: 2000, or 1000 if the run is shorter; None below that."""
    return next((mark for mark in (JUDGED, MARKS[0]) if group.epochs >= mark), None)


def _error(group: Group | None, *, solver: str = "", at: int | None = None, best: bool = False) -> Estimate | None:
    """Return the test error of the last or the best roll-out up to `at` iterations (None: the number to judge)."""
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


def _judge_error(system: str, model: str, group: Group | None) -> Verdict | None:
    claimed = _paper(system, model)
    if claimed is None:
        return None
    return judge_number(claimed, _error(group), larger_is_better=False, under=_conditions(group))


def _main_table(groups: Mapping[tuple[str, str], Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system, description in SYSTEMS.items():
        for model in MODELS:
            group = groups.get((system, model))
            if group is None:
                rows.append((description.title, palette.model_label(model), _paper(system, model), *[None] * 9))
                continue
            rows.append(
                (
                    description.title,
                    palette.model_label(model),
                    _paper(system, model),
                    _error(group),
                    _error(group, solver="dopri5"),
                    len(group.runs),
                    _mark(group) or group.epochs,
                    _judge_error(system, model, group),
                    group.budget_label,
                    1000 * group.seconds_per_epoch(),
                    group.total_seconds(),
                    group.parameters,
                )
            )
    return Table(
        "test-error",
        "Test error (mean absolute error over 1000 points, last iteration)",
        (
            "system",
            "model",
            "paper",
            "ours",
            "ours, Dormand-Prince roll-out",
            "seeds",
            "iteration",
            "verdict",
            "budget",
            "ms per iteration",
            "total (s)",
            "parameters",
        ),
        rows,
        "The test rolls out 1000 points from the initial state with Euler steps; the Neural ODE, which is trained with "
        "Dormand-Prince, is also tested with that. The paper does not state the elastance of its LRC: the verdict is "
        "on LRC-S alone. Training and test share one trajectory, as in the paper.",
        row_headers=2,
    )


def _paper(system: str, model: str) -> Estimate | None:
    claimed: Mapping[str, Estimate] = CLAIMED["test loss"][system]
    return claimed.get({"lrc-s": "lrc", "neural-ode": "neural-ode"}.get(model, ""))


def _lengths_table(groups: Mapping[tuple[str, str], Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for system, description in SYSTEMS.items():
        for model in MODELS:
            group = groups.get((system, model))
            cells: list[Cell] = []
            for mark in MARKS:
                reached = group is not None and group.epochs >= mark
                cells += [_error(group, at=mark, best=best) if reached else None for best in (False, True)]
            rows.append((description.title, palette.model_label(model), _paper(system, model), *cells))
    return Table(
        "lengths",
        "Test error after 1000, 2000 and 4000 iterations: the last, and the minimum so far",
        ("system", "model", "paper", *(f"{mark}, {kind}" for mark in MARKS for kind in ("last", "minimum"))),
        rows,
        "The minimum is over the roll-outs after every 100 iterations. It is chosen by the test error itself, so it "
        "only shows what is possible, and no verdict is based on it.",
        row_headers=2,
    )


def _is_decaying(group: Group) -> bool:
    return group.variant == PERIODIC and group.change == Change(schedule=DECAYING)


def _rates_tables(runs: Sequence[FinishedRun], groups: Mapping[tuple[str, str], Group]) -> list[Table]:
    """Compare a constant with a decaying rate on the periodic system; return no table if none was tried."""
    decayed = {g.model: g for g in reversed(group_runs(runs, TASK)) if _is_decaying(g)}
    rows: list[tuple[Cell, ...]] = []
    for model in MODELS:
        for rate, group in (("constant", groups.get((PERIODIC, model))), (DECAYING, decayed.get(model))):
            if model in decayed and group is not None:
                errors = [group.metric(METRIC + kind, digits=4) for kind in ("", "_min", "_dopri5")]
                label = palette.model_label(model)
                rows.append((label, rate, _paper(PERIODIC, model), *errors, group.epochs, len(group.runs)))
    if not rows:
        return []
    return [
        Table(
            "decaying-rate",
            "Periodic Lotka-Volterra system: constant and decaying learning rate",
            (
                "model",
                "learning rate",
                "paper",
                "last",
                "minimum",
                "last, Dormand-Prince roll-out",
                "iterations",
                "seeds",
            ),
            rows,
            "The orbit repeats, so a roll-out's phase drifts with the smallest change of the field: under a constant "
            "rate the error jumps from one training step to the next, and the last error is far above the minimum. "
            "With cosine decay to 0, which the paper does not mention, the field settles.",
        )
    ]


# Solver of the Neural ODE's roll-out in the test: the paper's Euler steps, and the solver of its training.
ROLL_OUTS = {"": "both rolled out by Euler", "dopri5": "Neural ODE rolled out by Dormand-Prince"}


def _claims(groups: Mapping[tuple[str, str], Group]) -> list[Claim]:
    claims = []
    for solver, description in ROLL_OUTS.items():
        ahead = compared = 0
        for system, definition in SYSTEMS.items():
            ours, theirs = groups.get((system, "lrc-s")), groups.get((system, "neural-ode"))
            errors = _error(ours), _error(theirs, solver=solver)
            claimed = CLAIMED["test loss"][system]
            verdict = judge_comparison(
                (claimed["lrc"], claimed["neural-ode"]),
                errors,
                larger_is_better=False,
                under=_conditions(ours, theirs),
                comparable=ours is None or theirs is None or _mark(ours) == _mark(theirs),
            )
            claims.append(
                Claim(
                    f"{definition.title}: LRC has a lower error than the Neural ODE ({description}).",
                    f"{claimed['lrc']} against {claimed['neural-ode']}",
                    f"{errors[0] or '–'} against {errors[1] or '–'}",
                    verdict,
                )
            )
            if errors[0] is not None and errors[1] is not None:
                compared += 1
                ahead += errors[0].mean < errors[1].mean
        claims.append(_count_claim(groups, description, ahead, compared))
    return claims + _time_claims(groups)


def _count_claim(groups: Mapping[tuple[str, str], Group], description: str, ahead: int, compared: int) -> Claim:
    under = _conditions(*groups.values())
    verdict = Verdict("open", ("not measured",))
    if compared == len(SYSTEMS):
        word: Word = "open" if under.smoke else "reproduced" if ahead == compared else "not reached"
        verdict = Verdict(word, under.notes)
    statement = f"LRC-S has the lower mean error on all six systems ({description})."
    return Claim(statement, "6 of 6", f"{ahead} of {compared}" if compared else "–", verdict)


def _time_claims(groups: Mapping[tuple[str, str], Group]) -> list[Claim]:
    low, high = CLAIMED["seconds per iteration"]
    claims = []
    for model in ("lrc-s", "neural-ode"):
        # A smoke run has only the first iterations, which are slower.
        long = [group for (_, name), group in groups.items() if name == model and group.budget != "smoke"]
        times = [group.seconds_per_epoch() for group in long]
        verdict, measured = Verdict("open", ("not measured",)), "–"
        if times:
            mean = sum(times) / len(times)
            measured = f"{1000 * mean:.1f} ms"
            verdict = Verdict(
                "better" if mean < low else "reproduced" if mean <= high else "not reached", ("other machine",)
            )
        label = palette.model_label(model)
        claims.append(Claim(f"Training time per iteration, {label}.", f"{low} to {high} s", measured, verdict))
    return claims


def _pictures(groups: Mapping[tuple[str, str], Group]) -> tuple[list[Picture], list[str]]:
    pictures: list[Picture] = []
    skipped: list[str] = []
    roll_outs = {key: next((r for r in group.runs if r.prediction), None) for key, group in groups.items()}
    if any(roll_outs.values()):
        seeds = sorted({run.result.seed for run in roll_outs.values() if run is not None})
        lengths = sorted({run.result.epochs for run in roll_outs.values() if run is not None})
        provenance = (
            f"seed {', '.join(map(str, seeds))}, after {', '.join(map(str, lengths))} iterations, by Euler steps"
        )
        pictures += [
            Picture(
                "phase-portraits",
                "Phase portraits of the six systems: truth, and roll-outs from the initial state alone "
                f"({provenance}).",
                "Six panels of y over x. In each, the true orbit as a wide pale line, and on it the orbits of LRC-S "
                "and of the Neural ODE.",
                draw_phase_portraits(roll_outs),
            ),
            Picture(
                "trajectories",
                f"The same roll-outs over time ({provenance}): x above, y below.",
                "Twelve panels of x and y over time, two for each system: truth, LRC-S and Neural ODE.",
                draw_trajectories(roll_outs),
            ),
        ]
    else:
        skipped.append("phase portraits and trajectories: no run has a saved roll-out (prediction.npz)")
    if any(run.history for group in groups.values() for run in group.runs):
        pictures.append(
            Picture(
                "learning-curves",
                "Test error during training: mean over seeds; the band reaches from the best to the worst seed; the "
                "dotted line is the paper's LRC.",
                "Six panels of test error over iterations on a logarithmic axis, for LRC-S, LRC-A and Neural ODE.",
                draw_curves(groups, {system: row["lrc"].mean for system, row in CLAIMED["test loss"].items()}),
            )
        )
    else:
        skipped.append("learning curves: no run has a metrics file")
    return pictures, skipped


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render)
