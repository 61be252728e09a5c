"""Figures: outputs of LTC, STC and LRC over one drive; damping of an STC by the elastance, over input and state.

The first figure shows trained networks and is drawn in `drive_dynamics.py`. The second needs no training:
`lrcnet.theory.damping` computes it for a network of one unit and one input, whose parameters stand below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from lrcnet.cells import LRCCell
from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Table
from lrcnet.theory import Damping, Domain, damping
from lrcnet_paper.artefacts import drive_dynamics
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.curves import legend_below, write_finding
from lrcnet_paper.results.verdict import judge_fact
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from pathlib import Path

    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

TITLE = "LRCs move gently: the elastance damps an STC"
SAYS = "The elastance damps an STC where input and state demand it, so that the output of an LRC oscillates less."

# The paper's caption: the elastance can fully reduce the STC's dynamics to zero, or keep it as it is.
CLAIMED: Mapping[str, Any] = {"elastance": (0.0, 1.0)}

# Rows of a, b, g, k and o: the unit's own state, then the input. The elastance depends on both, and k_eps is large
# enough for a peak near 1.
CIRCUIT: Mapping[str, Sequence[float]] = {
    "a": (4.0, 4.0),
    "b": (0.0, 0.0),
    "g": (0.5, 1.0),
    "k": (-2.0, 4.0),
    "g_l": (0.2,),
    "e_l": (1.0,),
    "o": (2.0, 4.0),
    "p": (0.0,),
    "k_eps": (6.0,),
}
STATES, INPUTS = (-2.0, 2.0), (-4.0, 4.0)
POINTS = 161
FORMS = {"asymmetric": "lrc-a", "symmetric": "lrc-s"}
TOLERANCE = 0.01  # an elastance this close to 0 damps fully; one this close to 1 does not damp


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the networks of the first figure; the network of the second is given, not trained."""
    return driving.plan_shared_head_runs(drive_dynamics.MODELS, check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """Return whether a result belongs to a network of the first figure."""
    return driving.wants_shared_head(result, drive_dynamics.MODELS)


def analyse(folder: Path) -> dict[str, Any]:
    """Measure the output of a network over one drive."""
    return drive_dynamics.measure(folder)


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Draw the networks over one drive, then one unit over a sweep of its input and state."""
    first, second = drive_dynamics.render(runs), _render_damping()
    return Rendered(
        tables=[*first.tables, *second.tables],
        pictures=[*first.pictures, *second.pictures],
        claims=[*first.claims, *second.claims],
        skipped=first.skipped,
        differences=first.differences,
    )


def _render_damping() -> Rendered:
    """Sweep the input and the state of the unit, with both forms of elastance."""
    sweeps = {form: damping(_build_unit(form), Domain(STATES, INPUTS), points=POINTS) for form in FORMS}
    rows = [
        (
            palette.model_label(FORMS[form]),
            float(sweep.elastance.min()),
            float(sweep.elastance.max()),
            float((sweep.elastance.amax(1) - sweep.elastance.amin(1)).max()),
            float((sweep.elastance.amax(0) - sweep.elastance.amin(0)).max()),
        )
        for form, sweep in sweeps.items()
    ]
    low, high = min(row[1] for row in rows), max(row[2] for row in rows)
    reaches_both = 0 <= low < TOLERANCE and 1 - TOLERANCE < high <= 1
    depends_on_both = all(min(row[3:]) > TOLERANCE for row in rows)
    return Rendered(
        tables=[
            Table(
                "damping",
                f"Elastance over states {STATES[0]:g} to {STATES[1]:g} and inputs {INPUTS[0]:g} to {INPUTS[1]:g}",
                ("form", "smallest", "largest", "change along the input", "change along the state"),
                rows,
                "The slope of the LRC is the elastance times that of the STC. The symmetric form peaks at tanh(k / 2), "
                "so it keeps the STC's slope only if k is large; here k = 6.",
            )
        ],
        pictures=[
            Picture(
                "damping",
                "Slope dh/dt of one STC unit and of LRC units with the same synapses, over the input (left) and the "
                "state (right).",
                "Two plots of the slope dh/dt of one unit, over its input and over its state. The STC's curve is the "
                "outermost; the LRC curves lie between it and zero, near zero on one or both sides.",
                _draw_damping(sweeps),
            )
        ],
        claims=[
            Claim(
                "The elastance can reduce the STC's dynamics to zero, or leave them as they are.",
                "0 to 1",
                f"{low:.2g} to {high:.4g}",
                judge_fact(reaches_both),
            ),
            Claim(
                "The elastance damps in a way that depends on the input and the state.",
                "dependent on both",
                f"changes by at least {min(min(row[3:]) for row in rows):.2g} along each",
                judge_fact(depends_on_both),
            ),
        ],
    )


def _build_unit(form: str) -> LRCCell:
    """Build the unit with an elastance of the given form."""
    cell = LRCCell(1, 1, elastance=form, input_map=False, dtype=torch.float64)
    shapes = {name: value.shape for name, value in cell.circuit().items() if value is not None}
    cell.load_circuit(
        {name: torch.tensor(CIRCUIT[name], dtype=torch.float64).reshape(shape) for name, shape in shapes.items()}
    )
    return cell


def _draw_damping(sweeps: Mapping[str, Damping]) -> Any:
    from matplotlib.figure import Figure

    middle = POINTS // 2
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.7), layout="constrained")
        left, right = figure.subplots(1, 2)
        for panel, line, axis, title in (
            (left, (3 * POINTS // 4, slice(None)), "inputs", "over the input, at h = {h:.2g}"),
            (right, (slice(None), middle + POINTS // 16), "states", "over the state, at x = {x:.2g}"),
        ):
            for form, sweep in sweeps.items():
                style = palette.model_style(FORMS[form])
                where = getattr(sweep, axis).numpy()
                if form == "asymmetric":
                    stc = palette.model_style("stc")
                    panel.plot(where, sweep.stc[line].numpy(), color=stc.colour, linestyle=stc.dashes, label="STC")
                values = sweep.lrc[line].numpy()
                panel.plot(where, values, color=style.colour, linestyle=style.dashes, label=style.label)
                h, x = float(sweep.states[line[0]].max()), float(sweep.inputs[line[1]].max())
            panel.axhline(0.0, color=palette.INK, linewidth=0.9, linestyle=(0, (5, 2)), label="no motion")
            panel.set(title=title.format(h=h, x=x), xlabel="input x" if axis == "inputs" else "state h")
        left.set_ylabel("slope dh/dt")
        legend_below(figure, [left])
        low, high = (getattr(torch.stack([s.elastance for s in sweeps.values()]), end)() for end in ("min", "max"))
        write_finding(
            figure, f"The elastance scales the STC's slope by {float(low):.3f} to {float(high):.3f} (paper: 0 to 1)"
        )
    return figure


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse, says=SAYS
)
