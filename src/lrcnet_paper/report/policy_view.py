"""Driving policies for the interactive part of their page: how they answer to drives of the expert, frame by frame."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from lrcnet.interpret.inside import Example
from lrcnet.interpret.page import SEQUENCES, View
from lrcnet.pages import palette
from lrcnet_paper.artefacts.policy_measurements import SEASONS
from lrcnet_paper.models.feature_policy import FeaturePolicy
from lrcnet_paper.models.policy import FEATURES, Policy
from lrcnet_paper.road_seeds import ATTENTION_EXAMPLES

if TYPE_CHECKING:
    from lrcnet_paper.training.trained_network import TrainedNetwork

ROADS = ATTENTION_EXAMPLES[17:20]
LENGTH = 120.0
FIRST, FRAMES = 45, 120
"""First frame and number of frames of a sequence: four seconds, once the car is on its way."""
PICTURES = 5
CHANNELS = tuple(f"feature {k + 1}" for k in range(FEATURES))


class Drives(NamedTuple):
    """Sequences of the expert's drives.

    Attributes:
        frames: (sequence, time, 48, 160, 3), uint8.
        curvature: curvature that the expert steered, 1/m, (sequence, time).
        names: season and road of each sequence.
    """

    frames: Tensor
    curvature: Tensor
    names: list[str]


def drives(data: str | None, *, smoke: bool = False) -> Drives:
    """Return sequences of both seasons of our own world, or of the recording in a folder."""
    return _own_drives(smoke) if data is None else _recorded_drives(data, smoke)


def _own_drives(smoke: bool) -> Drives:
    from lrcnet_paper.driving import World, expert_drive

    first, count, roads = (0, 8, ROADS[:1]) if smoke else (FIRST, FRAMES, ROADS)
    frames, curvature, names = [], [], []
    for season in SEASONS:
        world = World(list(roads), season=season, length=LENGTH)
        steps = list(itertools.islice(expert_drive(world, world.expert()), first, first + count))
        frames.append(torch.stack([step.frames for step in steps if step.frames is not None], 1))
        curvature.append(torch.stack([step.action for step in steps], 1))
        names += [f"{season}, road {k + 1}" for k in range(len(roads))]
    return Drives(torch.cat(frames), torch.cat(curvature), names)


def _recorded_drives(folder: str, smoke: bool) -> Drives:
    from lrcnet_paper.driving import open_recording
    from lrcnet_paper.driving.windows import Windows

    recording = open_recording(folder)
    longest = int((recording.starts[1:] - recording.starts[:-1]).max())
    length = min(8 if smoke else FRAMES, longest)
    windows = Windows(recording, length, stride=length)
    count = min(SEQUENCES, len(windows))
    places = [k * len(windows) // count for k in range(count)]
    frames, _, curvature = windows[places]
    return Drives(frames, curvature, [f"window {k + 1} of {len(windows)}" for k in places])


def policy_view(trained: TrainedNetwork, shown: Drives) -> View:
    """Return the recurrent part of a policy with the features that its own convolutions see in the drives."""
    policy = trained.network
    assert isinstance(policy, Policy)
    with torch.no_grad():
        features = [policy.features(frames.unsqueeze(0)) for frames in shown.frames]
    examples = [
        Example(one.to(policy.head.weight.dtype), None, None, curvature)
        for one, curvature in zip(features, shown.curvature, strict=True)
    ]
    return View(
        FeaturePolicy.of(policy).eval(),
        examples,
        [],
        palette.model_label(trained.spec.model),
        ("steered curvature (1/m; left is positive)",),
        "the expert's",
    )


def strips(shown: Drives) -> list[str]:
    """Return a strip of evenly spaced frames of each sequence, as data URLs."""
    from lrcnet_paper.report.drive_pictures import strip

    # Each picture was taken in the middle of the stretch that it covers.
    places = ((torch.arange(PICTURES) + 0.5) * shown.frames.shape[1] / PICTURES).long()
    return [strip(frames[places].numpy()) for frames in shown.frames]
