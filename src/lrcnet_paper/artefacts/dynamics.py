"""Figures: outputs of LTC, STC and LRC over one drive; and how the elastance damps an STC by input and state.

The first is in `drive_dynamics.py`, on trained policies. The second is drawn by `lrcnet.theory.damping` from a network
of one unit and one input whose parameters stand below: no training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from lrcnet.cells import LRCCell
from lrcnet.pages import palette
from lrcnet.theory import Damping, Domain, damping
from lrcnet_paper.artefacts import drive_dynamics
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Picture, Rendered, Table
from lrcnet_paper.results.verdict import Verdict
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from pathlib import Path

    from lrcnet_paper.results.finished import Finished
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

TITLE = "LRCs move gently: the elastance damps an STC"

# The caption: the elastance can fully reduce the STC's dynamics to zero, or keep it as it is.
CLAIMED: Mapping[str, Any] = {"elastance": (0.0, 1.0)}

# Rows of a, b, g, k, o: the unit's own state, then the input. The elastance sees both, and k_eps is wide enough for a
# peak near 1.
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
NEAR = 0.01  # how close to 0 or 1 counts as fully damped or as kept


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """The policies of the first figure; the network of the second is given, not trained."""
    return driving.planned(drive_dynamics.MODELS, check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """The policies of the first figure."""
    return driving.wants(result, drive_dynamics.MODELS)


def analyse(folder: Path) -> dict[str, Any]:
    """What a policy steers over one drive."""
    return drive_dynamics.measure(folder)


def render(runs: Sequence[Finished]) -> Rendered:
    """Policies over one drive, then one unit under a sweep of its input and state."""
    first, second = drive_dynamics.render(runs), _render_damping()
    return Rendered(
        tables=[*first.tables, *second.tables],
        pictures=[*first.pictures, *second.pictures],
        claims=[*first.claims, *second.claims],
        skipped=first.skipped,
    )


def _render_damping() -> Rendered:
    """Sweeps the input and the state of the unit, with both forms of elastance."""
    shown = {form: damping(_unit(form), Domain(STATES, INPUTS), points=POINTS) for form in FORMS}
    rows = [
        (
            palette.look(FORMS[form]).label,
            float(found.elastance.min()),
            float(found.elastance.max()),
            float((found.elastance.amax(1) - found.elastance.amin(1)).max()),
            float((found.elastance.amax(0) - found.elastance.amin(0)).max()),
        )
        for form, found in shown.items()
    ]
    low, high = min(row[1] for row in rows), max(row[2] for row in rows)
    whole = 0 <= low < NEAR and 1 - NEAR < high <= 1
    depends = all(min(row[3:]) > NEAR for row in rows)
    return Rendered(
        tables=[
            Table(
                "damping",
                f"Elastance over states {STATES[0]:g} to {STATES[1]:g} and inputs {INPUTS[0]:g} to {INPUTS[1]:g}",
                ("form", "smallest", "largest", "change along the input", "change along the state"),
                rows,
                "The slope of the LRC is the elastance times that of the STC. The symmetric form peaks at tanh(k / 2), "
                "so it keeps the STC's slope only as far as k is large; here k = 6.",
            )
        ],
        pictures=[
            Picture(
                "damping",
                "Slope dh/dt of an STC and of the LRCs with the same synapses, over the input (left) and the state "
                "(right). Between the dashed zero and the STC's own curve the elastance decides.",
                "Two plots of the slope dh/dt of one unit, over its input and over its state. The STC's curve is the "
                "outermost; the LRC curves lie between it and zero, near zero on one or both sides.",
                _draw(shown),
            )
        ],
        claims=[
            Claim(
                "The elastance can reduce the STC's dynamics to zero, or keep it as it is.",
                "0 to 1",
                f"{low:.2g} to {high:.4g}",
                Verdict("reproduced" if whole else "refuted"),
            ),
            Claim(
                "It damps in an input- and state-dependent way.",
                "dependent on both",
                f"changes by at least {min(min(row[3:]) for row in rows):.2g} along each",
                Verdict("reproduced" if depends else "refuted"),
            ),
        ],
    )


def _unit(form: str) -> LRCCell:
    """The one unit with an elastance of that form."""
    cell = LRCCell(1, 1, elastance=form, input_map=False, dtype=torch.float64)
    shapes = {name: value.shape for name, value in cell.circuit().items() if value is not None}
    cell.load_circuit(
        {name: torch.tensor(CIRCUIT[name], dtype=torch.float64).reshape(shape) for name, shape in shapes.items()}
    )
    return cell


def _draw(shown: Mapping[str, Damping]) -> Any:
    from matplotlib.figure import Figure

    middle = POINTS // 2
    with palette.style():
        figure = Figure(figsize=(7.2, 3.1), layout="constrained")
        left, right = figure.subplots(1, 2)
        for panel, cut, axis, words in (
            (left, (3 * POINTS // 4, slice(None)), "inputs", "over the input, at h = {h:.2g}"),
            (right, (slice(None), middle + POINTS // 16), "states", "over the state, at x = {x:.2g}"),
        ):
            for form, found in shown.items():
                look = palette.look(FORMS[form])
                where = getattr(found, axis).numpy()
                if form == "asymmetric":
                    panel.plot(where, found.stc[cut].numpy(), color=palette.INK, linestyle=(0, (5, 2)), label="STC")
                panel.plot(where, found.lrc[cut].numpy(), color=look.colour, linestyle=look.dashes, label=look.label)
                h, x = float(found.states[cut[0]].max()), float(found.inputs[cut[1]].max())
            panel.axhline(0.0, color=palette.VERMILION, linewidth=0.9, linestyle=(0, (2, 2)))
            panel.set(title=words.format(h=h, x=x), xlabel="input x" if axis == "inputs" else "state h")
        left.set_ylabel("slope dh/dt")
        left.legend(loc="best")
    return figure


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
