"""Figure: best epochs and Lipschitz constants of LTC, STC and LRC beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Picture
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.results.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class EfficiencyDots(NamedTuple):
    """One row: the paper's best epoch and constant ("best", "lipschitz"), and our own, apart for both parts."""

    paper: Mapping[str, Estimate]
    epoch: Estimate | None
    features: Estimate | None
    state: Estimate | None


def draw_efficiency(rows: Mapping[str, EfficiencyDots]) -> Picture:
    """Draw two panels with one row per network; at least one row has a constant."""
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 0.42 * len(rows) + 1.9), layout="constrained")
        epochs, constants = figure.subplots(1, 2, sharey=True)
        for row, (name, dots) in enumerate(rows.items()):
            _draw_row(epochs, row, name, dots.paper["best"], dots.epoch)
            _draw_row(constants, row, name, dots.paper["lipschitz"], dots.features)
            if dots.state is not None:
                colour = driving.LINES[name][0]
                constants.plot(dots.state.mean, row, "s", markersize=6, **_hollow(colour))
        epochs.set_yticks(range(len(rows)), list(rows))
        epochs.set(xlabel="epoch of the best validation loss", ylim=(len(rows) - 0.5, -0.5))
        constants.set(xlabel="Lipschitz constant (in 1e-4)", xscale="log")
        for axes in (epochs, constants):
            axes.grid(False, axis="y")
        figure.legend(handles=_marks(), loc="outside lower center", ncols=3)
        write_finding(figure, _finding(rows))
    return Picture(
        "epochs-and-constants",
        "Epoch of the best validation loss, and largest norms of the output's Jacobian, mean ± standard deviation over "
        "seeds.",
        "Two panels with one row per network: the best epoch, and the Lipschitz constants with respect to features and "
        "to the state on a logarithmic axis, each with the paper's number as a diamond. The table has these numbers.",
        figure,
    )


def _draw_row(axes: Axes, row: int, name: str, paper: Estimate, ours: Estimate | None) -> None:
    colour = driving.LINES[name][0]
    axes.plot(paper.mean, row, "D", markersize=5, **_hollow(colour))
    if ours is not None:
        axes.errorbar(ours.mean, row, xerr=ours.std or 0.0, fmt="o", color=colour, markersize=6)


def _hollow(colour: str) -> dict[str, Any]:
    return {"markerfacecolor": palette.PAPER, "markeredgecolor": colour, "linestyle": "none"}


def _marks() -> list[Any]:
    from matplotlib.lines import Line2D

    ink = palette.INK
    return [
        Line2D([], [], marker="o", color=ink, linestyle="none", label="ours (constants: with respect to features)"),
        Line2D([], [], marker="s", label="ours, with respect to the state", **_hollow(ink)),
        Line2D([], [], marker="D", label="paper", **_hollow(ink)),
    ]


def _finding(rows: Mapping[str, EfficiencyDots]) -> str:
    constants = {name: dots.features for name, dots in rows.items() if dots.features is not None}
    least, most = (end(constants, key=lambda name: constants[name].mean) for end in (min, max))
    return (
        f"{least} reacts most gently to its features{driving.within_spread(constants, largest=False, by_ratio=True)}; "
        f"{most} reacts most strongly{driving.within_spread(constants, largest=True, by_ratio=True)}"
    )
