"""The demo: an LRC and a Neural ODE learn two systems; a table and a figure compare them with truth and paper."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet_paper.artefacts.neural_ode.rows import CLAIMED
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.reading import read_run_folder
from lrcnet_paper.results.roll_out import save_roll_outs
from lrcnet_paper.tasks.neural_ode import SYSTEMS, trajectory
from lrcnet_paper.training import RunSpec, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs = Mapping[tuple[str, str], FinishedRun]
"""(system, model) -> finished run."""

DEMO_SYSTEMS = ("spiral", "lotka-volterra-asymptotic")
DEMO_MODELS = ("lrc-s", "neural-ode")
METRIC = "mean_absolute_error"


def run_demo(
    out: str | os.PathLike[str],
    *,
    seed: int = 0,
    iterations: int = 1000,
    on_start: Callable[[RunSpec], None] = lambda spec: None,
) -> dict[tuple[str, str], FinishedRun]:
    """Train each model of the demo on each system; finished runs are read, not trained again.

    Args:
        out: folder of the runs.
        seed: random seed for weights and training windows.
        iterations: training steps of each run.
        on_start: called with each run before it is trained.

    Returns:
        (system, model) -> the finished run with its roll-out.
    """
    specs = [
        RunSpec("neural-ode", system, model, seed=seed, iterations=iterations)
        for system in DEMO_SYSTEMS
        for model in DEMO_MODELS
    ]
    for spec in specs:
        on_start(spec)
        run(spec, out)
    save_roll_outs(out)
    return {(spec.variant, spec.model): read_run_folder(Path(out) / spec.folder_name()) for spec in specs}


def format_table(runs: Runs) -> str:
    """Format one line per run: the paper's error and ours, over the whole trajectory from its first point alone."""
    titles = ("system", "model", "solver", "paper", "ours", "ms/iteration", "parameters")
    rows = [titles]
    for (system, model), finished in runs.items():
        result = finished.result
        rows.append(
            (
                SYSTEMS[system].title,
                palette.model_label(model),
                "Euler" if model == "lrc-s" else "Dormand-Prince",
                str(CLAIMED["test loss"][system]["lrc" if model == "lrc-s" else model]),
                f"{result.metrics[METRIC]:.3f}",
                f"{1000 * result.seconds_per_epoch:.1f}",
                str(result.parameters),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    iterations = next(iter(runs.values())).result.epochs
    return "\n".join(
        [
            "Mean absolute error over 1000 points, given the first one:",
            "",
            lines[0],
            "-" * len(lines[0]),
            *lines[1:],
            "",
            f"One seed, {iterations} iterations; the paper: three seeds, 1000 to 4000 iterations.",
            "Each model is trained and tested by its own solver, as in the paper.",
        ]
    )


def draw_trajectories(runs: Runs) -> Figure:
    """Draw each system in a row: its orbit in the plane, and its first coordinate over time."""
    from matplotlib.figure import Figure

    systems = list(dict.fromkeys(system for system, _ in runs))
    with palette.figure_style():
        figure = Figure(figsize=(9.0, 3.1 * len(systems) + 0.4), layout="constrained")
        panels = figure.subplots(len(systems), 2, width_ratios=(1, 1.9), squeeze=False)
        for (orbit, course), name in zip(panels, systems, strict=True):
            times, truth = trajectory(name)
            title = SYSTEMS[name].title
            orbit.set(title=title, xlabel="x", ylabel="y")
            course.set(title=f"{title} over time", xlabel="time t", ylabel="x", xlim=(0, SYSTEMS[name].end))
            style_of_truth = {"color": palette.GREY, "alpha": 0.45, "linewidth": 5, "label": "truth"}
            orbit.plot(*truth.T.numpy(), **style_of_truth)
            course.plot(times, truth[:, 0], **style_of_truth)
            for (system, model), finished in runs.items():
                if system == name:
                    model_style = palette.model_style(model)
                    xs, ys = zip(*finished.prediction["states"], strict=True)
                    style = {"color": model_style.colour, "linestyle": model_style.dashes, "label": model_style.label}
                    orbit.plot(xs, ys, **style)
                    course.plot(finished.prediction["times"], xs, **style)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
