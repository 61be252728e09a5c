"""Figures of the six dynamical systems: orbits, trajectories and learning curves, ours beside the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Picture
from lrcnet_paper.artefacts import curves
from lrcnet_paper.artefacts.neural_ode.errors import JUDGED, METRIC, judged_mark, mean_error
from lrcnet_paper.artefacts.neural_ode.rows import ADAPTIVE, CLAIMED, LRC_A, LRC_S, Row
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.groups import Group
from lrcnet_paper.tasks.neural_ode import SYSTEMS, trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lrcnet_paper.results.finished_run import FinishedRun

Groups = Mapping[tuple[str, Row], Group]
RollOuts = Mapping[tuple[str, Row], "FinishedRun"]
DRAWN = (LRC_S, ADAPTIVE)


def draw_pictures(groups: Groups) -> tuple[list[Picture], list[str]]:
    """Draw phase portraits, trajectories and learning curves, and list the pictures that could not be drawn."""
    pictures: list[Picture] = []
    skipped: list[str] = []
    roll_outs = example_roll_outs(groups)
    if roll_outs:
        seed = next(run.result.seed for run in roll_outs.values())
        lengths = join_words(sorted({run.result.epochs for run in roll_outs.values()}))
        provenance = f"seed {seed}, after {lengths} iterations, each model by its own solver"
        example = f"Seed {seed} as an example, after {lengths} iterations"
        pictures += [
            Picture(
                "phase-portraits",
                f"Phase portraits of the six systems, rolled out from the initial state alone ({provenance}). "
                "Legends give the solver and the mean absolute error; the paper's errors are means over seeds. "
                f"Roll-outs are saved at the end of training only, while claims are judged after {JUDGED} iterations.",
                "Six panels of y over x. In each, the true orbit as a wide pale line, and on it the orbits of LRC-S "
                "and of the Neural ODE.",
                draw_phase_portraits(roll_outs, f"{example}: orbits of LRC-S and the Neural ODE"),
            ),
            Picture(
                "trajectories",
                f"The same roll-outs over time ({provenance}): x above, y below.",
                "Twelve panels of x and y over time, two for each system: truth, LRC-S and Neural ODE.",
                draw_trajectories(roll_outs, f"{example}: LRC-S and the Neural ODE over time"),
            ),
        ]
    else:
        skipped.append("phase portraits and trajectories: no run has a saved roll-out (prediction.npz)")
    if any(run.history for group in groups.values() for run in group.runs):
        pictures.append(
            Picture(
                "learning-curves",
                "Test error by each model's own solver during training: mean over seeds; the band reaches from the "
                "best to the worst seed.",
                "Six panels of test error over iterations on a logarithmic axis, for LRC-S, LRC-A and Neural ODE.",
                draw_curves(groups),
            )
        )
    else:
        skipped.append("learning curves: no run has a metrics file")
    return pictures, skipped


def example_roll_outs(groups: Groups) -> dict[tuple[str, Row], FinishedRun]:
    """Return the roll-outs of one seed, the smallest one that both drawn models have on most systems."""
    by_seed: dict[int, dict[tuple[str, Row], FinishedRun]] = {}
    for key, group in groups.items():
        for run in group.runs if key[1] in DRAWN else ():
            if "states" in run.prediction:
                by_seed.setdefault(run.result.seed, {})[key] = run

    def rank(seed: int) -> tuple[int, int, int]:
        drawn = by_seed[seed]
        return sum(all((name, row) in drawn for row in DRAWN) for name in SYSTEMS), len(drawn), -seed

    return by_seed[max(by_seed, key=rank)] if by_seed else {}


def _error(run: FinishedRun) -> float:
    return run.result.metrics[METRIC]


def _label(name: str, row: Row, run: FinishedRun) -> str:
    """Return the legend of a roll-out: model, solver, its error and the paper's."""
    claimed = CLAIMED["test loss"][name]["lrc" if row == LRC_S else "neural-ode"]
    return f"{row.label}: {_error(run):.2g} (paper {claimed.mean:g})"


def draw_phase_portraits(roll_outs: RollOuts, finding: str) -> Figure:
    """Draw y over x at one scale for both, two systems in a row."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 11.4), layout=_layout(0.2))
        panels = figure.subplots(3, 2).ravel()
        for axes, (name, system) in zip(panels, SYSTEMS.items(), strict=True):
            truth = trajectory(name)[1]
            axes.plot(*truth.T.numpy(), color=palette.GREY, alpha=0.45, linewidth=5)
            axes.plot(*system.y0, marker="o", color=palette.INK, markersize=5, linestyle="none")
            for row in DRAWN:
                run = roll_outs.get((name, row))
                states = _states(run)
                if run is not None and states:
                    style = palette.model_style(row.model)
                    label = _label(name, row, run)
                    axes.plot(*states, color=style.colour, linestyle=style.dashes, linewidth=1.3, label=label)
            axes.set(title=system.title, xlabel="x (no unit)", ylabel="y (no unit)")
            _set_limits(axes, truth, [states for row in DRAWN if (states := _states(roll_outs.get((name, row))))])
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=7.5, handlelength=2.6)
        _add_common_legend(figure)
        curves.write_finding(figure, finding)
    return figure


def _add_common_legend(figure: Figure) -> None:
    """Explain the marks that all panels share."""
    from matplotlib.lines import Line2D

    truth = Line2D([], [], color=palette.GREY, alpha=0.45, linewidth=5, label="truth")
    start = Line2D([], [], color=palette.INK, marker="o", markersize=5, linestyle="none", label="initial state")
    figure.legend(handles=[truth, start], loc="outside lower center", ncols=2)


def draw_trajectories(roll_outs: RollOuts, finding: str) -> Figure:
    """Draw x and y over time, two systems in a row."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 10.8), layout=_layout())
        panels = figure.subplots(6, 2)
        for index, (name, system) in enumerate(SYSTEMS.items()):
            times, truth = trajectory(name)
            line, column = divmod(index, 2)
            for coordinate in (0, 1):
                axes = panels[2 * line + coordinate, column]
                axes.plot(times, truth[:, coordinate], color=palette.GREY, alpha=0.45, linewidth=5, label="truth")
                for row in DRAWN:
                    run = roll_outs.get((name, row))
                    states = _states(run)
                    if run is not None and states:
                        style = palette.model_style(row.model)
                        where = run.prediction["times"]
                        values = states[coordinate]
                        axes.plot(where, values, color=style.colour, linestyle=style.dashes, label=style.label)
                axes.set(ylabel="xy"[coordinate], xlim=(0, system.end))
                low, high = float(truth[:, coordinate].min()), float(truth[:, coordinate].max())
                axes.set_ylim(low - 0.25 * (high - low), high + 0.25 * (high - low))
                if coordinate == 0:
                    axes.set_title(system.title)
                    axes.tick_params(labelbottom=False)
                else:
                    axes.set_xlabel("time t (no unit)")
        curves.legend_below(figure, list(panels.ravel()))
        curves.write_finding(figure, finding)
    return figure


def draw_curves(groups: Groups) -> Figure:
    """Draw the test error over iterations, two systems in a row, with the paper's numbers as lines."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 8.8), layout=_layout())
        panels = figure.subplots(3, 2).ravel()
        for axes, (name, system) in zip(panels, SYSTEMS.items(), strict=True):
            members = [groups[name, row] for row in (LRC_S, LRC_A, ADAPTIVE) if (name, row) in groups]
            curves.draw_curves(axes, members, ("test_mean_absolute_error",))
            for row, key in ((LRC_S, "lrc"), (ADAPTIVE, "neural-ode")):
                style = palette.model_style(row.model)
                axes.axhline(
                    CLAIMED["test loss"][name][key].mean, color=style.colour, linestyle=(0, (1, 3)), linewidth=1.2,
                    label=f"paper, {'LRC' if row == LRC_S else style.label}",
                )  # fmt: skip
            axes.set(title=system.title, xlabel="iteration", ylabel="mean absolute error", yscale="log")
        curves.legend_below(figure, list(panels))
        curves.write_finding(figure, _curves_finding(groups))
    return figure


def _curves_finding(groups: Groups) -> str:
    """Count the systems on which LRC-S is below the paper's error after the iterations at which claims are judged."""
    of_lrc = {name: groups[name, LRC_S] for name in SYSTEMS if (name, LRC_S) in groups}
    errors = {name: error.mean for name, group in of_lrc.items() if (error := mean_error(group)) is not None}
    if not errors:
        return "Test error over the iterations"
    marks = sorted({judged_mark(of_lrc[name]) or of_lrc[name].epochs for name in errors})
    judged = ", when claims are judged," if marks == [JUDGED] else ""
    below = sum(mean <= CLAIMED["test loss"][name]["lrc"].mean for name, mean in errors.items())
    return (
        f"After {join_words(marks)} iterations{judged} the mean error of LRC-S is at or below the paper's on {below} "
        f"of {len(errors)} systems"
    )


def _layout(room: float = 0.09) -> Any:
    """Return a layout with room, in inches, between rows of panels for a title below an axis label or a legend."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(h_pad=room)


def _states(run: FinishedRun | None) -> list[list[float]]:
    """Return the roll-out as [xs, ys], or an empty list without one."""
    if run is None or "states" not in run.prediction:
        return []
    return [list(column) for column in zip(*run.prediction["states"], strict=True)]


# Height of a panel of the phase portraits over its width.
PANEL = 0.85


# A roll-out is shown this far beyond the truth, as a share of the truth's width or height.
BEYOND = 0.5


def _set_limits(axes: Any, truth: Any, roll_outs: Sequence[Sequence[Sequence[float]]]) -> None:
    """Limit the axes to the curves and a margin, at one scale for both; a roll-out that diverges leaves the panel."""
    low, high = truth.min(0).values.tolist(), truth.max(0).values.tolist()
    for i, extent in enumerate([high[i] - low[i] for i in (0, 1)]):
        values = [value for states in roll_outs for value in states[i] if math.isfinite(value)]
        low[i] = max(low[i] - BEYOND * extent, min([low[i], *values]))
        high[i] = min(high[i] + BEYOND * extent, max([high[i], *values]))
    width, height = (1.2 * (high[i] - low[i]) for i in (0, 1))
    width, height = max(width, height / PANEL), max(height, width * PANEL)
    axes.set_xlim((low[0] + high[0] - width) / 2, (low[0] + high[0] + width) / 2)
    axes.set_ylim((low[1] + high[1] - height) / 2, (low[1] + high[1] + height) / 2)
    axes.set_box_aspect(PANEL)
