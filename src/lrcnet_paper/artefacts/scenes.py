"""Figures: camera frames of both seasons with the policy's crop and predicted path; a diagram of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.driving_runs import Model
from lrcnet_paper.road_seeds import CLOSED_LOOP
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
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
# The policy sees this many frames up to the moment that is shown, as in training.
FRAMES_SEEN = 32


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
        _, frames, action = _replay(scene)
        with torch.inference_mode():
            predicted.append(round(float(policy(frames[None])[0, -1]), 6))
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


def _replay(scene: Scene) -> tuple[World, Any, float]:
    """Return the world at a scene, the frames up to it (time, 48, 160, 3), and the expert's curvature there."""
    import torch

    from lrcnet_paper.driving import World, expert_drive

    world = World([scene.road], season=scene.season, length=600.0)
    frames: list[Any] = []
    for time, step in enumerate(expert_drive(world, world.expert(), frames=False)):
        if time > scene.time - FRAMES_SEEN:
            frames.append(world.frames()[0])
        if time == scene.time:
            return world, torch.stack(frames), float(step.action[0])
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

    from lrcnet_paper.driving.camera import HEIGHT, WIDTH, Camera, Lens

    lens = Lens(height=76, width=240, horizon=30)
    top, left = lens.above, (lens.width - WIDTH) // 2
    measurement = None if run is None else run.analyses[NAME]
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 2.5), layout="constrained")
        panels = figure.subplots(2, 3)
        for number, (axes, scene) in enumerate(zip(panels.flat, SCENES, strict=True)):
            world, _, action = _replay(scene)
            frame = Camera(world.road, world.appearance, lens).frames(world.state)[0]
            axes.imshow(frame.numpy(), interpolation="bicubic")
            axes.plot(*_outline(top, left, HEIGHT, WIDTH), color="white", linewidth=1.0)
            axes.plot(*_path(action, lens), color=palette.BLUE, linewidth=2.2, linestyle=(0, (2, 1)), label="expert")
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
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    provenance = (
        "no policy has been trained, so only the expert's path is drawn"
        if measurement is None or run is None
        else f"policy: LRCU-S, seed {run.result.seed}, budget {run.result.budget}, after {measurement['trained']}, "
        f"validation loss {measurement['validation_loss']:.3f}"
    )
    return Picture(
        "scenes",
        "The project's own world. The white frame marks the input of a policy, 48 by 160 pixels; the lines are the "
        f"paths of constant curvature that the expert and the policy steer at that moment, over 25 m ({provenance}).",
        "Six pictures of a road from a car's camera, three in summer and three in winter, with a white crop frame and "
        "two paths drawn onto the road.",
        figure,
    )


def _outline(top: int, left: int, height: int, width: int) -> tuple[list[float], list[float]]:
    """Return the columns and rows of a closed line around a crop."""
    right, bottom = left + width - 0.5, top + height - 0.5
    return [left - 0.5, right, right, left - 0.5, left - 0.5], [top - 0.5, top - 0.5, bottom, bottom, top - 0.5]


def _path(curvature: float, lens: Any) -> tuple[list[float], list[float]]:
    """Project a path of constant curvature that starts at the car into the picture: columns and rows."""
    from lrcnet_paper.driving.camera import CAMERA_AHEAD, CAMERA_HEIGHT, FOCAL

    columns, rows = [], []
    for metre in range(5, 26):
        ahead = metre - CAMERA_AHEAD
        side = curvature * metre**2 / 2
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


def _diagram() -> Picture:
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    boxes = (
        ("camera", "48 x 160\nRGB, normalised", palette.GREY),
        ("conv head", "24, 36, 48, 64, 64\nfilters, ReLU,\nmax pooling", palette.BLUE),
        ("features", "64", palette.BLUE),
        ("recurrent layer", "LSTM 23, GRU 28,\nMGU 38 or\nLRCU 19 units", palette.VERMILION),
        ("linear output", "curvature\n(1/m)", palette.GREEN),
    )
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 1.9))
        axes = figure.add_axes((0.005, 0.02, 0.99, 0.96))
        axes.set(xlim=(0, 15.2), ylim=(0, 3.6))
        axes.axis("off")
        for position, (name, description, colour) in enumerate(boxes):
            left = 0.15 + position * 3.05
            axes.add_patch(
                FancyBboxPatch(
                    (left, 0.75),
                    2.45,
                    2.1,
                    boxstyle="round,pad=0.04,rounding_size=0.15",
                    fill=False,
                    edgecolor=colour,
                    linewidth=1.6,
                )
            )
            axes.text(left + 1.225, 3.1, name, ha="center", va="bottom", weight="bold")
            axes.text(left + 1.225, 1.8, description, ha="center", va="center", fontsize=8)
            if position:
                axes.annotate(
                    "",
                    (left - 0.06, 1.8),
                    (left - 0.52, 1.8),
                    arrowprops={"arrowstyle": "-|>", "color": palette.INK, "shrinkA": 0, "shrinkB": 0},
                )
        right = 0.15 + 3 * 3.05
        axes.annotate(
            "",
            (right + 0.5, 0.7),
            (right + 1.95, 0.7),
            arrowprops={"arrowstyle": "-|>", "color": palette.VERMILION, "connectionstyle": "arc3,rad=-0.55"},
        )
        axes.text(right + 1.225, 0.02, "state", ha="center", va="bottom", fontsize=8)
    return Picture(
        "policy",
        "The policy: the head sees one frame at a time, the recurrent layer keeps a state, and the output is the "
        "curvature to steer.",
        "Boxes from left to right: camera, conv head, features, recurrent layer with a loop for its state, output.",
        figure,
    )


ARTEFACT = MeasuringArtefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse)
