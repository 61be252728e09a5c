"""The picture of `lrcnet bench learning-archive`: accuracy over the learning rate, a panel per set and one for all."""

import math
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet_paper.benchmarks import learning_archive as archive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {
    "GRU": palette.model_style("gru"),
    "LSTM": palette.model_style("lstm"),
    "LRCU-S, paper": palette.ModelStyle("LRCU-S, the paper's initial values", palette.GREY, (0, (1, 1)), "o"),
    "LRCU-S": palette.model_style("lrcu-s"),
}


def draw(results: dict[archive.Training, float], path: Path) -> None:
    """Draw the sets whose trainings with Adam are complete."""
    from matplotlib.figure import Figure

    curves = _read_curves(results)
    if not curves:
        return
    average = {
        layer: [statistics.fmean(curve[layer][i] for curve in curves.values()) for i in range(len(archive.RATES))]
        for layer in STYLES
    }
    columns = math.ceil(math.sqrt(len(curves) + 1))
    rows = math.ceil((len(curves) + 1) / columns)
    with palette.figure_style():
        figure = Figure(figsize=(11, 2.5 * rows + 0.4), layout="constrained")
        panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
        for panel, (name, curve) in zip(
            panels, {f"mean of {len(curves)} sets": average, **curves}.items(), strict=False
        ):
            _draw_panel(panel, name, curve)
        for panel in panels[len(curves) + 1 :]:
            panel.remove()
        for panel in panels[: len(curves) + 1][-columns:]:
            panel.tick_params(labelbottom=True)
        figure.supxlabel("learning rate of Adam")
        figure.supylabel("test accuracy (%)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(STYLES) + 1)
        figure.savefig(path, dpi=150)


def _read_curves(results: dict[archive.Training, float]) -> dict[str, dict[str, list[float]]]:
    curves = {
        name: {layer: [archive.mean_accuracy(results, name, layer, rate) for rate in archive.RATES] for layer in STYLES}
        for name in archive.SETS
    }
    return {
        name: curve
        for name, curve in curves.items()
        if not any(map(math.isnan, (v for c in curve.values() for v in c)))
    }


def _draw_panel(panel: "Axes", name: str, curve: dict[str, list[float]]) -> None:
    for layer, style in STYLES.items():
        line: dict[str, Any] = {"color": style.colour, "linestyle": style.dashes, "marker": style.marker}
        panel.semilogx(archive.RATES, curve[layer], label=style.label, markersize=4, **line)
    panel.axvline(archive.USUAL_RATE, color=palette.GRID, linewidth=4, zorder=0, label="the usual rate")
    panel.set_title(name, fontsize="medium")
    panel.set_xticks(archive.RATES, [f"{rate:g}" for rate in archive.RATES], rotation=45)
    panel.minorticks_off()
