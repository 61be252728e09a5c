"""Figures of the six dynamical systems: orbits, trajectories and learning curves, ours beside the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Picture
from lrcnet_paper.artefacts import curves
from lrcnet_paper.artefacts.neural_ode.rows import ADAPTIVE, CLAIMED, LRC_A, LRC_S, Row
from lrcnet_paper.results.groups import Group
from lrcnet_paper.tasks.neural_ode import SYSTEMS, trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lrcnet_paper.results.finished_run import FinishedRun

Groups = Mapping[tuple[str, Row], Group]
RollOuts = Mapping[tuple[str, Row], "FinishedRun | None"]
DRAWN = (LRC_S, ADAPTIVE)


def draw_pictures(groups: Groups) -> tuple[list[Picture], list[str]]:
    """Draw phase portraits, trajectories and learning curves, and list the pictures that could not be drawn."""
    pictures: list[Picture] = []
    skipped: list[str] = []
    roll_outs = {key: next((r for r in group.runs if r.prediction), None) for key, group in groups.items()}
    if any(roll_outs.values()):
        seeds = sorted({run.result.seed for run in roll_outs.values() if run is not None})
        lengths = sorted({run.result.epochs for run in roll_outs.values() if run is not None})
        provenance = (
            f"seed {', '.join(map(str, seeds))}, after {', '.join(map(str, lengths))} iterations, each model by its "
            "own solver"
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
                "Test error by each model's own solver during training: mean over seeds; the band reaches from the "
                "best to the worst seed; the dotted line is the paper's LRC.",
                "Six panels of test error over iterations on a logarithmic axis, for LRC-S, LRC-A and Neural ODE.",
                draw_curves(groups, {system: row["lrc"].mean for system, row in CLAIMED["test loss"].items()}),
            )
        )
    else:
        skipped.append("learning curves: no run has a metrics file")
    return pictures, skipped


def draw_phase_portraits(roll_outs: RollOuts) -> Figure:
    """Draw y over x, two systems in a row."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 9.6), layout=_layout())
        panels = figure.subplots(3, 2).ravel()
        for axes, (name, system) in zip(panels, SYSTEMS.items(), strict=True):
            truth = trajectory(name)[1]
            axes.plot(*truth.T.numpy(), color=palette.GREY, alpha=0.45, linewidth=5, label="truth")
            axes.plot(*system.y0, marker="o", color=palette.INK, markersize=5, linestyle="none", label="initial state")
            for row in DRAWN:
                states = _states(roll_outs.get((name, row)))
                if states:
                    style = palette.model_style(row.model)
                    axes.plot(*states, color=style.colour, linestyle=style.dashes, label=style.label)
            axes.set(title=system.title, xlabel="x (no unit)", ylabel="y (no unit)")
            _set_limits(axes, truth)
        curves.legend_below(figure, list(panels))
    return figure


def draw_trajectories(roll_outs: RollOuts) -> Figure:
    """Draw x and y over time, two systems in a row."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 10.4), layout=_layout())
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
    return figure


def draw_curves(groups: Groups, paper: Mapping[str, float]) -> Figure:
    """Draw the test error over iterations, two systems in a row, with the paper's number for LRC as a line."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 8.4), layout=_layout())
        panels = figure.subplots(3, 2).ravel()
        for axes, (name, system) in zip(panels, SYSTEMS.items(), strict=True):
            members = [groups[name, row] for row in (LRC_S, LRC_A, ADAPTIVE) if (name, row) in groups]
            curves.draw_curves(axes, members, ("test_mean_absolute_error",))
            axes.axhline(paper[name], color=palette.INK, linestyle=(0, (1, 2)), linewidth=1.2, label="paper, LRC")
            axes.set(title=system.title, xlabel="iteration", ylabel="mean absolute error", yscale="log")
        curves.legend_below(figure, list(panels))
    return figure


def _layout() -> Any:
    """Return a layout with room between rows of panels for a title below an axis label."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return ConstrainedLayoutEngine(h_pad=0.09)


def _states(run: FinishedRun | None) -> list[list[float]]:
    """Return the roll-out as [xs, ys], or an empty list without one."""
    if run is None or "states" not in run.prediction:
        return []
    return [list(column) for column in zip(*run.prediction["states"], strict=True)]


def _set_limits(axes: Any, truth: Any) -> None:
    """Limit the axes to the truth and a margin, so that a roll-out that leaves the panel does not shrink it."""
    for index, set_limits in enumerate((axes.set_xlim, axes.set_ylim)):
        low, high = float(truth[:, index].min()), float(truth[:, index].max())
        margin = 0.15 * (high - low)
        set_limits(low - margin, high + margin)
