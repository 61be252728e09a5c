"""Drawings of the attention artefact, and the packing of an attention map as short text."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lrcnet.pages import palette
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.results.provenance import Provenance, format_seed_and_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

SMALL = (24, 80)
"""Rows and columns of a packed map: half of the frame's, like the output of the first convolution."""
COLOUR_MAP = palette.SEQUENTIAL


def pack_map(attention: Tensor) -> str:
    """Pack a map (48, 160) as base64: halved in size, and scaled to integers from 0 (lowest) to 255 (highest)."""
    from torch.nn.functional import interpolate

    small = interpolate(attention[None, None], size=SMALL, mode="area")[0, 0]
    small = (small - small.min()) / (small.max() - small.min()).clamp_min(1e-12)
    return base64.b64encode((small * 255).round().byte().numpy().tobytes()).decode()


def unpack_map(text: str) -> NDArray[np.uint8]:
    """Return the map (24, 80) that `pack_map` packed."""
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(SMALL)


def draw_boxes(
    boxes: Mapping[str, Mapping[str, Mapping[float, Sequence[Mapping[str, float]]]]], finding: str = ""
) -> Figure:
    """Draw model -> season -> variance -> one box per seed; the boxes of all seeds are averaged."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    seasons = list(next(iter(boxes.values())))
    with palette.figure_style():
        figure = Figure(figsize=(7.6, 3.7), layout="constrained")
        panels = figure.subplots(1, len(seasons), sharey=True, squeeze=False)[0]
        for panel, season in zip(panels, seasons, strict=True):
            for position, (model, by_season) in enumerate(boxes.items()):
                for k, seeds in enumerate(by_season[season].values()):
                    _draw_box(
                        panel, position + 0.38 * (k - 0.5), seeds, palette.model_style(model).colour, dark=bool(k)
                    )
            panel.set_xticks(range(len(boxes)), [palette.model_label(model) for model in boxes])
            panel.set(title=season, xlabel="model")
            panel.grid(False, axis="x")
        low = min(b["low"] for m in boxes.values() for s in m.values() for v in s.values() for b in v)
        panels[0].set(ylabel="structural similarity (1: unchanged)", ylim=(min(0.0, low - 0.02), 1.02))
        names = [f"variance {v:g}" for v in next(iter(boxes.values()))[seasons[0]]]
        patches = [
            Patch(facecolor=palette.GREY, alpha=0.35 if not k else 0.85, hatch="" if not k else "///", label=name)
            for k, name in enumerate(names)
        ]
        marks = [
            Line2D([], [], color=palette.INK, linewidth=1.6, label="median"),
            Line2D([], [], label="mean", linestyle="none", **_MEAN),
            Patch(facecolor="none", edgecolor=palette.INK, label="box: quartiles"),
            Line2D([], [], color=palette.INK, linewidth=1.0, marker="|", label="within 1.5 box lengths"),
        ]
        figure.legend(handles=[*patches, *marks], loc="outside lower center", ncols=3)
        write_finding(figure, finding)
    return figure


_MEAN: Mapping[str, Any] = {
    "marker": "o",
    "markerfacecolor": palette.PAPER,
    "markeredgecolor": palette.INK,
    "markersize": 4,
}


def _draw_box(panel: Any, where: float, seeds: Sequence[Mapping[str, float]], colour: str, *, dark: bool) -> None:
    mean = {name: float(np.mean([box[name] for box in seeds])) for name in seeds[0]}
    stats = {
        "whislo": mean["low"],
        "q1": mean["first_quartile"],
        "med": mean["median"],
        "q3": mean["third_quartile"],
        "whishi": mean["high"],
        "mean": mean["mean"],
        "fliers": [],
    }
    panel.bxp(
        [stats],
        positions=[where],
        widths=0.3,
        manage_ticks=False,
        showmeans=True,
        patch_artist=True,
        boxprops={
            "facecolor": colour,
            "alpha": 0.85 if dark else 0.35,
            "hatch": "///" if dark else "",
            "edgecolor": palette.INK,
        },
        medianprops={"color": palette.INK, "linewidth": 1.6},
        whiskerprops={"color": palette.INK},
        capprops={"color": palette.INK},
        meanprops=dict(_MEAN),
    )


def draw_grid(
    frames: NDArray[Any], maps: Mapping[str, tuple[Mapping[str, str], Provenance]], finding: str = ""
) -> Figure:
    """Draw frames (1 + variances, 48, 160, 3) beside model -> (variance -> packed map, provenance).

    The maps are products of several layers, so a small bright spot holds most of the attention; colours that follow its
    square root show the rest too.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    columns = 1 + len(maps)
    root = PowerNorm(0.5, vmin=0, vmax=255)
    with palette.figure_style():
        figure = Figure(figsize=(1.75 * columns + 0.7, 0.56 * len(frames) + 0.8), layout="compressed")
        grid = figure.subplots(len(frames), columns, squeeze=False)
        names = list(next(iter(maps.values()))[0]) if maps else ["0", "0.1", "0.2"]
        for row, (name, frame) in enumerate(zip(names, frames, strict=True)):
            # Noise may leave the range of colours. Without interpolation the file holds the pixels of the frame instead
            # of enlarged ones.
            grid[row, 0].imshow(frame.clip(0, 1), interpolation="none")
            grid[row, 0].set_ylabel("no noise" if float(name) == 0 else f"σ² = {name}", fontsize="small")
            for panel, (packed, _) in zip(grid[row, 1:], maps.values(), strict=True):
                image = panel.imshow(unpack_map(packed[name]), cmap=COLOUR_MAP, norm=root, interpolation="none")
        grid[0, 0].set_title("camera", fontsize="small")
        for panel, (model, (_, provenance)) in zip(grid[0, 1:], maps.items(), strict=True):
            panel.set_title(f"{palette.model_label(model)}\n{format_seed_and_loss(provenance)}", fontsize=6.5)
        for panel in grid.flat:
            panel.grid(False)
            panel.set(xticks=[], yticks=[])
            for spine in panel.spines.values():
                spine.set_visible(False)
        if maps:
            bar = figure.colorbar(image, ax=grid, label="attention", pad=0.01, aspect=12)
            bar.set_ticks([0, 63.75, 255], labels=["0", "0.25", "1"])
            bar.outline.set_visible(False)
        write_finding(figure, finding)
    return figure
