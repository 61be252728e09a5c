"""Figures: camera frames of both seasons with the policy's crop and predicted path; a diagram of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.driving_runs import Model
from lrcnet_paper.road_seeds import CLOSED_LOOP
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lrcnet_paper.driving.world import World
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

NAME = "scenes"
TITLE = "Lane keeping: scenes and policy"

# The convolutional head of the appendix: filters, kernel, stride and whether max pooling follows; the frame's rows and
# columns; the features that the recurrent layer gets.
CLAIMED: Mapping[str, Any] = {
    "head": ((24, 5, 2, False), (36, 5, 1, True), (48, 3, 1, True), (64, 3, 1, True), (64, 3, 1, False)),
    "picture": (48, 160),
    "features": 64,
}
POLICY = Model("lrcu-s")
# Colours on top of photographs: not the page's paper, which dark mode replaces, and not the colour of a model.
CROP, EXPERT = "#fdfdfd", "#ffe14d"
# The policy sees this many frames up to the moment that is shown, as in training.
FRAMES_SEEN = 32
# Metres over which a path is drawn.
PATH = 25


class Scene(NamedTuple):
    """A moment of the expert's drive over a road."""

    road: int
    season: str
    time: int


SCENES = (
    Scene(CLOSED_LOOP[3], "summer", 150),
    Scene(CLOSED_LOOP[11], "summer", 300),
    Scene(CLOSED_LOOP[19], "summer", 240),
    Scene(CLOSED_LOOP[5], "winter", 180),
    Scene(CLOSED_LOOP[12], "winter", 270),
    Scene(CLOSED_LOOP[21], "winter", 210),
)


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan one policy, LRCU-S; its seed 0 is drawn."""
    return driving.plan_runs((POLICY,), check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """Return whether a result is that of LRCU-S, seed 0, in our own world."""
    return driving.wants(result, (POLICY,)) and result.seed == 0


def analyse(folder: Path) -> dict[str, Any]:
    """Measure the curvatures that the policy predicts and the expert ("driver") steers at each scene, 1/m."""
    import torch

    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    predicted, expert_actions = [], []
    for scene in SCENES:
        _, frames, action = _replay(scene, FRAMES_SEEN)
        with torch.inference_mode():
            predicted.append(round(float(policy(torch.stack(frames)[None])[0, -1]), 6))
        expert_actions.append(round(action, 6))
    loss = _validation_loss(folder)
    return {
        "predicted": predicted,
        "driver": expert_actions,
        "trained": f"{trained.done} epochs",
        "validation_loss": loss,
    }


def _validation_loss(folder: Path) -> float | None:
    from lrcnet_paper.training.result import Result

    return Result.read(folder).metrics.get("validation_curvature_loss")


def _replay(scene: Scene, seen: int = 0) -> tuple[World, list[Any], float]:
    """Return the world at a scene, the last frames up to it, (48, 160, 3) each, and the expert's curvature there."""
    from lrcnet_paper.driving import World, expert_drive

    world = World([scene.road], season=scene.season, length=600.0)
    frames: list[Any] = []
    for time, step in enumerate(expert_drive(world, world.expert(), frames=False)):
        if time > scene.time - seen:
            frames.append(world.frames()[0])
        if time == scene.time:
            return world, frames, float(step.action[0])
    raise ValueError(f"the drive over road {scene.road} must last {scene.time} steps, but it ends earlier")


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Draw six scenes and the diagram; without a trained policy the scenes show the expert's path alone."""
    group = driving.find_groups(runs, (POLICY,)).get(POLICY)
    trained = [run for run in group.finished if NAME in run.analyses] if group is not None else []
    pictures = [_scenes(trained[0] if trained else None), _diagram()]
    skipped = [] if trained else ["the policy's path in the scenes: no policy has been trained"]
    return Rendered(tables=[_head_table()], pictures=pictures, skipped=skipped)


def _scenes(run: FinishedRun | None) -> Picture:
    from matplotlib.figure import Figure

    from lrcnet_paper.driving.camera import HEIGHT, WIDTH

    lens = _wide_lens()
    top, left = lens.above, (lens.width - WIDTH) // 2
    measurement = None if run is None else run.analyses[NAME]
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        panels = figure.subplots(2, 3)
        for number, (axes, scene) in enumerate(zip(panels.flat, SCENES, strict=True)):
            world, _, action = _replay(scene)
            # The browser scales the pixels; enlarged ones would make the file twice as large.
            axes.imshow(_wide_frame(world), interpolation="none")
            axes.plot(*_outline(top, left, HEIGHT, WIDTH), color=CROP, linewidth=1.0, label="input of a policy")
            axes.plot(*_path(action, lens), color=EXPERT, linewidth=2.2, linestyle=(0, (2, 1)), label="expert")
            if measurement is not None:
                axes.plot(
                    *_path(measurement["predicted"][number], lens),
                    color=palette.VERMILION,
                    linewidth=1.6,
                    label="LRCU-S",
                )
            axes.set(title=scene.season, xlim=(-0.5, lens.width - 0.5), ylim=(lens.height - 0.5, -0.5))
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(visible=False)
            axes.spines[:].set_visible(False)
        handles, labels = panels.flat[0].get_legend_handles_labels()
        legend = figure.legend(handles, labels, loc="outside lower center", ncols=3)
        # White and yellow lines are seen on the photographs, but not on a white page.
        legend.get_frame().set(facecolor="#5c6b55", alpha=1.0)
        legend.set_frame_on(True)
        for text in legend.get_texts():
            text.set_color(CROP)
        write_finding(figure, _scenes_finding(run))
    provenance = (
        "no policy has been trained, so only the expert's path is drawn"
        if measurement is None or run is None
        else f"policy: LRCU-S, seed {run.result.seed}, budget {run.result.budget}, after {measurement['trained']}, "
        f"validation loss {measurement['validation_loss']:.3f}"
    )
    return Picture(
        "scenes",
        "The project's own world, summer and winter. The lines are the paths of constant curvature that the expert and "
        f"the policy steer at that moment, over {PATH} m.",
        "Six pictures of a road from a car's camera, three in summer and three in winter, with a white crop frame and "
        "two paths drawn onto the road.",
        figure,
        details=f"{provenance[0].upper()}{provenance[1:]}.",
    )


def _wide_lens() -> Any:
    """Return a lens that sees more than a policy does."""
    from lrcnet_paper.driving.camera import Lens

    return Lens(height=76, width=240, horizon=30)


def _wide_frame(world: World) -> Any:
    """Render what is seen through the wide lens, (rows, columns, 3)."""
    from lrcnet_paper.driving.camera import Camera

    return Camera(world.road, world.appearance, _wide_lens()).frames(world.state)[0].numpy()


def _scenes_finding(run: FinishedRun | None) -> str:
    """Say how far the drawn paths of the policy end beside those of the expert."""
    if run is None:
        return f"The expert's path in {len(SCENES)} scenes; no policy has been trained yet"
    pairs = zip(run.analyses[NAME]["predicted"], run.analyses[NAME]["driver"], strict=True)
    apart = [abs(_offset(predicted - expert, PATH)) for predicted, expert in pairs]
    return (
        f"{driving.label(POLICY)}, seed {run.result.seed}, as an example: after {PATH} m its paths lie "
        f"{fmean(apart):.1f} m beside the expert's on average, at most {max(apart):.1f} m"
    )


def _offset(curvature: float, metres: float) -> float:
    """Return how far a path of constant curvature is beside a straight one after some metres."""
    return curvature * metres**2 / 2


def _outline(top: int, left: int, height: int, width: int) -> tuple[list[float], list[float]]:
    """Return the columns and rows of a closed line around a crop."""
    right, bottom = left + width - 0.5, top + height - 0.5
    return [left - 0.5, right, right, left - 0.5, left - 0.5], [top - 0.5, top - 0.5, bottom, bottom, top - 0.5]


def _path(curvature: float, lens: Any) -> tuple[list[float], list[float]]:
    """Project a path of constant curvature that starts at the car into the picture: columns and rows."""
    from lrcnet_paper.driving.camera import CAMERA_AHEAD, CAMERA_HEIGHT, FOCAL

    columns, rows = [], []
    for metre in range(5, PATH + 1):
        ahead = metre - CAMERA_AHEAD
        side = _offset(curvature, metre)
        columns.append((lens.width - 1) / 2 - FOCAL * side / ahead)
        rows.append(lens.horizon + FOCAL * CAMERA_HEIGHT / ahead - 0.5)
    return columns, rows


def _head_table() -> Table:
    from lrcnet_paper.models.policy import FEATURES, ConvHead

    layers = [layer for layer in ConvHead().layers if hasattr(layer, "kernel_size") and hasattr(layer, "out_channels")]
    rows = [
        (
            f"convolution {i + 1}",
            f"{filters} of {kernel}x{kernel}, stride {stride}",
            f"{layer.out_channels} of {layer.kernel_size[0]}x{layer.kernel_size[1]}, stride {layer.stride[0]}",  # type: ignore[index]
            "2x2" if pooled else "–",
        )
        for i, ((filters, kernel, stride, pooled), layer) in enumerate(zip(CLAIMED["head"], layers, strict=True))
    ]
    rows.append(("features", str(CLAIMED["features"]), str(FEATURES), "–"))
    return Table("head", "The convolutional head", ("layer", "paper", "ours", "max pooling after it"), rows)


# Radius of the recurrent layer in the diagram, in pixels of the frame.
RADIUS = 22.0


def head_shapes() -> list[tuple[int, int, int]]:
    """Return filters, rows and columns after each convolution and its pooling, as the head computes them."""
    import torch
    from torch import nn

    from lrcnet_paper.models.policy import ConvHead

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        values, shapes = torch.zeros(1, 3, *CLAIMED["picture"]), []
        for layer in ConvHead().layers:
            if isinstance(layer, nn.Flatten):
                break
            values = layer(values)
            if isinstance(layer, nn.Conv2d):
                shapes.append(tuple(values.shape[1:]))
            shapes[-1] = tuple(values.shape[1:])
    return shapes


def _diagram() -> Picture:
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    rows, columns = CLAIMED["picture"]
    gap = 16.0
    with palette.figure_style():
        figure = Figure(figsize=(7.6, 1.75), layout="constrained")
        axes = figure.subplots()
        axes.axis("off")
        world, _, _ = _replay(SCENES[0])
        top, left = _wide_lens().above, (_wide_lens().width - columns) // 2
        # Cut out of the wide frame, whose textures are there already; the pixels are those of the policy's own frame.
        frame = _wide_frame(world)[top : top + rows, left : left + columns]
        axes.imshow(frame, extent=(0, columns, -rows / 2, rows / 2), interpolation="nearest")
        _label_part(axes, columns / 2, f"camera\n{rows} x {columns} RGB")
        left = columns + gap
        for number, (filters, height, width) in enumerate(head_shapes(), 1):
            _draw_maps(axes, left, height, width)
            name = f"conv {number}\n{filters} maps\n{height} x {width}"
            _label_part(axes, left + width / 2, name, small=width < 30)
            left += max(width, 28.0) + gap
        axes.plot([left, left], [-32, 32], color=palette.INK, linewidth=3)
        _label_part(axes, left, f"features\n{CLAIMED['features']}")
        centre = left + 54
        axes.add_patch(Circle((centre, 0), RADIUS, fill=False, edgecolor=palette.INK, linewidth=1.4))
        axes.annotate(
            "", (centre - 9, RADIUS - 2.5), (centre + 9, RADIUS - 2.5),
            arrowprops={"arrowstyle": "-|>", "color": palette.INK, "connectionstyle": "arc3,rad=1.4"},
        )  # fmt: skip
        axes.text(centre + 13, RADIUS + 6, "state", fontsize=7)
        axes.text(centre, 0, "recurrent\nlayer", ha="center", va="center", fontsize=7)
        _label_part(axes, centre + 8, "LSTM 23, GRU 28\nMGU 38, LRCU 19\nunits")
        for start, end in ((left + 4, centre - RADIUS - 1), (centre + RADIUS + 1, centre + RADIUS + 22)):
            axes.annotate("", (end, 0), (start, 0), arrowprops={"arrowstyle": "-|>", "color": palette.INK})
        axes.text(centre + RADIUS + 24, 0, "curvature\n(1/m)", va="center", fontsize=7)
        axes.set(xlim=(-2, centre + RADIUS + 66), ylim=(-66, 42))
        axes.set_aspect("equal")
        write_finding(figure, f"A policy reduces {rows * columns:,} pixels to {CLAIMED['features']} features per frame")
    return Picture(
        "policy",
        "The policy. Frame and feature maps are drawn to one scale; a convolution includes its pooling. The head sees "
        "one frame at a time, the recurrent layer keeps a state, and a linear output gives the curvature to steer.",
        "From left to right: a camera frame of a road, five stacks of ever smaller feature maps, a bar of 64 features, "
        "the recurrent layer with a loop for its state, and the curvature.",
        figure,
    )


def _label_part(axes: Axes, x: float, text: str, *, small: bool = False) -> None:
    axes.text(x, -36, text, ha="center", va="top", fontsize=6.5 if small else 7.5)


def _draw_maps(axes: Axes, left: float, height: int, width: int) -> None:
    """Draw three of a layer's feature maps behind each other, to the scale of the frame."""
    from matplotlib.patches import Rectangle

    for depth in (2, 1, 0):
        corner = (left + 2.0 * depth, -height / 2 + 2.0 * depth)
        axes.add_patch(Rectangle(corner, width, height, facecolor=palette.PAPER, edgecolor=palette.INK, linewidth=0.9))


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
