"""Figure: the asymmetric and the symmetric shape of the membrane's elastance, drawn by the function that cells use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from lrcnet import liquid
from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Table
from lrcnet_paper.artefacts.artefact import Artefact, Claim, Rendered
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.results.verdict import judge_fact
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "The two shapes of the elastance"
SAYS = "The elastance lies between 0 and 1 and is a sigmoid or a bump."

# The paper's text on Eqs. 4 and 5: both elastances lie in [0, 1]; only the second is symmetric.
CLAIMED: Mapping[str, Any] = {"range": (0.0, 1.0), "symmetric": ("symmetric",)}

WIDTHS = (0.5, 1.0, 2.0, 4.0)  # k of the symmetric form; cells start with k = 1
REACH = 10.0


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan no run: a formula needs no training."""
    check_budget(budget)
    return []


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Draw both forms and measure their range and symmetry."""
    w = torch.linspace(-REACH, REACH, 401, dtype=torch.float64)
    curves = {"asymmetric": liquid.elastance_gate("asymmetric", w)}
    curves |= {
        f"symmetric, k = {k:g}": liquid.elastance_gate("symmetric", w, torch.tensor(k, dtype=w.dtype)) for k in WIDTHS
    }
    rows = [
        (
            name,
            "σ(w)" if name == "asymmetric" else "σ(w + k) - σ(w - k)",
            float(curve.min()),
            float(curve.max()),
            float((curve - curve.flip(0)).abs().max()),
        )
        for name, curve in curves.items()
    ]
    inside = all(low >= 0.0 and high <= 1.0 for _, _, low, high, _ in rows)
    symmetric = all((asymmetry < 1e-12) == name.startswith("symmetric") for name, *_, asymmetry in rows)
    return Rendered(
        tables=[
            Table(
                "shapes",
                f"Elastance over w in [-{REACH:g}, {REACH:g}]",
                ("form", "ε(w)", "smallest", "largest", "largest |ε(w) - ε(-w)|"),
                rows,
                "The symmetric form peaks at tanh(k / 2), so that k sets both its width and its height.",
            )
        ],
        pictures=[
            Picture(
                "shapes",
                "Elastance ε(w): asymmetric (left), and symmetric with a width of k (right), as the cells compute it.",
                "Two plots over w from -10 to 10. Left: a sigmoid that rises from 0 to 1. Right: four bumps, symmetric "
                "about 0, which grow higher and wider as k goes from 0.5 to 4.",
                _draw_shapes(w, curves),
            )
        ],
        claims=[
            Claim(
                "Both elastances lie in [0, 1].",
                "0 to 1",
                f"{min(r[2] for r in rows):.3g} to {max(r[3] for r in rows):.3g}",
                judge_fact(inside),
            ),
            Claim(
                "The second form is symmetric, the first is not.",
                "symmetric",
                f"ε(w) and ε(-w) differ by at most {max(r[4] for r in rows[1:]):.0e}",
                judge_fact(symmetric),
            ),
        ],
    )


def _draw_shapes(w: torch.Tensor, curves: Mapping[str, torch.Tensor]) -> Any:
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        left.plot(w.numpy(), curves["asymmetric"].numpy(), color=palette.PURPLE)
        left.set(title="Asymmetric:  ε(w) = σ(w)", ylabel="elastance ε(w)", ylim=(-0.03, 1.06))
        dashes = ((0, (1, 1)), "-", (0, (5, 1.5)), (0, (4, 1, 1, 1)))
        for k, dash in zip(WIDTHS, dashes, strict=True):
            curve = curves[f"symmetric, k = {k:g}"].numpy()
            name = f"k = {k:g}, initial value" if k == 1 else f"k = {k:g}"
            right.plot(w.numpy(), curve, color=palette.VERMILION, linestyle=dash, label=name)
        right.set(title="Symmetric:  ε(w) = σ(w + k) \N{MINUS SIGN} σ(w \N{MINUS SIGN} k)")
        right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=2.6, reverse=True)
        for axes in (left, right):
            for end in (0.0, 1.0):
                axes.axhline(end, color=palette.INK, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set(xlabel="w (no unit)", xlim=(-REACH, REACH), xticks=(-10, -5, 0, 5, 10))
        left.annotate("the paper's range, 0 to 1", (-9.5, 0.98), va="top", fontsize=8)
        low, high = (min(float(c.min()) for c in curves.values()), max(float(c.max()) for c in curves.values()))
        outside = "" if low >= 0 and high <= 1 else "not "
        write_finding(figure, f"Both elastances stay {outside}between 0 and 1: one is a sigmoid, the other a bump")
    return figure


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, says=SAYS)
