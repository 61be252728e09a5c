"""The sections of a page about a driving policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lrcnet.pages.content import Cell, Picture, Section, Table
from lrcnet.progress import track
from lrcnet_paper.artefacts import neuron_drives
from lrcnet_paper.artefacts.activity import cells as activity
from lrcnet_paper.artefacts.activity.figures import draw_roads
from lrcnet_paper.artefacts.attention import similarity as attention
from lrcnet_paper.artefacts.attention.figures import draw_boxes, draw_grid, pack_map
from lrcnet_paper.artefacts.policy_measurements import PRIMARY_READING, SEASONS
from lrcnet_paper.results.provenance import Provenance, format_provenance

if TYPE_CHECKING:
    from torch import Tensor

    from lrcnet_paper.interpret import WatchedDrive
    from lrcnet_paper.models.policy import Policy
    from lrcnet_paper.report.policy_view import Drives
    from lrcnet_paper.training.trained_network import TrainedNetwork

PAIRS = 48
SECOND_METHOD = "integrated gradients"
NEURONS = 10
ROADS = neuron_drives.RoadPlan(1, 300.0)
"""Shorter than the roads of the figures: the page is to be made within two minutes."""


def sections(
    trained: TrainedNetwork, provenance: Provenance, data: str | None, samples: int | None, shown: Drives
) -> list[Section]:
    """Return attention, its change under noise, activity on the road, correlation, and shares of neurons.

    Args:
        trained, provenance: the policy.
        data: the folder of a recording to look at; None for our own world.
        samples: number of frames per season; None for `PAIRS`.
        shown: the sequences of the interactive part.
    """
    from lrcnet_paper.models.policy import Policy

    policy, smoke = trained.network, trained.spec.budget == "smoke"
    assert isinstance(policy, Policy)
    name = trained.spec.model
    views: dict[str, Tensor] = {}
    driven: dict[str, WatchedDrive] = {}

    def look() -> Section:
        views.update(_views(data, samples or (2 if smoke else PAIRS), 20.0 if smoke else 400.0))
        return _attention(policy, name, provenance, views)

    def drive() -> Section:
        plan = neuron_drives.SMOKE if smoke else ROADS
        driven.update({season: drives[0] for season, drives in neuron_drives.drive_roads(policy, plan).items()})
        return _roads(driven, provenance)

    parts: list[Callable[[], Section]] = [
        look,
        lambda: _noise(policy, name, provenance, views),
        drive,
        lambda: _correlations(driven, provenance),
        lambda: _shares(policy, shown),
    ]
    return [part() for part in track(parts, "looking into the policy", unit="section")]


def _views(data: str | None, count: int, length: float) -> dict[str, Tensor]:
    """Return the frames to show the policy, (frame, 48, 160, 3): those of a recording, or ours of both seasons."""
    import torch

    from lrcnet_paper.driving import open_recording
    from lrcnet_paper.interpret import scenes

    if data is None:
        return {season: scenes(season, count, length=length) for season in SEASONS}
    frames = open_recording(data).frames
    places = sorted({k * len(frames) // count for k in range(count)})
    return {"recording": torch.stack([torch.from_numpy(frames[k].copy()) for k in places])}


def _attention(policy: Policy, name: str, provenance: Provenance, views: Mapping[str, Tensor]) -> Section:
    """Return the attention by two methods to one view of each kind, with and without noise."""
    from lrcnet_paper.interpret import gradient_attention

    pictures = []
    for kind, frames in views.items():
        if kind in SEASONS:
            views_with_noise = attention.example_frames(kind)
        else:
            views_with_noise = attention.noise_series(frames[len(frames) // 2].unsqueeze(0))
        keys = [f"{v:g}" for v in (0.0, *attention.VARIANCES)]
        gradients = gradient_attention(policy, views_with_noise, steps=16)
        second = dict(zip(keys, map(pack_map, gradients), strict=True))
        first = attention.attention_maps(policy, views_with_noise)
        maps = {name: (first, provenance), SECOND_METHOD: (second, provenance)}
        pictures.append(
            Picture(
                f"grid-{kind}",
                f"A view ({kind}) and the attention to it, without noise and with Gaussian noise of variance 0.1 and "
                "0.2 on the normalised frame: VisualBackProp of the convolutions, and as a second opinion the "
                f"integrated gradients of the steered curvature by Captum. Weights: {format_provenance(provenance)}.",
                "Three rows, one per variance of the noise: the camera's picture and two maps of the attention to it, "
                "bright where the policy looks.",
                draw_grid(views_with_noise.numpy(), maps),
            )
        )
    return Section("looks", "What it looks at", pictures)


def _noise(policy: Policy, name: str, provenance: Provenance, views: Mapping[str, Tensor]) -> Section:
    from lrcnet_paper.interpret import attention_under_noise, box

    similarities = {
        kind: attention_under_noise(policy, frames, attention.VARIANCES, reading=PRIMARY_READING)
        for kind, frames in views.items()
    }
    boxes = {kind: dict(zip(attention.VARIANCES, map(box, rows), strict=True)) for kind, rows in similarities.items()}
    plotted = {kind: {v: [one.as_dict()] for v, one in row.items()} for kind, row in boxes.items()}
    rows: list[tuple[Cell, ...]] = []
    for kind, row in boxes.items():
        for variance, one in row.items():
            quartiles = f"{one.first_quartile:.3f} to {one.third_quartile:.3f}"
            rows.append((kind, variance, one.count, one.mean, one.std, one.median, quartiles))
    return Section(
        "noise",
        "How far noise moves its attention",
        [
            Picture(
                "boxes",
                "Similarity of the attention with and without noise on the normalised frame: quartiles, median, "
                f"whiskers, and the mean as a dot. Weights: {format_provenance(provenance)}.",
                "One panel of box plots for each kind of picture, with one box per variance of the noise.",
                draw_boxes({name: plotted}),
            ),
            Table(
                "similarity",
                "Structural similarity of the attention with and without noise (1: unchanged)",
                ("pictures", "variance", "pairs", "mean", "standard deviation", "median", "quartiles"),
                rows,
            ),
        ],
    )


def _roads(driven: Mapping[str, WatchedDrive], provenance: Provenance) -> Section:
    picture = Picture(
        "roads",
        "Activity of neurons along closed-loop drives in our own world, seen from above; the dot is the start. "
        f"{activity.RULE} Weights: {format_provenance(provenance)}.",
        "One map of the driven road for each season and cell: a line coloured by the neuron's activity.",
        draw_roads({season: (activity.measure(drive), provenance) for season, drive in driven.items()}),
    )
    return Section("activity", "Activity on the road", [picture])


def _correlations(driven: Mapping[str, WatchedDrive], provenance: Provenance) -> Section:
    from lrcnet_paper.interpret import correlation as correlate
    from lrcnet_paper.interpret import side

    tables = []
    for season, one in driven.items():
        r = correlate(one.activity, one.curvature)
        order = r.abs().argsort(descending=True)[:NEURONS].tolist()
        tables.append(
            Table(
                f"correlation-{season}",
                f"{season.capitalize()}: the neurons that follow the steered curvature most closely",
                ("neuron", "r", "turns"),
                [(f"{i + 1}", float(r[i]), side(float(r[i]))) for i in order],
                f"Mean of |r| over all {len(r)} neurons: {float(r.abs().mean()):.3f} ± {float(r.abs().std()):.3f}, "
                f"over {one.metres:.0f} m. Weights: {format_provenance(provenance)}.",
            )
        )
    return Section("correlation", "Which neurons follow the road", tables)


def _shares(policy: Policy, shown: Drives) -> Section:
    """Return the shares of the neurons in the curvature at the end of each drive of the expert."""
    from lrcnet.interpret import rank, shares
    from lrcnet_paper.models.feature_policy import FeaturePolicy

    features = policy.features(shown.frames.flatten(0, 1).unsqueeze(1)).detach().view(*shown.frames.shape[:2], -1)
    parts = rank(shares(FeaturePolicy.of(policy), features, lambda curvature: curvature[:, -1]).neurons)
    table = Table(
        "neurons",
        "The neurons with the largest share in the steered curvature",
        ("neuron", "share (%)"),
        [(name, 100 * share) for name, share in parts[:NEURONS]],
        "The share of a neuron is the part of the curvature, to first order, that would be lost if the neuron stayed "
        f"at its mean; at the end of the {len(shown.names)} sequences above.",
    )
    return Section("shares", "Which neurons steer", [table])
