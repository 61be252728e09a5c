"""Figure: accuracy over the share of dropped readings, each model with and without knowing the gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Picture, minus_signs
from lrcnet_paper.artefacts.beyond import Score, score_runs
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.irregular.gaps import knows_gaps
from lrcnet_paper.artefacts.irregular.runs import HEADLINE

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun

ShareScores = Mapping[tuple[str, bool], Mapping[int, Score]]
"""(model, whether it knows the gaps) -> share of dropped readings in percent -> score."""
# A mean gain of fewer points than this could be the spread over seeds.
GAIN = 5.0


def share_scores(runs: Sequence[FinishedRun]) -> ShareScores:
    """Group the runs on thinned oscillations by model, knowledge of the gaps and share of dropped readings."""
    curves: dict[tuple[str, bool], dict[int, Score]] = {}
    for one in score_runs(runs, lambda spec: spec.variant):
        share = int(one.spec.variant.removeprefix("drop-"))
        curves.setdefault((one.spec.model, knows_gaps(one.spec)), {})[share] = one
    return curves


def mean_gains(curves: ShareScores) -> dict[int, float]:
    """Return share -> what knowing the gaps gains, in points of accuracy, as a mean over the models that have both."""
    gains: dict[int, list[float]] = {}
    for model in dict.fromkeys(model for model, _ in curves):
        known, unknown = curves.get((model, True), {}), curves.get((model, False), {})
        for share in known.keys() & unknown.keys():
            first, second = known[share].value, unknown[share].value
            if first is not None and second is not None:
                gains.setdefault(share, []).append(first.mean - second.mean)
    return {share: sum(values) / len(values) for share, values in sorted(gains.items())}


def describe_gains(curves: ShareScores) -> str:
    """Say from which share of dropped readings on the gaps matter."""
    gains = mean_gains(curves)
    if not gains:
        return "No model has been trained with and without gaps."
    shares = sorted(gains)
    # A mean over models: a single model may gain less.
    text = f"Knowing the gaps gains at least {GAIN:g} points on average over the models"
    first = next((s for s in shares if all(gains[later] >= GAIN for later in shares if later >= s)), None)
    listed = minus_signs(", ".join(f"{gain:+.1f} points at {share} %" for share, gain in gains.items()))
    if first is None:
        return f"Knowing the gaps gains less than {GAIN:g} points on average over the models ({listed})."
    if first == shares[0]:
        return f"{text} at every share of dropped readings ({listed})."
    return f"{text} once {first} % of the readings are dropped ({listed})."


CHANCE = 25
"""Accuracy of guessing one of four classes, %."""


def draw_shares(curves: ShareScores) -> Picture:
    """Draw one panel per model: accuracy with the gaps (solid) and without (dashed)."""
    finding = describe_gains(curves)
    budgets = sorted({one.spec.budget for by_share in curves.values() for one in by_share.values()})
    seeds = sorted({len(one.runs) for by_share in curves.values() for one in by_share.values()})
    return Picture(
        "dropped-readings",
        "Test accuracy on generated oscillations over the share of readings that are dropped, at equal numbers of "
        f"parameters; {', '.join(budgets)} budget, {' to '.join(map(str, seeds))} seeds. Chance is {CHANCE} %.",
        f"A small plot for each model with two lines, one with and one without knowledge of the gaps. {finding}",
        _draw(curves, finding),
    )


def _draw(curves: ShareScores, finding: str) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    models = [model for model in HEADLINE if any((model, known) in curves for known in (True, False))]
    with palette.figure_style():
        columns = min(4, len(models))
        lines = -(-len(models) // columns)
        figure = Figure(figsize=(7.2, 0.9 + 1.9 * lines), layout="constrained")
        panels = list(figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).flat)
        for axes, model in zip(panels, models, strict=False):
            style = palette.model_style(model)
            for known, dashes, marker in ((True, "-", "o"), (False, (0, (2, 2)), "s")):
                points = sorted(curves.get((model, known), {}).items())
                values = [(share, one.value) for share, one in points if one.value is not None]
                axes.errorbar(
                    [share for share, _ in values],
                    [value.mean for _, value in values],
                    yerr=[value.std or 0.0 for _, value in values],
                    color=style.colour if known else palette.GREY,
                    linestyle=dashes,
                    marker=marker,
                    markersize=3.5,
                )
            axes.axhline(CHANCE, color=palette.INK, linewidth=0.9, linestyle=":")
            axes.set(title=style.label, xlabel="readings dropped (%)", ylim=(20, 102))
        for axes in panels[len(models) :]:
            axes.set_visible(False)
        figure.supylabel("test accuracy (%)", fontsize=9)
        marks = [
            Line2D([], [], color=palette.INK, marker="o", markersize=3.5, label="gaps known, in the model's colour"),
            Line2D([], [], color=palette.GREY, linestyle=(0, (2, 2)), marker="s", markersize=3.5, label="gaps unknown"),
            Line2D([], [], color=palette.GREY, linestyle="none", marker="|", markersize=9, label="standard deviation"),
            Line2D([], [], color=palette.INK, linewidth=0.9, linestyle=":", label="chance"),
        ]
        figure.legend(handles=marks, loc="outside lower center", ncols=2)
        write_finding(figure, finding)
    return figure
